//! The last five minutes in small steps, for plots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::{Counts, Histogram};

/// How many steps are kept.
const MOMENTS: usize = 60;

/// The requests of the last steps. The first request of a new step clears the slot of the oldest
/// step. Requests at that very moment may be missing, but only from the plot.
#[derive(Debug)]
pub(crate) struct Window {
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    /// The number of the step, counted from the start of the process.
    step: AtomicU64,
    errors: AtomicU64,
    took: Histogram,
}

/// One step of the window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment {
    /// Requests a second.
    pub(crate) requests_per_second: f64,
    /// Answers with status 500 and above, a second.
    pub(crate) errors_per_second: f64,
    /// The median duration in microseconds; `None` without requests.
    pub(crate) p50_us: Option<u64>,
    /// The 99th percentile of the durations.
    pub(crate) p99_us: Option<u64>,
}

impl Moment {
    /// The length of a step.
    pub(crate) const STEP: Duration = Duration::from_secs(5);
}

impl Default for Window {
    fn default() -> Self {
        let slot = || Slot {
            step: AtomicU64::new(u64::MAX),
            errors: AtomicU64::new(0),
            took: Histogram::default(),
        };
        Window { slots: std::iter::repeat_with(slot).take(MOMENTS).collect() }
    }
}

impl Window {
    /// Counts a request that ended at this time after the start.
    pub(crate) fn add(&self, at: Duration, took: Duration, is_error: bool) {
        let step = step(at);
        let Some(slot) = self.slot(step) else { return };
        let found = slot.step.load(Ordering::Acquire);
        if found != step {
            let order = (Ordering::AcqRel, Ordering::Acquire);
            if slot.step.compare_exchange(found, step, order.0, order.1).is_ok() {
                slot.errors.store(0, Ordering::Relaxed);
                slot.took.clear();
            }
        }
        slot.took.add(took);
        slot.errors.fetch_add(u64::from(is_error), Ordering::Relaxed);
    }

    /// The steps up to this time after the start, oldest first. The last step is not over yet.
    pub(crate) fn moments(&self, at: Duration) -> Vec<Moment> {
        let now = step(at);
        let kept = MOMENTS as u64;
        (0..kept)
            .rev()
            .map(|ago| now.checked_sub(ago).map_or(NOTHING, |step| self.moment(step)))
            .collect()
    }

    fn moment(&self, step: u64) -> Moment {
        let slot = self.slot(step).filter(|slot| slot.step.load(Ordering::Acquire) == step);
        let Some(slot) = slot else { return NOTHING };
        let counts: Counts = slot.took.read();
        let a_second = |count: u64| count as f64 / Moment::STEP.as_secs_f64();
        Moment {
            requests_per_second: a_second(counts.total()),
            errors_per_second: a_second(slot.errors.load(Ordering::Relaxed)),
            p50_us: counts.quantile_us(0.5),
            p99_us: counts.quantile_us(0.99),
        }
    }

    fn slot(&self, step: u64) -> Option<&Slot> {
        self.slots.get((step % MOMENTS as u64) as usize)
    }
}

const NOTHING: Moment =
    Moment { requests_per_second: 0.0, errors_per_second: 0.0, p50_us: None, p99_us: None };

fn step(at: Duration) -> u64 {
    at.as_secs() / Moment::STEP.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_stands_in_its_step_and_leaves_after_five_minutes() {
        let window = Window::default();
        let took = Duration::from_millis(3);
        window.add(Duration::from_secs(12), took, false);
        window.add(Duration::from_secs(13), took, true);
        let last = |at: u64| window.moments(Duration::from_secs(at)).pop().unwrap_or(NOTHING);
        assert_eq!(last(14).requests_per_second, 0.4);
        assert_eq!(last(14).errors_per_second, 0.2);
        assert!(last(14).p50_us.is_some_and(|us| (2_000..=5_000).contains(&us)));
        assert_eq!(last(15), NOTHING);
        let seen = |at: u64| {
            window
                .moments(Duration::from_secs(at))
                .iter()
                .filter(|moment| **moment != NOTHING)
                .count()
        };
        assert_eq!((seen(309), seen(310)), (1, 0));
        // The step that replaces it begins at zero.
        window.add(Duration::from_secs(312), took, false);
        assert_eq!(last(312).requests_per_second, 0.2);
        assert_eq!(window.moments(Duration::ZERO).len(), MOMENTS);
    }
}
