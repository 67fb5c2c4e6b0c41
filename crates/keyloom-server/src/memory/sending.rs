//! Answers hold their memory until the caller has received them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use keyloom::Fate;

use super::{Held, Memory, SMALL_BYTES};

/// The memory that one request holds.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// For its body, and the values parsed from it.
    pub(crate) asked: Vec<Held>,
    /// The memory that every running request has.
    pub(crate) request: Option<Held>,
    /// For a large answer.
    pub(crate) answer: Option<Held>,
}

/// There is no memory for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom {
    pub(crate) bytes: usize,
}

impl Memory {
    /// The answer, which holds its memory until it was received. Small answers are taken over by
    /// their connection at once, and streams are made as they are received. `fate` is the fate of
    /// the request if it cannot be answered.
    pub(crate) fn send(
        &self,
        response: Response,
        holding: Holding,
        fate: Fate,
    ) -> Result<Response, NoRoom> {
        let Some(bytes) = response.body().size_hint().exact().map(|bytes| bytes as usize) else {
            return Ok(response);
        };
        if bytes <= SMALL_BYTES {
            return Ok(response);
        }
        let Holding { asked, request, answer } = holding;
        let has_enough = |held: &Held| held.bytes() >= bytes;
        // The memory of running requests must not go to callers who receive an answer slowly.
        let held = answer.filter(has_enough).or_else(|| self.answers.try_take(bytes));
        let held = held.filter(has_enough).or_else(|| match fate {
            Fate::DidNotHappen => None,
            // A write that may have happened is answered in any case, in the memory of its request.
            Fate::MayHaveHappened => asked.into_iter().chain(request).max_by_key(Held::bytes),
        });
        let Some(mut held) = held else { return Err(NoRoom { bytes }) };
        held.shrink_to(bytes);
        Ok(response.map(|body| Body::new(Sending { body, held: Arc::new(held) })))
    }
}

/// The body of an answer with the memory that it holds.
struct Sending {
    body: Body,
    held: Arc<Held>,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let held = &self.held;
        // The body is dropped when its last byte was handed over, but not the bytes: the connection
        // holds them until the caller receives them.
        let keep = |bytes| Bytes::from_owner(Kept { bytes, _held: held.clone() });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(keep))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that hold their memory.
struct Kept {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::config::Limits;

    /// 16 MiB of requests, 12 MiB for large answers and 4 MiB for others.
    fn memory() -> Memory {
        Memory::new(&Limits { memory_bytes_max: 64 << 20, ..Limits::default() })
    }

    fn response(bytes: usize) -> Response {
        Response::new(Body::from(vec![b'x'; bytes]))
    }

    async fn working(memory: &Memory) -> Holding {
        Holding { request: Some(memory.request().await), ..Holding::default() }
    }

    const READ: Fate = Fate::DidNotHappen;
    const WRITE: Fate = Fate::MayHaveHappened;

    #[tokio::test]
    async fn an_answer_holds_its_bytes_until_they_are_taken() {
        let memory = memory();
        let sent = memory.send(response(512 << 10), working(&memory).await, READ).unwrap();
        let held = || (4 << 20) - memory.answers.free_bytes();
        assert_eq!((held(), memory.requests.free_bytes()), (512 << 10, 16 << 20));
        let mut body = sent.into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert_eq!(held(), 512 << 10, "the connection has the bytes still");
        assert_eq!(bytes.len(), 512 << 10);
        drop(bytes);
        assert_eq!(held(), 0);
    }

    #[tokio::test]
    async fn a_small_answer_holds_nothing_and_a_large_one_what_it_took() {
        let memory = memory();
        let small = memory.send(response(SMALL_BYTES), working(&memory).await, READ).unwrap();
        assert_eq!(memory.answers.free_bytes(), 4 << 20);
        drop(small);
        let answer = Some(memory.large_answer(2 << 20).await);
        let holding = Holding { answer, ..working(&memory).await };
        assert_eq!(memory.large_answers.free_bytes(), 8 << 20);
        let large = memory.send(response(3 << 20), holding, READ).unwrap();
        assert_eq!(memory.large_answers.free_bytes(), 9 << 20);
        assert_eq!(
            (memory.requests.free_bytes(), memory.answers.free_bytes()),
            (16 << 20, 4 << 20)
        );
        drop(large);
        assert_eq!(memory.large_answers.free_bytes(), 12 << 20);
    }

    #[tokio::test]
    async fn without_room_a_read_is_refused_and_a_write_is_told() {
        let memory = memory();
        let untaken = memory.send(response(4 << 20), Holding::default(), READ).unwrap();
        let refused = memory.send(response(500_000), working(&memory).await, READ);
        assert_eq!(refused.unwrap_err(), NoRoom { bytes: 500_000 });
        let told = memory.send(response(500_000), working(&memory).await, WRITE).unwrap();
        drop(untaken);
        assert!(memory.send(response(500_000), working(&memory).await, READ).is_ok());
        drop(told);
        let refused = memory.send(response(5 << 20), Holding::default(), WRITE).unwrap_err();
        assert_eq!(refused, NoRoom { bytes: 5 << 20 }, "there is never so much room");
    }
}
