//! Several changes of records, and what they rest on, become one batch with one entry per
//! address.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::beside::{
    Beside, Counting, LeaseHold, NO_COUNTING, aggregate_refused, beside, explain_counters,
};
use super::entries::{EntryStep, Holder, Image, entries, taken};
use super::once::came_first;
use super::operations::Current;
use crate::counted::Counted;
use crate::engine::places::Places;
use crate::engine::{Address, Batch, Condition, Effect, Fence, Rejection, ShowKey, Space, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Document, Version, check_size, shown};
use crate::schema::{Aggregate, Collection, Index, record_key_of};
use crate::space::Loaded;
use crate::space::Session;

/// What is known of a record before it changes.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    /// It must not be there: it is being created.
    Absent,
    /// It was looked for, and was not there.
    SeenAbsent,
    /// It was read in this state, and must still be in it.
    Read {
        /// The version that was read.
        version: Version,
        /// The record that was read.
        value: Value,
        /// Its JSON text.
        text: Bytes,
    },
    /// It was read in this state, had expired, and must still be in it. To everybody it is absent:
    /// with the change it ends, and what comes after it, if anything, is another record.
    Expired(Current),
}

impl Before {
    /// What lies in the store, if anything does.
    pub(super) fn there(&self) -> Option<(Version, &Value, &Bytes)> {
        match self {
            Before::Absent | Before::SeenAbsent => None,
            Before::Read { version, value, text }
            | Before::Expired(Current { version, value, text, .. }) => {
                Some((*version, value, text))
            }
        }
    }
}

/// One record that changes: with an `after` it is written, without it is deleted.
#[derive(Clone, Debug)]
pub(crate) struct Change<'v> {
    pub(crate) collection: Arc<Collection>,
    pub(crate) key: Bytes,
    pub(crate) before: Before,
    pub(crate) after: Option<After<'v>>,
}

/// What a record becomes. Its JSON may still be its writer's.
#[derive(Clone, Debug)]
pub(crate) struct After<'v> {
    pub(crate) version: Version,
    pub(crate) value: Cow<'v, Value>,
    pub(crate) text: Bytes,
    /// What its writer saw counted beside it, for the answer.
    pub(crate) counted: Option<Counted>,
}

impl<'v> After<'v> {
    /// A record about to be written.
    pub(crate) fn new(
        collection: &Collection,
        version: Version,
        value: Cow<'v, Value>,
    ) -> Result<Self> {
        let text = record_text(&value);
        After::with_text(collection, version, value, text)
    }

    /// The same for one whose text is at hand.
    pub(super) fn with_text(
        collection: &Collection,
        version: Version,
        value: Cow<'v, Value>,
        text: Bytes,
    ) -> Result<Self> {
        check_size(collection, &text)?;
        Ok(After { version, value, text, counted: None })
    }

    /// The record as its writer hears of it.
    pub(crate) fn document(&self, collection: &Collection, key: &Bytes) -> Document {
        let document = Document::new(key.clone(), self.version, self.text.clone());
        let counted = self.counted.as_ref().map(|counted| &counted.values);
        shown(&collection.counters, document, counted)
    }
}

/// A record as JSON text, in a buffer that is long enough for most.
pub(super) fn record_text(value: &Value) -> Bytes {
    const TYPICAL_BYTES: usize = 512;
    let mut text = Vec::with_capacity(TYPICAL_BYTES);
    // JSON that is in memory is written into memory: neither can fail.
    let _ = serde_json::to_writer(&mut text, value);
    text.into()
}

impl Change<'_> {
    /// Where the record lies.
    pub(super) fn address(&self) -> Address {
        Address::new(self.collection.area.clone(), self.key.clone())
    }

    /// Whether it only removes a record that has expired.
    pub(crate) fn is_expiry(&self) -> bool {
        matches!((&self.before, &self.after), (Before::Expired(_), None))
    }

    /// The end of a record that has expired.
    pub(crate) fn expiry(collection: &Arc<Collection>, key: Bytes, record: Current) -> Self {
        let collection = collection.clone();
        Change { collection, key, before: Before::Expired(record), after: None }
    }

    /// The version after the change, if the record is there then.
    pub(crate) fn version(&self) -> Option<Version> {
        self.after.as_ref().map(|after| after.version)
    }
}

/// What one commit is asked to do.
#[derive(Clone, Copy)]
pub(crate) struct Work<'w> {
    /// The records that change, each once.
    pub(crate) changes: &'w [Change<'w>],
    /// Cells that must still be as they were read; those that a change writes itself are covered
    /// by the change.
    pub(crate) reads: &'w [(Address, Option<Stamp>)],
    /// The leases under which it is done.
    pub(crate) leases: &'w [LeaseHold],
    /// What is done to counters.
    pub(crate) counting: &'w Counting,
}

impl<'w> Work<'w> {
    /// Changes that rest on nothing but what they know of their own records.
    pub(crate) fn of(changes: &'w [Change<'w>]) -> Self {
        Work { changes, reads: &[], leases: &[], counting: &NO_COUNTING }
    }
}

