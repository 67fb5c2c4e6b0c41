//! Limits how many requests run at one time, and for how long.
//!
//! A request counts from the moment when the last byte of its body has arrived. Slow requests only
//! hold a connection, so they take no place from others. The time for the answer begins when the
//! server can work on the request.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::problem::Problem;
use crate::repeats;

/// A request that runs, or will run once its body has arrived.
pub(super) enum Flight<'p> {
    /// It had arrived completely, and holds its permit.
    Begun(#[allow(dead_code, reason = "it is held, not looked at")] SemaphorePermit<'p>),
    /// Its body takes the permit once it has arrived.
    Awaited(Arc<Shared>),
}

pub(super) struct Shared {
    permits: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    arrived: Notify,
}

/// Too many requests are running already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overloaded;

impl<'p> Flight<'p> {
    /// Starts a request. If it has a body, the body takes the permit once it has arrived.
    pub(super) fn begin(
        permits: &'p Arc<Semaphore>,
        request: Request,
    ) -> Result<(Self, Request), Overloaded> {
        if request.body().is_end_stream() {
            let permit = permits.try_acquire().map_err(|_| Overloaded)?;
            return Ok((Flight::Begun(permit), request));
        }
        let shared = Arc::new(Shared {
            permits: permits.clone(),
            held: Mutex::default(),
            arrived: Notify::new(),
        });
        let request = request
            .map(|body| Body::new(Arriving { body, shared: shared.clone(), is_over: false }));
        Ok((Flight::Awaited(shared), request))
    }

    /// Ready when the request has arrived and the time for its answer has passed.
    pub(super) async fn out_of_time(&self, limit: Duration) {
        if let Flight::Awaited(shared) = self {
            shared.arrived.notified().await;
        }
        tokio::time::sleep(limit).await;
    }
}

impl Drop for Flight<'_> {
    /// Frees the permit even if the handler has kept the body somewhere.
    fn drop(&mut self) {
        if let Flight::Awaited(shared) = self {
            drop(shared.held().take());
        }
    }
}

impl Shared {
    fn take_off(&self) -> Result<(), Overloaded> {
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| Overloaded)?;
        *self.held() = Some(permit);
        Ok(())
    }

    /// The value is replaced as a whole, so it is valid even after a panic.
    fn held(&self) -> std::sync::MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that reports its arrival, and fails at its end if no permit is left.
struct Arriving {
    body: Body,
    shared: Arc<Shared>,
    is_over: bool,
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_some() {
            return Poll::Ready(frame);
        }
        self.is_over = true;
        self.shared.arrived.notify_one();
        match self.shared.take_off() {
            Ok(()) => Poll::Ready(None),
            Err(overloaded) => Poll::Ready(Some(Err(axum::Error::new(overloaded)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Arriving {
    /// A handler that answers without the body waits for nothing more.
    fn drop(&mut self) {
        self.shared.arrived.notify_one();
    }
}

impl Overloaded {
    pub(crate) fn into_problem(self) -> Problem {
        repeats::warn("callers are told to come back: as many requests as may be are worked on");
        let title = "The server has too much to do";
        let detail = "as many requests as the limit allows are being answered; ask again soon";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", title, detail)
            .with_retry()
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }
}

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many requests are being answered")
    }
}

impl std::error::Error for Overloaded {}
