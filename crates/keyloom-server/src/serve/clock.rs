//! Clocks that run only while the server waits for something.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::phase::Phase;

/// A timer that is rarely changed.
///
/// A busy connection starts and stops its clocks with every request. Resetting a timer each time
/// would be expensive. So the timer keeps the end that was set when it was last polled. When it
/// rings, it is set to the true end if that is later.
#[derive(Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Ready at this time.
    pub(super) fn poll(&mut self, end: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }
}

/// Measures how long a phase lasts.
#[derive(Default)]
pub(super) struct Clock {
    alarm: Alarm,
    /// The current phase, and when its limit is reached.
    running: Option<(Phase, Instant)>,
}

impl Clock {
    /// Starts the clock for a phase, unless it already runs for that phase. Ready when the limit
    /// has passed.
    pub(super) fn poll(
        &mut self,
        phase: Phase,
        limit: Duration,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let end = match self.running {
            Some((running, end)) if running == phase => end,
            _ => Instant::now() + limit,
        };
        self.running = Some((phase, end));
        self.alarm.poll(end, context)
    }

    pub(super) fn stop(&mut self) {
        self.running = None;
    }
}