/// What an entry of the batch is for, to explain a rejection.
#[derive(Clone, Debug)]
pub(crate) enum Role<'w> {
    /// The record of that change.
    Record(usize),
    /// An entry of that change, which several records may have, and has no condition.
    Entry(usize),
    /// A key of that index which one record alone may have, for that change.
    Claim(usize, &'w Arc<Index>, Bytes),
    /// A cell of a record's history, which has no condition.
    History,
    /// The answer to the idempotency key of the write.
    Idempotency,
    /// Something that was read and must not have changed.
    Read,
    /// That lease of the work.
    Lease(usize),
    /// A number of this aggregate, or the mark of a record that it counts.
    Aggregate(Arc<Aggregate>),
    /// The record of that addend, which must be there.
    Counted(usize),
    /// The counters of that addend.
    Counters(usize),
    /// Counters that leave with their record.
    Departed,
    /// Counters that come with their record.
    Arrived,
}

/// A batch with the role of each of its entries.
pub(crate) struct Assembled<'w> {
    pub(crate) batch: Batch,
    pub(crate) roles: Vec<Role<'w>>,
}

/// Builds the batch.
pub(crate) async fn assemble<'w>(
    session: &Session,
    loaded: &'w Loaded,
    work: Work<'w>,
) -> Result<Assembled<'w>> {
    let Work { changes, reads, .. } = work;
    // What has expired makes way for anybody.
    for change in changes.iter().filter(|change| !change.is_expiry()) {
        session.check_write(&change.collection, &change.key)?;
    }
    for addend in &work.counting.addends {
        session.check_write(&addend.collection, &addend.key)?;
    }
    let room = changes.iter().map(|change| change.collection.creation_entries()).sum();
    let mut builder = Builder::new(&session.live.space, loaded.fence(), room);
    for (place, change) in changes.iter().enumerate() {
        builder.add_record(place, change);
    }
    for (place, change) in changes.iter().enumerate() {
        let before = change.before.there();
        let before = before.map(|(_, value, text)| Image { key: &change.key, value, text });
        let after = change.after.as_ref().map(|after| Image {
            key: &change.key,
            value: &after.value,
            text: &after.text,
        });
        // The stamp of a removed entry is never used.
        let stamp = change.version().map_or(Stamp([0; Stamp::BYTES]), Version::stamp);
        let collection = &change.collection;
        for entry in
            entries(collection, |index| loaded.is_maintained(collection, index), before, after)?
        {
            let index = entry.index;
            let address = Address::new(index.area.clone(), entry.key);
            builder.add_entry(changes, place, index, address, entry.step, stamp)?;
        }
    }
    for Beside { address, condition, effect, role } in beside(session, loaded, &work).await? {
        builder.push(role, address, condition, effect);
    }
    for (address, stamp) in reads {
        builder.add_read(address, *stamp);
    }
    Ok(builder.assembled)
}

fn entry_role<'w>(change: usize, index: &'w Arc<Index>, key: &Bytes) -> Role<'w> {
    if index.claims { Role::Claim(change, index, key.clone()) } else { Role::Entry(change) }
}

struct Builder<'w> {
    assembled: Assembled<'w>,
    places: Places,
}

impl<'w> Builder<'w> {
    fn new(space: &Space, fence: Option<Fence>, room: usize) -> Self {
        let entries = Vec::with_capacity(room);
        let batch = Batch { fence, entries, ..Batch::new(space.clone()) };
        let assembled = Assembled { batch, roles: Vec::with_capacity(room) };
        Builder { assembled, places: Places::with_capacity(room) }
    }

    fn push(
        &mut self,
        role: Role<'w>,
        address: Address,
        condition: Option<Condition>,
        effect: Option<Effect>,
    ) {
        self.assembled.batch.push(address, condition, effect);
        self.assembled.roles.push(role);
        self.places.note_last(&self.assembled.batch.entries);
    }

    fn place_of(&self, address: &Address) -> Option<usize> {
        self.places.find(&self.assembled.batch.entries, address)
    }

    fn add_record(&mut self, place: usize, change: &Change<'_>) {
        let there = change.before.there();
        let condition =
            there.map_or(Condition::Absent, |(version, ..)| Condition::Unchanged(version.stamp()));
        let effect = match (there, &change.after) {
            (_, Some(after)) => {
                Some(Effect::Put { stamp: after.version.stamp(), bytes: after.text.clone() })
            }
            (Some(_), None) => Some(Effect::Delete),
            // A record that came and went within one transaction leaves no trace.
            (None, None) => None,
        };
        let address = Address::new(change.collection.area.clone(), change.key.clone());
        self.push(Role::Record(place), address, Some(condition), effect);
    }

