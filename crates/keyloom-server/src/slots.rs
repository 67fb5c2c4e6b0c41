//! A bounded number of slots for things that last long: streams and pinned snapshots.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many slots are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(Arc<AtomicUsize>);

/// A taken slot, until it is dropped.
pub(crate) struct Slot(Slots);

impl Slots {
    /// Takes a slot, unless `most` slots are taken.
    pub(crate) fn enter(&self, most: usize) -> Option<Slot> {
        let more = |open| (open < most).then_some(open + 1);
        let entered = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        entered.is_ok().then(|| Slot(self.clone()))
    }

    /// How many are taken now.
    pub(crate) fn open(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
