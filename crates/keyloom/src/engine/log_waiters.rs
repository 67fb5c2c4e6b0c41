//! Wakes those who wait for a log to grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::address::Space;
use crate::error::{Error, ErrorKind, Result};

/// Those who wait, by the space whose log they wait for. Waking where nobody waits costs a look.
#[derive(Debug, Default)]
pub(crate) struct LogWaiters(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    by_space: HashMap<Space, Arc<Notify>>,
}

impl LogWaiters {
    /// Has everyone who waits for the space look again. What they wait for must show already.
    pub(crate) fn wake(&self, space: &Space) {
        if let Some(notify) = self.state().by_space.get(space) {
            notify.notify_waiters();
        }
    }

    /// Ends all waiting, from now on.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.by_space.values().for_each(|notify| notify.notify_waiters());
    }

    /// Looks now and after each wake-up, until there is something. Fails when `look` does, and when
    /// all waiting has ended.
    pub(crate) async fn wait<T>(
        &self,
        space: &Space,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let waiter = self.join(space);
        loop {
            // It hears every wake-up from here on, so that none is missed while we look.
            let woken = waiter.notify.notified();
            let is_over = self.state().is_over;
            if let Some(found) = look()? {
                return Ok(found);
            }
            if is_over {
                return Err(Error::new(ErrorKind::Closed, "the store was closed"));
            }
            woken.await;
        }
    }

    fn join<'w>(&'w self, space: &'w Space) -> Waiter<'w> {
        let notify = Arc::clone(self.state().by_space.entry(space.clone()).or_default());
        Waiter { all: self, space, notify }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits. The last one removes the space from the table.
struct Waiter<'w> {
    all: &'w LogWaiters,
    space: &'w Space,
    notify: Arc<Notify>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        /// The table has one, and so have we.
        const NOBODY_ELSE: usize = 2;
        let mut state = self.all.state();
        if Arc::strong_count(&self.notify) == NOBODY_ELSE {
            state.by_space.remove(self.space);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[tokio::test]
    async fn the_last_who_stops_waiting_removes_the_space() {
        let waiters = LogWaiters::default();
        let space = Space::main();
        let mut first = Box::pin(waiters.wait::<()>(&space, || Ok(None)));
        let mut second = Box::pin(waiters.wait::<()>(&space, || Ok(None)));
        assert!(poll_once(&mut first).await.is_none());
        assert!(poll_once(&mut second).await.is_none());
        drop(first);
        assert_eq!(waiters.state().by_space.len(), 1);
        waiters.end();
        assert_eq!(second.await.unwrap_err().kind(), ErrorKind::Closed);
        assert!(waiters.state().by_space.is_empty());
        let late = waiters.wait::<()>(&space, || Ok(None)).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
    }

    /// The wake-up comes after the look that missed it, and before the waiting.
    #[tokio::test]
    async fn a_wake_up_during_a_look_is_heard() {
        let waiters = LogWaiters::default();
        let space = Space::main();
        let mut looks = 0;
        let mut waiter = Box::pin(waiters.wait(&space, || {
            looks += 1;
            waiters.wake(&space);
            Ok((looks == 3).then_some(looks))
        }));
        assert_eq!(poll_once(&mut waiter).await.unwrap().unwrap(), 3);
    }

    /// Polls once, and says what came of it.
    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