    fn add_entry(
        &mut self,
        changes: &[Change<'_>],
        place: usize,
        index: &'w Arc<Index>,
        address: Address,
        step: EntryStep,
        stamp: Stamp,
    ) -> Result<()> {
        let Some(found) = self.place_of(&address) else {
            let (condition, effect) = match step {
                EntryStep::Claim(bytes) if index.claims => {
                    (Some(Condition::Absent), Effect::Put { stamp, bytes })
                }
                EntryStep::Claim(bytes) | EntryStep::Rewrite(bytes) => {
                    (None, Effect::Put { stamp, bytes })
                }
                EntryStep::Remove => (None, Effect::Delete),
            };
            let role = entry_role(place, index, &address.key);
            self.push(role, address, condition, Some(effect));
            return Ok(());
        };
        let entry = &mut self.assembled.batch.entries[found];
        match (step, entry.effect.take()) {
            // Another change of the batch gives the key up, and the condition on its record
            // guarantees that it has it: the claim passes on.
            (EntryStep::Claim(bytes) | EntryStep::Rewrite(bytes), Some(Effect::Delete)) => {
                entry.effect = Some(Effect::Put { stamp, bytes });
                self.assembled.roles[found] = entry_role(place, index, &address.key);
                Ok(())
            }
            // The same the other way round: what was put stays, without the condition.
            (EntryStep::Remove, put @ Some(Effect::Put { .. })) => {
                entry.effect = put;
                entry.condition = None;
                Ok(())
            }
            // Two that have the same key both go: before a unique index is built there may be such,
            // and where reads mix moments one of them is of the past, which its condition tells.
            (EntryStep::Remove, Some(Effect::Delete)) => {
                entry.effect = Some(Effect::Delete);
                Ok(())
            }
            (_, effect) => {
                entry.effect = effect;
                let rival = match &self.assembled.roles[found] {
                    Role::Entry(other) | Role::Claim(other, ..) | Role::Record(other) => {
                        Holder::Record(&changes[*other].key)
                    }
                    _ => Holder::Unknown,
                };
                Err(taken(&changes[place].collection, index, &address.key, rival))
            }
        }
    }

    fn add_read(&mut self, address: &Address, stamp: Option<Stamp>) {
        if self.place_of(address).is_some() {
            return;
        }
        let condition = stamp.map_or(Condition::Absent, Condition::Unchanged);
        self.push(Role::Read, address.clone(), Some(condition), None);
    }
}

/// Why a batch was rejected, in terms of records.
pub(crate) enum Refused {
    /// A record that was read has changed; reading it again may help.
    Changed(Error),
    /// Counters that were read have changed, and are this now.
    Counted(Error, Option<Counted>),
    /// Another record holds this key of this index.
    Taken(Arc<Index>, Address, Error),
    /// Trying again does not help.
    Final(Error),
}

/// Explains a rejection of a batch that its fence let through.
pub(crate) fn explain(
    session: &Session,
    roles: &[Role<'_>],
    work: &Work<'_>,
    rejection: &Rejection,
) -> Refused {
    let changes = work.changes;
    let Some(place) = rejection.cause.entry() else {
        let message = "a batch was refused by its fence, and taken for one that passed it";
        return Refused::Final(Error::new(ErrorKind::Internal, message));
    };
    match &roles[place] {
        Role::Lease(place) => Refused::Final(work.leases[*place].lost()),
        Role::History | Role::Entry(_) => {
            Refused::Final(Error::new(ErrorKind::Internal, "a cell without a condition failed one"))
        }
        Role::Idempotency => Refused::Final(came_first()),
        Role::Aggregate(aggregate) => aggregate_refused(aggregate, &rejection.cause),
        role @ (Role::Counted(_) | Role::Counters(_) | Role::Departed | Role::Arrived) => {
            explain_counters(work.counting, role, rejection)
        }
        Role::Read => Refused::Changed(Error::new(
            ErrorKind::VersionConflict,
            "a record that the transaction read has changed",
        )),
        Role::Record(place) => {
            let change = &changes[*place];
            let about = |kind, message| {
                Error::new(kind, message)
                    .with("collection", &change.collection.name)
                    .with("key", ShowKey(&change.key))
            };
            let found = rejection.found.as_ref();
            match (&change.before, found) {
                (Before::Absent, _) => Refused::Final(about(
                    ErrorKind::AlreadyExists,
                    "a record with this key is there already",
                )),
                (Before::SeenAbsent, _) => Refused::Changed(about(
                    ErrorKind::VersionConflict,
                    "the record was created since it was looked for",
                )),
                (Before::Read { .. } | Before::Expired(_), Some(found)) => Refused::Changed(
                    about(ErrorKind::VersionConflict, "the record changed since it was read")
                        .with("version", Version::from_stamp(found.stamp)),
                ),
                (Before::Read { .. } | Before::Expired(_), None) => Refused::Changed(about(
                    ErrorKind::VersionConflict,
                    "the record was deleted since it was read",
                )),
            }
        }
        Role::Claim(place, index, key) => {
            let collection = &changes[*place].collection;
            let value = rejection.found.as_ref().and_then(|cell| cell.bytes());
            let found = value.and_then(|value| record_key_of(collection, index, key, value));
            let holder = match &found {
                None => Holder::Unknown,
                // A record is named only to one who may read it.
                Some(key) if session.may_read(collection, key) => Holder::Record(key),
                Some(_) => Holder::Hidden,
            };
            let address = Address::new(index.area.clone(), key.clone());
            let error = taken(collection, index, key, holder);
            Refused::Taken((*index).clone(), address, error)
        }
    }
}
