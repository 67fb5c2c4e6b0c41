//! Problems that the server itself detects, in the same form as the library's.

use axum::http::{HeaderValue, StatusCode, header};
use keyloom::Fate;

use crate::problem::Problem;

/// Something is larger than the server takes.
pub(crate) fn limit_exceeded(detail: impl Into<String>) -> Problem {
    let title = "Something is larger than the limit";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "limit-exceeded", title, detail)
}

/// The server is at its limit for now.
pub(crate) fn overloaded(detail: impl Into<String>) -> Problem {
    let title = "The server does enough already";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", title, detail).with_retry()
}

/// All connections are busy; this one has a place of the reserve.
pub(crate) fn no_connection() -> Problem {
    no_room(
        "as many connections as the limit allows are busy, or as many of this address as is its \
         share; connect again soon",
    )
}

/// There is no room at the moment.
pub(crate) fn no_room(detail: impl Into<String>) -> Problem {
    overloaded(detail).with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

/// There is no memory for the body of a request. Nothing of it was read.
pub(crate) fn no_room_for_body() -> Problem {
    no_room(
        "the bodies of other requests fill the room that there is for them; send it again soon. \
         The operator can raise --memory-bytes-max",
    )
}

/// There is no memory for a finished answer.
pub(crate) fn no_room_for_answer(fate: Fate) -> Problem {
    let detail = "answers that their callers have not taken yet fill the room that there is for \
                  them; ask again soon, or for less at once";
    no_room(detail).with_fate(fate)
}

/// An answer larger than the limit.
pub(crate) fn large_answer(bytes_max: usize, fate: Fate) -> Problem {
    let detail = format!(
        "the answer has more than {bytes_max} bytes, the most that one may have \
         (--answer-bytes-max); ask for less at once"
    );
    limit_exceeded(detail).with("answer_bytes_max", bytes_max).with_fate(fate)
}

/// A defect of the server.
pub(crate) fn internal(detail: impl Into<String>) -> Problem {
    let title = "Keyloom has a defect";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", title, detail)
}

/// The server is about to end.
pub(crate) fn stopping() -> Problem {
    let title = "The server is about to stop";
    let detail = "ask again in a moment";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closed", title, detail).with_retry()
}
