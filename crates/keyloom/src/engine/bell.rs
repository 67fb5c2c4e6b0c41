//! Wakes those who wait for a log to grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::address::Space;
use crate::error::{Error, ErrorKind, Result};

/// One bell for each space that somebody waits for. Ringing where nobody waits costs a look.
#[derive(Debug, Default)]
pub(crate) struct Bells(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    by_space: HashMap<Space, Arc<Notify>>,
}

impl Bells {
    /// Has everyone who waits for the space look again. What they wait for must show already.
    pub(crate) fn ring(&self, space: &Space) {
        if let Some(bell) = self.state().by_space.get(space) {
            bell.notify_waiters();
        }
    }

    /// Ends all waiting, from now on.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.by_space.values().for_each(|bell| bell.notify_waiters());
    }

    /// Looks now and after each ring, until there is something. Fails when `look` does, and when
    /// the bells have ended.
    pub(crate) async fn wait<T>(
        &self,
        space: &Space,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let listener = self.listen(space);
        loop {
            // It hears every ring from here on, so that none is missed while we look.
            let rung = listener.bell.notified();
            let is_over = self.state().is_over;
            if let Some(found) = look()? {
                return Ok(found);
            }
            if is_over {
                return Err(Error::new(ErrorKind::Closed, "the store was closed"));
            }
            rung.await;
        }
    }

    fn listen<'b>(&'b self, space: &'b Space) -> Listener<'b> {
        let bell = Arc::clone(self.state().by_space.entry(space.clone()).or_default());
        Listener { bells: self, space, bell }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits. The last one takes the bell away.
struct Listener<'b> {
    bells: &'b Bells,
    space: &'b Space,
    bell: Arc<Notify>,
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        /// The list has one, and so have we.
        const NOBODY_ELSE: usize = 2;
        let mut state = self.bells.state();
        if Arc::strong_count(&self.bell) == NOBODY_ELSE {
            state.by_space.remove(self.space);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[tokio::test]
    async fn the_last_who_stops_waiting_takes_the_bell_away() {
        let bells = Bells::default();
        let space = Space::main();
        let mut first = Box::pin(bells.wait::<()>(&space, || Ok(None)));
        let mut second = Box::pin(bells.wait::<()>(&space, || Ok(None)));
        assert!(poll_once(&mut first).await.is_none());
        assert!(poll_once(&mut second).await.is_none());
        drop(first);
        assert_eq!(bells.state().by_space.len(), 1);
        bells.end();
        assert_eq!(second.await.unwrap_err().kind(), ErrorKind::Closed);
        assert!(bells.state().by_space.is_empty());
        let late = bells.wait::<()>(&space, || Ok(None)).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Closed);
    }

    /// The ring comes after the look that missed it, and before the waiting.
    #[tokio::test]
    async fn a_ring_during_a_look_is_heard() {
        let bells = Bells::default();
        let space = Space::main();
        let mut looks = 0;
        let mut waiter = Box::pin(bells.wait(&space, || {
            looks += 1;
            bells.ring(&space);
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
