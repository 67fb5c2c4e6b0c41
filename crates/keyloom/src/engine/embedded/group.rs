//! A group of batches that share one sync: what each comes to, and what is written for all.

use std::collections::HashMap;

use bytes::Bytes;

use super::super::decide::{Decision, Write, decide};
use super::super::{Address, Batch, Cell, Committed, Outcome, Rejection, Space};
use super::fault::Fault;
use super::layout;
use super::log::{Appends, Changes};
use super::view::Moment;
use crate::error::{Error, Result};

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

/// The cells that a group changes, by their stored keys, over the moment that it began with.
///
/// Each key is there once, with what the last batch left: fjall gives all writes of a group one
/// sequence number, under which a key can have one value only.
pub(super) struct Group<'v> {
    moment: Moment<'v>,
    changes: HashMap<Bytes, Option<Cell>>,
    appends: Appends<'v>,
    buffer: Vec<u8>,
}

impl<'v> Group<'v> {
    pub(super) fn new(moment: Moment<'v>, appends: Appends<'v>) -> Self {
        Group { moment, changes: HashMap::new(), appends, buffer: Vec::new() }
    }

    /// The number of the commit that this group will be.
    pub(super) fn commit(&self) -> u64 {
        self.moment.commit() + 1
    }

    /// Decides a batch on the store and on the batches before it, and takes its effects up if
    /// everything holds.
    pub(super) fn add(&mut self, mut batch: Batch) -> Verdict {
        let space = batch.space.clone();
        let append = batch.append.take();
        match decide(batch, |address| self.look_up(&space, address)) {
            Ok(Decision::Apply { writes, .. }) if writes.is_empty() && append.is_none() => {
                Verdict::Held
            }
            Ok(Decision::Apply { writes, sums }) => {
                let append = append.map(|bytes| self.appends.add(&self.moment, &space, bytes));
                match append.transpose() {
                    Ok(position) => {
                        self.take_up(&space, writes);
                        Verdict::Applied(Committed { integers: sums, position })
                    }
                    Err(error) => Verdict::Undecided(error),
                }
            }
            Ok(Decision::Reject(rejection)) => Verdict::Rejected(rejection),
            Err(error) => Verdict::Undecided(error),
        }
    }

    fn look_up(&mut self, space: &Space, address: &Address) -> Result<Option<Cell>> {
        layout::stored_key(space, &address.area, &address.key, &mut self.buffer);
        match self.changes.get(&self.buffer[..]) {
            Some(changed) => Ok(changed.clone()),
            None => self.moment.load(&self.buffer),
        }
    }

    fn take_up(&mut self, space: &Space, writes: Vec<Write>) {
        for Write { address, cell } in writes {
            let mut key = Vec::new();
            layout::stored_key(space, &address.area, &address.key, &mut key);
            self.changes.insert(key.into(), cell);
        }
    }

    /// The changes as fjall stores them, and what is appended to logs.
    pub(super) fn finish(self) -> (Changes, Appends<'v>) {
        let changes = self
            .changes
            .into_iter()
            .map(|(key, cell)| (key, cell.map(|cell| layout::encode(&cell).into())))
            .collect();
        (changes, self.appends)
    }
}
