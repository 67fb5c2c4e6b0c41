//! Keeps writers from harming each other's claims while an index is being built.
//!
//! A record that gives a key up deletes its entry without looking, since the entry is its own: an
//! index in which each key is for one record gave it to nobody else. While such an index is being
//! built this does not hold. A record from before may have no entry yet, a second record may have
//! claimed the same key, and the first would delete the entry of the second. So until the index is
//! ready, writers look at the entries that they take away or overwrite, and their batch rests on
//! what they saw.

use bytes::Bytes;

use super::assemble::{Assembled, Role};
use super::entries::stored_keys_of;
use crate::engine::{Address, Cell, Condition, Effect};
use crate::error::Result;
use crate::schema::{Index, IndexState, record_key_of};
use crate::side::Change;
use crate::space::Loaded;
use crate::space::Session;

/// Makes every unconditional effect on a claim of a building index rest on what is there.
pub(super) async fn rest_on_claims(
    session: &Session,
    loaded: &Loaded,
    changes: &[Change<'_>],
    assembled: &mut Assembled<'_>,
) -> Result<()> {
    let places: Vec<usize> = (0..assembled.roles.len())
        .filter(|&place| is_exposed(loaded, changes, assembled, place))
        .collect();
    if places.is_empty() {
        return Ok(());
    }
    let addresses: Vec<Address> =
        places.iter().map(|&place| assembled.batch.entries[place].address.clone()).collect();
    let cells = session.live.get(&addresses).await?;
    for (place, cell) in places.into_iter().zip(cells) {
        rest_on(changes, assembled, place, cell.as_ref());
    }
    Ok(())
}

/// Whether an entry of the batch changes a claim of a building index without a condition.
fn is_exposed(
    loaded: &Loaded,
    changes: &[Change<'_>],
    assembled: &Assembled<'_>,
    place: usize,
) -> bool {
    let Role::Claim(change, index, _) = &assembled.roles[place] else { return false };
    assembled.batch.entries[place].condition.is_none()
        && *loaded.state(&changes[*change].collection.name, &index.name) == IndexState::Building
}

fn rest_on(
    changes: &[Change<'_>],
    assembled: &mut Assembled<'_>,
    place: usize,
    cell: Option<&Cell>,
) {
    let Role::Claim(change, index, key) = assembled.roles[place].clone() else { return };
    let change = &changes[change];
    let holder =
        cell.and_then(|cell| record_key_of(&change.collection, index, &key, cell.bytes()?));
    let is_given_up =
        holder.as_ref() == Some(&change.key) || passes_on(changes, change, index, &key, &holder);
    let entry = &mut assembled.batch.entries[place];
    let deletes = entry.effect == Some(Effect::Delete);
    if cell.is_some() && !is_given_up && !deletes {
        // Neither this record's nor given up by another of the batch: the engine refuses, and
        // the refusal names the holder.
        entry.condition = Some(Condition::Absent);
        return;
    }
    if deletes && !is_given_up {
        entry.effect = None;
    }
    entry.condition = Some(cell.map_or(Condition::Absent, |cell| Condition::Unchanged(cell.stamp)));
    assembled.roles[place] = Role::Read;
}

/// Whether the holder of a key gives it up in the same batch.
fn passes_on(
    changes: &[Change<'_>],
    taker: &Change<'_>,
    index: &Index,
    key: &Bytes,
    holder: &Option<Bytes>,
) -> bool {
    changes.iter().any(|giver| {
        giver.collection.name == taker.collection.name
            && Some(&giver.key) == holder.as_ref()
            && !giver.after.as_ref().is_some_and(|after| {
                stored_keys_of(&giver.collection, index, &after.value)
                    .is_ok_and(|keys| keys.contains(key))
            })
    })
}
