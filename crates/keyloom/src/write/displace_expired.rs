//! Expired records are displaced by writes that they would reject.
//!
//! To everybody who reads, an expired record is absent; in the store it lies until it is swept,
//! with its key and its claims. A write takes it for absent too, and learns otherwise only when the
//! engine rejects the batch. Then the batch grows: it also removes the expired record with all
//! that belongs to it, on the condition that it is still the same.

use bytes::Bytes;

use super::assemble::{Role, assemble};
use super::building_claims::rest_on_claims;
use super::entries::stored_keys_of;
use super::logged::note;
use crate::engine::{Address, Batch, Cause, Cell, Reading, Rejection};
use crate::error::{ErrorKind, Result};
use crate::schema::{Collection, Index, record_key_of};
use crate::side::{Before, Change, Current, Fetched, Work, fetch_one};
use crate::space::{Loaded, Session};

/// How often a batch grows before it counts as contended. A record may hold some claims, and
/// another expired record may be in the way of each.
pub(super) const ROUNDS_MAX: usize = 64;

/// The changes that were asked for, with what it takes to displace expired records, after a
/// rejection of those that were tried; `None` when the rejection stands. The first changes are
/// always those that were asked for, in their order.
pub(super) async fn displace_expired<'v>(
    session: &Session,
    asked: &[Change<'_>],
    tried: &[Change<'v>],
    roles: &[Role<'_>],
    rejection: &Rejection,
) -> Result<Option<Vec<Change<'v>>>> {
    let Cause::Condition { entry } = rejection.cause else { return Ok(None) };
    let mut changes;
    match &roles[entry] {
        // Somebody else removed it meanwhile.
        Role::Record(place) if *place >= asked.len() => {
            changes = tried.to_vec();
            changes.remove(*place);
        }
        Role::Record(place) => {
            let (asked, found) = (&asked[*place], rejection.found.as_ref());
            let Some(before) = before(session, asked, &tried[*place], found) else {
                return Ok(None);
            };
            changes = tried.to_vec();
            changes[*place].before = with_counters(session, asked, before).await?;
        }
        Role::Claim(place, index, key) => {
            let collection = &tried[*place].collection;
            let claim = Claim { collection, index, key };
            match claim.holder(session, tried, rejection.found.as_ref()).await? {
                Holder::Stands => return Ok(None),
                Holder::Expired(key, record) => {
                    changes = tried.to_vec();
                    changes.push(Change::expiry(collection, key, *record));
                }
                Holder::Unsettled => changes = tried.to_vec(),
            }
        }
        Role::Entry(_) | Role::Read | Role::Side(..) => return Ok(None),
    }
    Ok(Some(changes))
}

/// The expired records that the changes that were asked for have met, each as a removal.
pub(super) fn expired_rivals<'v>(asked: &[Change<'_>], grown: &[Change<'v>]) -> Vec<Change<'v>> {
    let at_their_keys = asked.iter().zip(grown).filter_map(|(asked, change)| {
        match (&asked.before, &change.before) {
            (Before::Expired(_), _) => None,
            (_, Before::Expired(current)) => {
                Some(Change::expiry(&change.collection, change.key.clone(), current.clone()))
            }
            _ => None,
        }
    });
    at_their_keys.chain(grown.iter().skip(asked.len()).cloned()).collect()
}

/// Whether a batch that grew exceeds what the engine takes.
pub(super) fn is_too_large(session: &Session, batch: &Batch) -> bool {
    let checked = batch.check(session.live.engine.capabilities());
    checked.is_err_and(|error| error.kind() == ErrorKind::LimitExceeded)
}

/// Removes expired records each by itself, where one batch cannot hold them and the write too.
/// Nobody sees a difference: they are absent already. One that changed meanwhile is let be.
pub(super) async fn remove_alone(
    session: &Session,
    loaded: &Loaded,
    expired: &[Change<'_>],
) -> Result<()> {
    // What they leave is no answer to the write.
    let session = &session.claiming_nothing();
    for change in expired {
        let changes = std::slice::from_ref(change);
        let work = Work::of(changes);
        let mut assembled = assemble(session, loaded, work).await?;
        rest_on_claims(session, loaded, changes, &mut assembled).await?;
        session.live.commit(loaded, assembled.batch, || note(session, &work)).await?;
    }
    Ok(())
}

/// What a record was before the change, now that something else was found there.
fn before(
    session: &Session,
    asked: &Change<'_>,
    tried: &Change<'_>,
    found: Option<&Cell>,
) -> Option<Before> {
    if !matches!(asked.before, Before::Absent | Before::SeenAbsent) {
        return None;
    }
    let current =
        found.and_then(|cell| Current::from_cell(&asked.collection, &asked.key, cell, None).ok());
    match current {
        Some(current) if asked.collection.is_expired(&current.value, session.now()) => {
            Some(Before::Expired(current))
        }
        // What had expired is no longer there; whatever is now speaks for itself.
        _ if matches!(tried.before, Before::Expired(_)) => Some(asked.before.clone()),
        _ => None,
    }
}

/// The counters of an expired record end with it, so that whoever begins anew must know them.
async fn with_counters(session: &Session, asked: &Change<'_>, before: Before) -> Result<Before> {
    match before {
        Before::Expired(current) if !asked.collection.counters.is_empty() => {
            let Fetched { counted, .. } = fetch_one(session, &asked.collection, &asked.key).await?;
            Ok(Before::Expired(Current { counted, ..current }))
        }
        before => Ok(before),
    }
}

fn has(changes: &[Change<'_>], collection: &Collection, key: &Bytes) -> bool {
    changes.iter().any(|change| change.collection.name == collection.name && change.key == *key)
}

/// A key of an index that only one record can have.
struct Claim<'c> {
    collection: &'c Collection,
    index: &'c Index,
    key: &'c Bytes,
}

/// Who has a claim.
enum Holder {
    /// Somebody who keeps it.
    Stands,
    /// This record, which has expired.
    Expired(Bytes, Box<Current>),
    /// It changed hands since the rejection.
    Unsettled,
}

impl Claim<'_> {
    /// Who has the claim that was found in the way of the changes that were tried.
    async fn holder(
        &self,
        session: &Session,
        tried: &[Change<'_>],
        found: Option<&Cell>,
    ) -> Result<Holder> {
        let Claim { collection, index, key } = self;
        let value = found.and_then(Cell::bytes);
        let holder = value.and_then(|value| record_key_of(collection, index, key, value));
        let (Some(holder), Some(found), Some(_)) = (holder, found, &collection.expiry) else {
            return Ok(Holder::Stands);
        };
        if has(tried, collection, &holder) {
            return Ok(Holder::Stands);
        }
        let both = [
            Address::new(index.area.clone(), (*key).clone()),
            Address::new(collection.area.clone(), holder.clone()),
        ];
        let mut cells = session.live.get(&both).await?.into_iter();
        let claim = cells.next().flatten();
        // One that cannot be read is nobody's to remove.
        let record =
            cells.next().flatten().map(|cell| Current::from_cell(collection, &holder, &cell, None));
        let Some(record) =
            record.transpose().unwrap_or_default().filter(|record| self.is_of(record))
        else {
            let is_settled = claim.is_some_and(|claim| claim.stamp == found.stamp)
                && session.live.engine.capabilities().reading == Reading::Snapshot;
            return Ok(if is_settled { Holder::Stands } else { Holder::Unsettled });
        };
        let is_expired = collection.is_expired(&record.value, session.now());
        Ok(if is_expired { Holder::Expired(holder, Box::new(record)) } else { Holder::Stands })
    }

    fn is_of(&self, record: &Current) -> bool {
        stored_keys_of(self.collection, self.index, &record.value)
            .is_ok_and(|keys| keys.contains(self.key))
    }
}
