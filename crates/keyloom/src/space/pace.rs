//! How fast work over a whole store goes, so that it leaves room for others.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// No pause is longer, so that others hear of work that goes slowly.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How fast work over a whole space goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pace {
    /// As fast as it can.
    #[default]
    Full,
    /// At most about so many keys a second; 0 is taken for 1.
    KeysPerSecond(u32),
    /// At most about so many percent of the time, from 1 to 100.
    PercentOfTime(u8),
}

impl Pace {
    /// How long to pause after so many keys that took so long.
    fn pause(self, keys: u64, took: Duration) -> Duration {
        match self {
            Pace::Full => Duration::ZERO,
            Pace::KeysPerSecond(rate) => {
                let wanted = Duration::from_secs(1).mul_f64(keys as f64 / f64::from(rate.max(1)));
                wanted.saturating_sub(took)
            }
            Pace::PercentOfTime(percent) => {
                let percent = u32::from(percent.clamp(1, 100));
                took.saturating_mul(100 - percent) / percent
            }
        }
    }
}

/// Somebody who keeps a pace.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    /// Since when the next keys are worked on.
    since: Instant,
    /// The pause that is still owed.
    owed: Duration,
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Self {
        Pacer { pace, since: Instant::now(), owed: Duration::ZERO }
    }

    /// Notes that so many keys were worked on.
    pub(crate) fn worked(&mut self, keys: u64) {
        self.owed += self.pace.pause(keys, self.since.elapsed());
        self.since = Instant::now();
    }

    /// Pauses for what was worked on; `false` when a part of the pause is still owed.
    pub(crate) async fn pause(&mut self) -> bool {
        let now = self.owed.min(PAUSE_MAX);
        if !now.is_zero() {
            tokio::time::sleep(now).await;
            self.owed -= now;
        }
        self.since = Instant::now();
        self.owed.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pause_makes_up_for_what_was_too_fast() {
        assert_eq!(Pace::Full.pause(1_000, SECOND), Duration::ZERO);
        assert_eq!(Pace::KeysPerSecond(100).pause(300, SECOND), 2 * SECOND);
        assert_eq!(Pace::KeysPerSecond(1_000).pause(300, SECOND), Duration::ZERO);
        assert_eq!(Pace::KeysPerSecond(0).pause(3, Duration::ZERO), 3 * SECOND);
        assert_eq!(Pace::PercentOfTime(25).pause(7, SECOND), 3 * SECOND);
        assert_eq!(Pace::PercentOfTime(100).pause(7, SECOND), Duration::ZERO);
        assert_eq!(Pace::PercentOfTime(0).pause(7, SECOND), 99 * SECOND);
    }

    /// The clock is that of the test: it moves only while everybody waits.
    #[tokio::test(start_paused = true)]
    async fn long_pauses_come_in_parts() {
        let begun = Instant::now();
        let mut pacer = Pacer::new(Pace::KeysPerSecond(100));
        let mut parts = 0;
        for _ in 0..4 {
            pacer.worked(256);
            parts += 1;
            while !pacer.pause().await {
                parts += 1;
            }
        }
        assert_eq!(begun.elapsed().as_millis(), 10_240);
        assert_eq!(parts, 8, "no part is longer than two seconds");
    }
}
