//! Several changes of records, and what they rest on, become one batch with one entry per
//! address.

use std::sync::Arc;

use bytes::Bytes;

use super::entries::{EntryStep, Holder, Image, entries, taken};
use crate::engine::places::Places;
use crate::engine::{Address, Batch, Condition, Effect, Fence, Rejection, ShowKey, Space, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::schema::{Index, record_key_of};
use crate::side::{Before, CellRole, Change, Refused, SideCell, Work, side_cells};
use crate::space::Loaded;
use crate::space::Session;

/// What an entry of the batch is for, to explain a rejection.
#[derive(Clone, Debug)]
pub(crate) enum Role<'w> {
    /// The record of that change.
    Record(usize),
    /// An entry of that change, which several records may have, and has no condition.
    Entry(usize),
    /// A key of that index which one record alone may have, for that change.
    Claim(usize, &'w Arc<Index>, Bytes),
    /// Something that was read and must not have changed.
    Read,
    /// A cell beside records, by what it is for and its number there.
    Side(&'static CellRole, usize),
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
    for cell in side_cells(session, loaded, &work).await? {
        let SideCell { address, condition, effect, role, number } = cell;
        builder.push(Role::Side(role, number), address, condition, effect);
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
        Role::Side(role, number) => (role.explain)(*number, work, rejection),
        Role::Entry(_) => {
            Refused::Final(Error::new(ErrorKind::Internal, "a cell without a condition failed one"))
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
