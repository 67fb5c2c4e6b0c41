//! Measures how fast a caller receives an answer.
//!
//! Only time counts in which there was something to send and the caller received nothing. A stream
//! without news, and an answer that takes long to compute, do not count against the caller. A
//! window begins when the server first waits for the caller. Whenever the waiting adds up to the
//! length of the window, the caller must have received enough bytes since the window began to match
//! the least rate. So a caller who receives `b` bytes makes the server wait for at most `b` divided
//! by that rate, plus one window.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::clock::Alarm;

/// What a caller received in the current window.
pub(super) struct Pace {
    window: Duration,
    /// The least number of bytes within a window.
    bytes_min: u64,
    taken: u64,
    /// How long the server has waited for the caller, and since when it is waiting now.
    waited: Duration,
    waiting: Option<Instant>,
    alarm: Alarm,
}

impl Pace {
    /// A rate in bytes per second, over windows of this length. The caller must receive at least
    /// one byte.
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

    /// The caller received this many bytes.
    pub(super) fn took(&mut self, bytes: usize) {
        self.waited += self.waiting.take().map_or(Duration::ZERO, |since| since.elapsed());
        // Bytes that fit into the system's buffers at once say nothing about the caller.
        if self.waited > Duration::ZERO {
            self.taken += bytes as u64;
        }
    }

    /// The caller receives nothing now. Ready once it has been too slow.
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
