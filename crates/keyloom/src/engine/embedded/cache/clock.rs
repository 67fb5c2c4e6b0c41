//! Which keys the last groups changed.
//!
//! A batch brings what its caller saw at some published moment. It still holds if no group after
//! that moment changed the key, which this table tells without a read. It knows keys by a part of
//! their hashes: of two keys that share it, a change of the other costs a read, and no more.

/// How many parts of hashes are told apart. A batch waits for a few groups at most, which change
/// some thousand keys, so that few keys meet others; and the table has 2 MiB.
const PLACES: usize = 1 << 18;

/// See the [module's](self) description.
pub(super) struct Recent {
    /// The last commit that changed a key of each place.
    last_changes: Box<[u64]>,
}

impl Default for Recent {
    fn default() -> Self {
        Recent { last_changes: vec![0; PLACES].into() }
    }
}

impl Recent {
    /// Remembers what a commit changed. Commits come in their order.
    pub(super) fn note(&mut self, commit: u64, hashes: impl Iterator<Item = u64>) {
        for hash in hashes {
            self.last_changes[place(hash)] = commit;
        }
    }

    /// Whether a key of this hash is certainly as it was right after that commit.
    pub(super) fn is_unchanged_since(&self, commit: u64, hash: u64) -> bool {
        self.last_changes[place(hash)] <= commit
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
    fn nothing_is_forgotten() {
        let mut recent = Recent::default();
        for commit in 1..=100_u64 {
            recent.note(commit, commit * 10_000..(commit + 1) * 10_000);
        }
        for commit in 1..=100_u64 {
            assert!(!recent.is_unchanged_since(commit - 1, commit * 10_000 + 1));
        }
    }

    #[test]
    fn keys_that_share_a_place_are_taken_for_each_other() {
        let mut recent = Recent::default();
        recent.note(3, [1].into_iter());
        assert!(!recent.is_unchanged_since(2, 1 + PLACES as u64));
        assert!(recent.is_unchanged_since(3, 1 + PLACES as u64));
    }
}
