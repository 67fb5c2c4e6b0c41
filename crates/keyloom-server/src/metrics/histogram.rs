//! Histograms of durations, in steps that roughly double.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of the steps, in microseconds. Longer durations have a step of their own.
pub(crate) const STEPS_US: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// Counts durations. Every count is one addition.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: [AtomicU64; STEPS_US.len() + 1],
    sum_us: AtomicU64,
}

/// A histogram at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of durations in each step: above the previous step's end, up to its own.
    pub(crate) counts: [u64; STEPS_US.len() + 1],
    /// The sum of all durations, in microseconds.
    pub(crate) sum_us: u64,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn add(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let step = STEPS_US.partition_point(|end| *end < us);
        if let Some(count) = self.counts.get(step) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The counts so far.
    pub(crate) fn read(&self) -> Counts {
        let mut counts =
            Counts { sum_us: self.sum_us.load(Ordering::Relaxed), ..Counts::default() };
        for (read, count) in counts.counts.iter_mut().zip(&self.counts) {
            *read = count.load(Ordering::Relaxed);
        }
        counts
    }

    /// Starts again from zero.
    pub(crate) fn clear(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.sum_us.store(0, Ordering::Relaxed);
    }
}

impl Counts {
    /// The number of durations.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The duration that this fraction of all durations (0 to 1) does not exceed, in microseconds,
    /// as exact as the steps are. `None` if there are none.
    pub(crate) fn quantile_us(&self, part: f64) -> Option<u64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        let wanted = (total as f64 * part).clamp(1.0, total as f64);
        let (mut before, mut start) = (0, 0);
        for (place, count) in self.counts.iter().enumerate() {
            // Durations beyond the last step are reported as its end.
            let end = STEPS_US.get(place).copied().unwrap_or(start);
            if *count > 0 && (before + count) as f64 >= wanted {
                let into = (wanted - before as f64) / *count as f64;
                return Some(start + ((end - start) as f64 * into) as u64);
            }
            before += count;
            start = end;
        }
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_lie_in_the_step_of_the_true_one(
            mut times in prop::collection::vec(0_u64..20_000_000, 1..200),
            part in 0.0_f64..=1.0,
        ) {
            let histogram = Histogram::default();
            times.iter().for_each(|us| histogram.add(Duration::from_micros(*us)));
            times.sort_unstable();
            let place = ((times.len() as f64 * part).ceil() as usize).clamp(1, times.len()) - 1;
            let step = |us: u64| STEPS_US.partition_point(|end| *end < us);
            let told = histogram.read().quantile_us(part).unwrap_or_default();
            let last = STEPS_US.len() - 1;
            prop_assert!(
                step(told).abs_diff(step(times[place]).min(last)) <= 1,
                "told {told}, true {}", times[place],
            );
            prop_assert_eq!(histogram.read().total(), times.len() as u64);
        }
    }
}
