//! When each key changed last, for all who keep something of it in memory.
//!
//! Time is counted in commits. The commit thread notes what a commit changes before it touches any
//! cache, and publishes the commit after that. Everybody else asks one question: has this key
//! changed since that commit?
//!
//! Who fills a cache has read at a moment that may be over. The filler takes the lock of the place
//! that is filled, and then asks the clock; the commit thread notes a change first, and then takes the
//! same lock to change what is kept. So either the filler learns of the change and fills nothing, or
//! the commit thread finds what was filled and changes it. Nothing old stays.
//!
//! Keys are known by a part of their hashes. Of two keys that share it, a change of one counts for
//! the other as well: something is read again that was still true, and nothing worse.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many parts of hashes are told apart: 2 MiB. Lists stay whole as long as few of these have
/// changed since.
const PLACES: usize = 1 << 18;

/// See the [module's](self) description.
#[derive(Debug)]
pub(super) struct Clock {
    /// The last commit that changed a key of each place.
    last_changes: Box<[AtomicU64]>,
    /// The last commit that changed anything.
    last_change: AtomicU64,
}

/// Who reads at one moment, and may look into caches and fill them.
#[derive(Clone, Copy)]
pub(super) struct Reader<'c> {
    pub(super) clock: &'c Clock,
    /// The last commit before the moment.
    pub(super) commit: u64,
}

impl Reader<'_> {
    /// Whether a key of this hash is certainly as it was at the reader's moment.
    pub(super) fn is_current(self, hash: u64) -> bool {
        self.clock.is_unchanged_since(self.commit, hash)
    }

    /// Whether all keys are.
    pub(super) fn is_all_current(self) -> bool {
        self.clock.last_change.load(Ordering::Acquire) <= self.commit
    }
}

impl Clock {
    /// A clock of a store that was just opened: nothing has changed since.
    pub(super) fn new() -> Self {
        let last_changes = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Clock { last_changes, last_change: AtomicU64::new(0) }
    }

    /// A clock for where nothing is kept, and nothing changes.
    pub(super) fn stopped() -> Self {
        Clock { last_changes: Box::default(), last_change: AtomicU64::new(0) }
    }

    /// Notes that a commit changes keys of these hashes. One thread does so, with commits in their
    /// order.
    pub(super) fn note(&self, commit: u64, hashes: impl Iterator<Item = u64>) {
        self.last_change.store(commit, Ordering::Release);
        for last in hashes.filter_map(|hash| self.last_changes.get(place(hash))) {
            last.store(commit, Ordering::Release);
        }
    }

    /// Whether a key of this hash is certainly as it was right after that commit.
    pub(super) fn is_unchanged_since(&self, commit: u64, hash: u64) -> bool {
        let last = self.last_changes.get(place(hash));
        last.is_none_or(|last| last.load(Ordering::Acquire) <= commit)
    }
}

fn place(hash: u64) -> usize {
    hash as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_for_those_who_looked_before_it() {
        let clock = Clock::new();
        clock.note(6, [1, 2].into_iter());
        assert!(clock.is_unchanged_since(6, 1));
        assert!(!clock.is_unchanged_since(5, 1));
        assert!(clock.is_unchanged_since(5, 3));
        clock.note(7, [1].into_iter());
        assert!(!clock.is_unchanged_since(6, 1));
        assert!(clock.is_unchanged_since(6, 2));
    }

    #[test]
    fn a_reader_knows_whether_anything_has_changed_since() {
        let clock = Clock::new();
        clock.note(6, [1].into_iter());
        let reader = |commit| Reader { clock: &clock, commit };
        assert!(!reader(5).is_all_current() && !reader(5).is_current(1) && reader(5).is_current(2));
        assert!(reader(6).is_all_current() && reader(6).is_current(1));
    }

    #[test]
    fn nothing_is_forgotten() {
        let clock = Clock::new();
        for commit in 1..=100_u64 {
            clock.note(commit, commit * 10_000..(commit + 1) * 10_000);
        }
        for commit in 1..=100_u64 {
            assert!(!clock.is_unchanged_since(commit - 1, commit * 10_000 + 1));
        }
    }

    #[test]
    fn keys_that_share_a_place_are_taken_for_each_other() {
        let clock = Clock::new();
        clock.note(3, [1].into_iter());
        assert!(!clock.is_unchanged_since(2, 1 + PLACES as u64));
        assert!(clock.is_unchanged_since(3, 1 + PLACES as u64));
    }
}
