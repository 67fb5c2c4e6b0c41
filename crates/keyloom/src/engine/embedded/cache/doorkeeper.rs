//! Which keys were asked for a short while ago.
//!
//! Most of a large store is read once in a long time. To keep that costs more than to read it did,
//! and pushes out what is wanted again. So things are kept when they are read for the second time.

use std::sync::atomic::{AtomicU32, Ordering};

/// See the [module's](self) description.
pub(super) struct Doorkeeper {
    /// Each key has one place, and the last one that came to it leaves its mark.
    marks: Box<[AtomicU32]>,
}

impl Doorkeeper {
    pub(super) const BYTES_PER_PLACE: usize = size_of::<AtomicU32>();

    pub(super) fn new(places: usize) -> Self {
        Doorkeeper { marks: (0..places).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Whether this key came before, and no other one to its place since.
    pub(super) fn knows(&self, hash: u64) -> bool {
        let (place, mark) = ((hash >> 32) as usize % self.marks.len().max(1), hash as u32);
        self.marks.get(place).is_some_and(|last| last.swap(mark, Ordering::Relaxed) == mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_when_it_comes_again_and_no_other_took_its_place() {
        let doorkeeper = Doorkeeper::new(1);
        assert!(!doorkeeper.knows(7) && doorkeeper.knows(7));
        assert!(!doorkeeper.knows(8) && !doorkeeper.knows(7) && doorkeeper.knows(7));
        assert!(!Doorkeeper::new(0).knows(7));
    }
}
