//! Futures that run together. Whoever waits for one of them polls all of them, because one may hold
//! what another waits for.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// How many run at once: while one waits for the store, the next is prepared.
const AT_ONCE: usize = 2;

/// At most [`AT_ONCE`] futures that run together. Their outputs come in the order of the futures.
pub(super) struct UnderWay<F: Future>(VecDeque<Running<F>>);

enum Running<F: Future> {
    Pending(Pin<Box<F>>),
    Ended(F::Output),
}

impl<F: Future> Default for UnderWay<F> {
    fn default() -> Self {
        UnderWay(VecDeque::new())
    }
}

impl<F: Future<Output: Unpin>> UnderWay<F> {
    /// Starts one more future and polls it once. If no further future may start then, waits for the
    /// first one and gives its output.
    pub(super) async fn begin(&mut self, future: F) -> Option<F::Output> {
        self.0.push_back(Running::Pending(Box::pin(future)));
        if self.0.len() >= AT_ONCE {
            return self.end_first().await;
        }
        poll_fn(|context| {
            self.drive(context);
            Poll::Ready(())
        })
        .await;
        None
    }

    /// Waits for the first future and gives its output; `None` if there is none.
    pub(super) async fn end_first(&mut self) -> Option<F::Output> {
        poll_fn(|context| {
            self.drive(context);
            match self.0.pop_front() {
                None => Poll::Ready(None),
                Some(Running::Ended(output)) => Poll::Ready(Some(output)),
                Some(pending) => {
                    self.0.push_front(pending);
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        for running in &mut self.0 {
            if let Running::Pending(future) = running
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *running = Running::Ended(output);
            }
        }
    }
}
