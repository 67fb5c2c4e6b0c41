//! What this process does without, because fjall was found to work otherwise than assumed.

use std::sync::atomic::{AtomicU8, Ordering};

/// A way to be faster that rests on how fjall works inside. Without it everything is right, and
/// something takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShortCut {
    /// A key that the memtable filter rules out is looked for in the tables alone.
    Absence,
    /// A store that was closed has no journal, and its batches are numbered on by us.
    Numbering,
    /// Zeros are written ahead of the journal.
    Preallocation,
}

impl ShortCut {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// What was found, and what follows for people who run the store.
    fn without(self) -> &'static str {
        match self {
            ShortCut::Absence => {
                "tables do not answer as expected: inserts look for absent keys the long way"
            }
            ShortCut::Numbering => {
                "batches cannot be numbered on: the journal is kept, and opening takes longer"
            }
            ShortCut::Preallocation => {
                "the journal is not as long as reckoned: it is not preallocated, and syncs take longer"
            }
        }
    }
}

/// Which short cuts are taken; all of them until one is found to be wrong.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    lost: AtomicU8,
}

impl Trust {
    pub(crate) fn has(&self, short_cut: ShortCut) -> bool {
        // Whoever loses it makes nothing else visible by it.
        self.lost.load(Ordering::Relaxed) & short_cut.bit() == 0
    }

    /// Takes the short cut no more, and warns the first time.
    pub(crate) fn lose(&self, short_cut: ShortCut) {
        if self.lost.fetch_or(short_cut.bit(), Ordering::Relaxed) & short_cut.bit() == 0 {
            tracing::warn!(
                target: "keyloom::engine",
                "fjall does not work as this version of Keyloom expects; {}",
                short_cut.without()
            );
        }
    }

    /// How many are not taken.
    pub(crate) fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed).count_ones()
    }
}
