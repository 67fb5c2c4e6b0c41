//! How fast a caller takes an answer.
//!
//! Only the time counts in which there was something to send and the caller took none of it: a
//! stream without news, and an answer that takes long to be made, cost the caller nothing. A window
//! begins when the caller is first waited for. Each time that such waiting adds up to the length of
//! the window, what was taken since it began must come to the least rate. Whoever takes `b` bytes
//! therefore keeps us waiting for at most `b` divided by that rate, and one window.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::clock::Alarm;

/// What a caller took within the window that runs.
pub(super) struct Pace {
    window: Duration,
    /// The least that must be taken within a window.
    bytes_min: u64,
    taken: u64,
    /// For how long the caller was waited for, and since when it is again.
    waited: Duration,
    waiting: Option<Instant>,
    alarm: Alarm,
}

impl Pace {
    /// A rate, in bytes a second, over windows of this length. At the least one byte is taken.
    pub(super) fn new(window: Duration, rate_min: usize) -> Self {
        let bytes_min = (rate_min as f64 * window.as_secs_f64()) as u64;
        Pace {
            window,
            bytes_min: bytes_min.max(1),
            taken: 0,
            waited: Duration::ZERO,
            waiting: None,
            alarm: Alarm::default(),
        }
    }

    /// The caller took so many bytes.
    pub(super) fn took(&mut self, bytes: usize) {
        self.waited += self.waiting.take().map_or(Duration::ZERO, |since| since.elapsed());
        // What fits into the buffers of the system at once says nothing of the caller.
        if self.waited > Duration::ZERO {
            self.taken += bytes as u64;
        }
    }

    /// The caller takes nothing now. Ready when it has been too slow.
    pub(super) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            let since = *self.waiting.get_or_insert(now);
            let left = self.window.saturating_sub(self.waited);
            ready!(self.alarm.poll(since + left, context));
            if self.taken < self.bytes_min {
                return Poll::Ready(());
            }
            (self.taken, self.waited, self.waiting) = (0, Duration::ZERO, None);
        }
    }
}
