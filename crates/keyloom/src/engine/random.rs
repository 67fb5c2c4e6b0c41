//! Pseudo-random numbers that a seed determines (splitmix64), so that injected faults and random
//! checks can be repeated.

/// A sequence of numbers that a seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of that seed.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // The remainder favours low numbers, but not noticeably at these sizes.
        (self.number() % end.max(1) as u64) as usize
    }

    /// `true` with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        // A double holds 53 bits exactly.
        let unit = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        unit < probability
    }

    /// One of the items. There must be one.
    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// Shuffles the items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for place in (1..items.len()).rev() {
            items.swap(place, self.below(place + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_another_differs() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.number(), random.number()]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn chances_are_what_they_say_and_shuffles_keep_every_item() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| !random.chance(0.0) && random.chance(1.0)));
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2_000..3_000).contains(&hits), "{hits} of 10,000 at 0.25");
        let mut items: Vec<usize> = (0..100).collect();
        random.shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
