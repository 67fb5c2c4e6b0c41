//! Several mends in one batch: they share a sync and a round trip.
//!
//! The batch rests on everything that each of them rests on, so that it changes exactly what was
//! judged, or nothing. If something moved, each is judged and mended by itself.

use std::collections::HashMap;

use super::pair_repair::{Hand, Mender, Step, condition};
use crate::engine::{Address, Batch, Capabilities, Effect, Stamp};

/// A group has at most so many entries: enough to share a sync, few enough for one record that
/// changed meanwhile not to spoil much.
const ENTRIES_MAX: usize = 128;

/// A group has at most about so many bytes.
const BYTES_MAX: usize = 1 << 20;

/// What a task takes of a batch: its cell, and pages of what it has found.
const TASK_ENTRIES: usize = 5;

/// No step has more entries.
const STEP_ENTRIES_MAX: usize = 3;

/// Steps that go together, each with what its owner knows it by.
pub(super) struct Group<T> {
    batch: Batch,
    bytes: usize,
    /// What the batch says of each address: as it was seen, and whether it changes.
    places: HashMap<Address, (Option<Stamp>, bool)>,
    members: Vec<T>,
}

impl<T> Group<T> {
    pub(super) fn new(mender: &Mender<'_>) -> Self {
        Group { batch: mender.batch(), bytes: 0, places: HashMap::new(), members: Vec::new() }
    }

    /// Whether a step and those before it have nothing to do with each other: none changes what
    /// another rests on, and they saw the same of what they share.
    pub(super) fn fits(&self, step: &Step) -> bool {
        step.rests_on.iter().all(|(address, stamp)| match self.places.get(address) {
            None => true,
            Some((seen, changes)) => seen == stamp && !changes && *address != step.entry,
        })
    }

    /// Adds a step that fits.
    pub(super) fn add(&mut self, step: &Step, hand: Hand, member: T) {
        for (address, stamp) in &step.rests_on {
            let changes = *address == step.entry && step.effect.is_some();
            if self.places.insert(address.clone(), (*stamp, changes)).is_some() {
                continue;
            }
            let effect = step.effect.clone().filter(|_| changes && hand == Hand::Real);
            let value = match &effect {
                Some(Effect::Put { bytes, .. }) => bytes.len(),
                _ => 0,
            };
            self.bytes += address.key.len() + value;
            self.batch.push(address.clone(), Some(condition(*stamp)), effect);
        }
        self.members.push(member);
    }

    /// Whether another step might not have room.
    pub(super) fn is_full(&self, allowed: &Capabilities) -> bool {
        self.batch.entries.len() + STEP_ENTRIES_MAX
            > ENTRIES_MAX.min(allowed.batch_entries_max.saturating_sub(TASK_ENTRIES))
            || self.bytes > BYTES_MAX.min(allowed.batch_bytes_max / 2)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn into_parts(self) -> (Batch, Vec<T>) {
        (self.batch, self.members)
    }
}
