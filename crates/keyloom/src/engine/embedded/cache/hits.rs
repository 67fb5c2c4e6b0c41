//! How often a cache had what was asked for.
//!
//! Every read counts, on whichever core it runs. One number that all cores write would travel from
//! one to the other with each read; so each thread has a stripe to count in, alone unless there are
//! more threads than stripes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 32;

/// As far apart as processors fetch memory together.
#[repr(align(128))]
#[derive(Default)]
struct Stripe {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Hits and misses of one cache since the store was opened.
#[derive(Default)]
pub(super) struct Hits {
    stripes: [Stripe; STRIPES],
}

impl Hits {
    /// Notes whether what was asked for was there.
    pub(super) fn note(&self, was_there: bool) {
        let Stripe { hits, misses } = &self.stripes[own_stripe()];
        let count = if was_there { hits } else { misses };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was there, and how often not.
    pub(super) fn read(&self) -> (u64, u64) {
        let sum = |count: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|stripe| count(stripe).load(Ordering::Relaxed)).sum()
        };
        (sum(|stripe| &stripe.hits), sum(|stripe| &stripe.misses))
    }
}

/// The stripe of this thread; threads get them in turns.
fn own_stripe() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
    }
    OWN.with(|own| *own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_counted() {
        let hits = Hits::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| (0..100).for_each(|n| hits.note(n % 4 == 0)));
            }
        });
        assert_eq!(hits.read(), (2 * 25 * STRIPES as u64, 2 * 75 * STRIPES as u64));
    }
}
