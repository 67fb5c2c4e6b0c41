//! Which keys the last groups changed.
//!
//! A batch brings what its caller saw at some published moment. It still holds if no group after
//! that moment changed the key, which this table tells without a read. It knows keys by their
//! hashes: of two keys with one hash, a change of the other costs a read, and no more.

use std::collections::{HashMap, VecDeque};

use super::hashed::AsReckoned;

/// How many changes are remembered. A batch waits for a few groups at most.
const CHANGES_MAX: usize = 1 << 16;

/// See the [module's](self) description.
#[derive(Default)]
pub(super) struct Recent {
    /// The last commit that changed a key of this hash.
    last_changes: HashMap<u64, u64, AsReckoned>,
    /// The hashes of each remembered commit, the oldest first.
    commits: VecDeque<(u64, Vec<u64>)>,
    remembered: usize,
    /// The last commit that was forgotten: nothing is known of it and of those before.
    forgotten: u64,
}

impl Recent {
    /// Remembers what a commit changed.
    pub(super) fn note(&mut self, commit: u64, hashes: impl Iterator<Item = u64>) {
        let hashes: Vec<u64> = hashes.collect();
        self.remembered += hashes.len();
        self.last_changes.extend(hashes.iter().map(|&hash| (hash, commit)));
        self.commits.push_back((commit, hashes));
        while self.remembered > CHANGES_MAX {
            self.forget_oldest();
        }
    }

    /// Whether a key of this hash is certainly as it was right after that commit.
    pub(super) fn is_unchanged_since(&self, commit: u64, hash: u64) -> bool {
        commit >= self.forgotten && self.last_changes.get(&hash).is_none_or(|&last| last <= commit)
    }

    fn forget_oldest(&mut self) {
        let Some((commit, hashes)) = self.commits.pop_front() else { return };
        self.remembered -= hashes.len();
        self.forgotten = commit;
        for hash in hashes {
            if self.last_changes.get(&hash) == Some(&commit) {
                self.last_changes.remove(&hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_for_those_who_looked_before_it() {
        let mut recent = Recent::default();
        recent.note(6, [1, 2].into_iter());
        assert!(recent.is_unchanged_since(6, 1));
        assert!(!recent.is_unchanged_since(5, 1));
        assert!(recent.is_unchanged_since(5, 3));
        recent.note(7, [1].into_iter());
        assert!(!recent.is_unchanged_since(6, 1));
        assert!(recent.is_unchanged_since(6, 2));
    }

    #[test]
    fn nothing_is_certain_of_what_was_forgotten() {
        let mut recent = Recent::default();
        recent.note(1, [1].into_iter());
        recent.note(2, 2..2 + CHANGES_MAX as u64);
        assert!(!recent.is_unchanged_since(0, 1), "commit 1 was forgotten");
        assert!(!recent.is_unchanged_since(0, 99), "so that nothing before it is certain");
        assert!(recent.is_unchanged_since(1, 1));
        assert!(!recent.is_unchanged_since(1, 2));
        assert!(recent.is_unchanged_since(2, 2));
    }

    #[test]
    fn a_key_that_changed_again_outlives_its_first_change() {
        let mut recent = Recent::default();
        recent.note(1, [7].into_iter());
        recent.note(2, [7].into_iter());
        recent.forget_oldest();
        assert!(!recent.is_unchanged_since(1, 7));
        assert!(recent.is_unchanged_since(2, 7));
    }

    #[test]
    fn a_commit_larger_than_the_table_is_forgotten_at_once() {
        let mut recent = Recent::default();
        recent.note(3, 0..=CHANGES_MAX as u64);
        assert!(recent.commits.is_empty() && recent.last_changes.is_empty());
        assert!(!recent.is_unchanged_since(2, 0));
        assert!(recent.is_unchanged_since(3, 0));
    }
}
