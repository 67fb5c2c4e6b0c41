//! A clock that runs while something is waited for.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::phase::Phase;

/// A timer that is moved rarely.
///
/// A busy connection starts and stops its clocks with every request. The timer is therefore never
/// moved when that happens: it rings at the end that was set when it was last looked at, and is
/// then set to the true end if that is later.
#[derive(Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Ready at this moment.
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

/// How long a phase lasts.
#[derive(Default)]
pub(super) struct Clock {
    alarm: Alarm,
    /// What is waited for, and until when.
    running: Option<(Phase, Instant)>,
}

impl Clock {
    /// Starts the clock for a phase, unless it runs for that phase already; ready when the limit
    /// is over.
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
