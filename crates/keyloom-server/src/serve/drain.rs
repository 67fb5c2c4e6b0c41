//! Reads the rest of bodies whose requests are already answered.
//!
//! A request is often refused before its body is read: because of an unknown token, or a path that
//! leads nowhere. If the rest of the body stayed in the socket, closing the connection would reset
//! it. The caller might then never see the answer, and the connection could not be used again. So
//! the rest is read and thrown away, within bounds, while the answer is being sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

const BYTES_MAX: usize = 1 << 20;
const TIME_MAX: Duration = Duration::from_secs(2);

/// A body that is read to its end even if nobody needs it.
pub(super) struct Drained(Option<Incoming>);

impl Drained {
    /// The body of a request.
    pub(super) fn body(body: Incoming) -> Body {
        if body.is_end_stream() { Body::empty() } else { Body::new(Drained(Some(body))) }
    }
}

impl HttpBody for Drained {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        // Without a runtime the server has stopped, and has no time for this.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(tokio::time::timeout(TIME_MAX, drain(body)));
        }
    }
}

async fn drain(mut body: Incoming) {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > BYTES_MAX {
            return;
        }
    }
}
