//! How often, and after which pauses, a write that lost a race is tried again.

use std::time::Duration;

use crate::record::random_fraction;

/// How a conflicting write is repeated: so many attempts, with pauses that double from the
/// first and vary by the jitter, so that rivals do not meet again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// How often it is tried in all; at least once.
    pub attempts: u32,
    /// The pause after the first attempt. Each further one is twice as long.
    pub first_pause: Duration,
    /// No pause is longer than this.
    pub longest_pause: Duration,
    /// The part of a pause that is left to chance, from 0 to 1.
    pub jitter: f64,
}

impl Retry {
    /// For writes whose conflicts a person should hear of: 3 attempts, 100 then 200 ms apart.
    pub fn patient() -> Self {
        Retry {
            attempts: 3,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_millis(400),
            jitter: 0.25,
        }
    }

    /// For writes that only need their turn: 12 attempts, from half a millisecond on.
    pub fn eager() -> Self {
        Retry {
            attempts: 12,
            first_pause: Duration::from_micros(500),
            longest_pause: Duration::from_millis(100),
            jitter: 1.0,
        }
    }

    /// One attempt.
    pub fn never() -> Self {
        Retry { attempts: 1, ..Retry::patient() }
    }

    /// Waits after attempt number `made` (from 1); `false` when it was the last.
    pub(crate) async fn pause(&self, made: u32) -> bool {
        if made >= self.attempts {
            return false;
        }
        tokio::time::sleep(self.pause_after(made, random_fraction())).await;
        true
    }

    fn pause_after(&self, made: u32, chance: f64) -> Duration {
        let doubled =
            self.first_pause.saturating_mul(1_u32.checked_shl(made - 1).unwrap_or(u32::MAX));
        let longest = doubled.min(self.longest_pause);
        // NaN is no fraction, and counts as no jitter.
        let jitter = if self.jitter.is_nan() { 0.0 } else { self.jitter.clamp(0.0, 1.0) };
        let shortened = longest.as_secs_f64() * (1.0 - jitter + jitter * chance);
        // The longest of all durations is beyond what a float can be turned back into.
        Duration::try_from_secs_f64(shortened).map_or(longest, |pause| pause.min(longest))
    }
}

impl Default for Retry {
    fn default() -> Self {
        Retry::patient()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry { jitter: 0.0, ..Retry::patient() };
        let pauses: Vec<u128> =
            (1..5).map(|made| retry.pause_after(made, 0.5).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 400]);
    }

    #[test]
    fn jitter_shortens_and_never_lengthens() {
        let retry = Retry::patient();
        assert_eq!(retry.pause_after(1, 0.0).as_millis(), 75);
        assert!(retry.pause_after(1, 0.999).as_millis() <= 100);
        assert!(retry.pause_after(90, 0.999) <= retry.longest_pause);
    }

    #[test]
    fn no_setting_is_too_odd_for_a_pause() {
        let longest = Duration::MAX;
        for jitter in [f64::NAN, f64::NEG_INFINITY, f64::INFINITY, -1.0, 0.0, 0.5, 2.0] {
            for first_pause in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
                let retry = Retry { attempts: 9, first_pause, longest_pause: longest, jitter };
                assert!(retry.pause_after(1, 0.5) <= first_pause, "{retry:?}");
                assert!(retry.pause_after(u32::MAX, 0.999) <= longest, "{retry:?}");
            }
        }
        let retry = Retry { jitter: f64::NAN, ..Retry::patient() };
        assert_eq!(retry.pause_after(1, 0.5).as_millis(), 100);
    }
}
