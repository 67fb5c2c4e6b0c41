//! A group of batches that share one sync: what each comes to, and what is written for all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use bytes::Bytes;

use super::super::decide::{Decision, Spot, decide};
use super::super::{Batch, Cell, Committed, Effect, Integers, Outcome, Position, Rejection};
use super::fjall::Fault;
use super::hashed::{AsReckoned, Key, KeyRef};
use super::layout;
use super::log::Appends;
use super::prepare::{Prepared, PreparedEntry};
use super::view::Moment;
use crate::error::{Error, ErrorKind, Result};

/// What one batch of the group came to. Nothing of it may be told before the sync: even a
/// rejection may rest on a batch of the same group, and would reveal it.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Its effects are among the changes of the group.
    Applied(Committed),
    /// It asked for no effect, and its conditions held.
    Held,
    /// A condition failed.
    Rejected(Rejection),
    /// It could not be decided.
    Undecided(Error),
}

impl Verdict {
    /// The answer once the changes are durable.
    pub(super) fn when_durable(self) -> Result<Outcome> {
        match self {
            Verdict::Applied(committed) => Ok(Outcome::Committed(committed)),
            Verdict::Held => Ok(Outcome::Committed(Committed::default())),
            Verdict::Rejected(rejection) => Ok(Outcome::Rejected(rejection)),
            Verdict::Undecided(error) => Err(error),
        }
    }

    /// The answer when the changes could not be made durable. A verdict that may rest on them is
    /// void, but what it says of its own batch stays true: nothing of it was written.
    pub(super) fn when_failed(self, fault: &Fault) -> Error {
        match self {
            Verdict::Applied(_) => fault.met_by_write(),
            Verdict::Held | Verdict::Rejected(_) => fault.kept_from_writing(),
            Verdict::Undecided(error) => error,
        }
    }
}

/// What a group leaves at one key; `None` when it removes the cell. Most of it belongs to a batch:
/// every share in its bytes that is taken here is counted, and counting is not for nothing while
/// the thread that brought the batch has a share in them too.
#[derive(Debug)]
pub(super) struct Change<'b> {
    pub(super) key: &'b Key,
    pub(super) stored: Option<Cow<'b, Bytes>>,
}

/// The cells that a group changes, over the moment that it began with.
///
/// Each key is there once, with what the last batch left: fjall gives all writes of a group one
/// sequence number, under which a key can have one value only.
pub(super) struct Group<'v, 'b> {
    moment: Moment<'v>,
    changes: Vec<Change<'b>>,
    /// Where among the changes each key is; `None` in a group of one batch, where nobody asks.
    places: Option<HashMap<&'b Key, usize, AsReckoned>>,
    appends: Appends<'v>,
}

impl<'b> Change<'b> {
    /// The key, and what is stored at it from now on.
    pub(super) fn as_ref(&self) -> (KeyRef<'_>, Option<&[u8]>) {
        (self.key.as_ref(), self.stored.as_deref().map(|stored| &stored[..]))
    }
}

impl<'v, 'b> Group<'v, 'b> {
    /// A group of so many batches.
    pub(super) fn new(batches: usize, moment: Moment<'v>, appends: Appends<'v>) -> Self {
        let places = (batches > 1).then(HashMap::default);
        Group { moment, changes: Vec::new(), places, appends }
    }

    /// The number of the commit that this group will be.
    pub(super) fn commit(&self) -> u64 {
        self.moment.commit() + 1
    }

    /// Decides a batch on the store and on the batches before it, and takes its effects up if
    /// everything holds.
    pub(super) fn add(&mut self, prepared: &'b Prepared) -> Verdict {
        let decision = decide(&prepared.batch, |spot, _| match spot {
            Spot::Fence => self.look_up(prepared.fence.as_ref(), prepared.seen_at),
            Spot::Entry(entry) => self.look_up(prepared.entries.get(entry), prepared.seen_at),
        });
        match decision {
            Ok(Decision::Apply(integers)) => match self.append(prepared) {
                Ok(position) => match self.take_up(prepared, &integers) {
                    0 if position.is_none() => Verdict::Held,
                    _ => Verdict::Applied(Committed { integers, position }),
                },
                Err(error) => Verdict::Undecided(error),
            },
            Ok(Decision::Reject(rejection)) => Verdict::Rejected(rejection),
            Err(error) => Verdict::Undecided(error),
        }
    }

    /// The cell as the batches before this one leave it.
    fn look_up(&self, place: Option<&PreparedEntry>, seen_at: u64) -> Result<Option<Cell>> {
        let unprepared = || Error::new(ErrorKind::Internal, "a batch was not prepared as a whole");
        let PreparedEntry { key, seen, .. } = place.ok_or_else(unprepared)?;
        let change = self.places.as_ref().and_then(|places| places.get(key));
        let stored = match (change, seen) {
            (Some(&change), _) => self.changes[change].stored.as_deref().cloned(),
            (None, Some(seen)) if self.moment.is_unchanged_since(seen_at, key.hash) => seen.clone(),
            (None, _) => return self.moment.load(key.as_ref()),
        };
        stored.map(|stored| layout::decode(&key.bytes, stored)).transpose()
    }

    fn append(&mut self, prepared: &Prepared) -> Result<Option<Position>> {
        let Batch { space, append, .. } = &prepared.batch;
        let append = append.clone();
        append.map(|bytes| self.appends.add(&self.moment, space, bytes)).transpose()
    }

    /// Adds the effects of a batch to the changes, and says how many there are.
    fn take_up(&mut self, prepared: &'b Prepared, sums: &[Integers]) -> usize {
        let (mut sums, mut effects) = (sums.iter(), 0);
        self.changes.reserve(prepared.entries.len());
        if let Some(places) = &mut self.places {
            places.reserve(prepared.entries.len());
        }
        for (entry, place) in prepared.in_order() {
            let stored = match &entry.effect {
                None => continue,
                Some(Effect::Delete) => None,
                Some(Effect::Put { .. }) => place.put.as_ref().map(Cow::Borrowed),
                // One sum for each addition.
                Some(Effect::Add { stamp, .. }) => {
                    sums.next().map(|sum| Cow::Owned(layout::encode_integers(*stamp, sum).into()))
                }
            };
            effects += 1;
            match self.places.as_mut().map(|places| places.entry(&place.key)) {
                Some(Slot::Occupied(slot)) => {
                    self.changes[*slot.get()].stored = stored;
                    continue;
                }
                Some(Slot::Vacant(slot)) => {
                    slot.insert(self.changes.len());
                }
                // A batch has each address once.
                None => {}
            }
            self.changes.push(Change { key: &place.key, stored });
        }
        effects
    }

    /// The changes as fjall stores them, and what is appended to logs.
    pub(super) fn finish(self) -> (Vec<Change<'b>>, Appends<'v>) {
        (self.changes, self.appends)
    }
}
