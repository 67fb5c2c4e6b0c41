//! Reads the body of a request: completely, within bounds of size, time and memory, and as strict
//! JSON.

use std::error::Error as StdError;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use keyloom::engine::VALUE_BYTES_MAX;
use keyloom::read_json;
use serde_json::Value;

use crate::app::App;
use crate::guard::{Arrival, Overloaded};
use crate::memory::{Held, JSON_BYTES, Memory, SMALL_BYTES, weight};
use crate::problem::Problem;
use crate::refusal;

/// The longest text of one record. A record has up to 380 KiB, and each of its bytes may be written
/// with six (`\u0041`); the rest is for blanks. A patch of a record, its counters, and the value of
/// a plain key, which may be a record too, need no more.
pub(crate) const RECORD_TEXT_BYTES_MAX: usize = 8 * VALUE_BYTES_MAX;

/// The longest form or JSON object of a few words.
const WORDS_BYTES_MAX: usize = 16 << 10;

/// The bytes of a body of any length.
pub(crate) struct RawBody(pub(crate) Bytes);

/// A JSON body of any length, without duplicate names and without numbers that reading would
/// change.
pub(crate) struct JsonBody(pub(crate) Value);

/// The bytes of a short body.
pub(crate) struct WordsBody(pub(crate) Bytes);

/// A short JSON body.
pub(crate) struct WordsJson(pub(crate) Value);

/// A body that has arrived.
pub(crate) struct Arrived {
    bytes: Bytes,
    arrival: Option<Arrival>,
}

impl FromRequest<App> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        Ok(RawBody(Arrived::read(request, app, usize::MAX).await?.into_bytes(app).await))
    }
}

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        JsonBody::up_to(request, app, usize::MAX).await
    }
}

impl FromRequest<App> for WordsBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let arrived = Arrived::read(request, app, WORDS_BYTES_MAX).await?;
        Ok(WordsBody(arrived.into_bytes(app).await))
    }
}

impl FromRequest<App> for WordsJson {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let JsonBody(value) = JsonBody::up_to(request, app, WORDS_BYTES_MAX).await?;
        Ok(WordsJson(value))
    }
}

impl JsonBody {
    /// A JSON body of at most this many bytes.
    pub(crate) async fn up_to(
        request: Request,
        app: &App,
        bytes_max: usize,
    ) -> Result<Self, Problem> {
        if !has_media_type(request.headers(), &["application/json", "application/merge-patch+json"])
        {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        let text = Arrived::read(request, app, bytes_max).await?.json_text(app).await?;
        Ok(JsonBody(read_json(&text)?))
    }
}

impl Arrived {
    /// Reads a whole body of at most this many bytes, and no more than the server accepts for any
    /// body.
    pub(crate) async fn read(
        request: Request,
        app: &App,
        bytes_max: usize,
    ) -> Result<Self, Problem> {
        refuse_encodings(request.headers())?;
        let arrival = request.extensions().get::<Arrival>().cloned();
        let (limits, memory) = (&app.config().limits, app.memory());
        let bytes_max = bytes_max.min(limits.body_bytes_max).min(memory.body_bytes_max());
        let body = request.into_body();
        // A body that declares itself too long is refused before it is sent.
        if body.size_hint().lower() > bytes_max as u64 {
            return Err(Problem::too_long_body(bytes_max));
        }
        let patience = limits.body_timeout;
        let room =
            tokio::time::timeout(patience, Room::for_body(memory, body.size_hint().exact())).await;
        let mut room = room.map_err(|_| refusal::no_room_for_body())?;
        let reading = gather(body, &mut room, bytes_max);
        let read = tokio::time::timeout(patience, reading).await;
        let bytes = read.unwrap_or_else(|_| Err(Problem::request_timeout()))?;
        if let Some(arrival) = &arrival {
            room.held.into_iter().for_each(|held| arrival.hold_asked(held));
        }
        Ok(Arrived { bytes, arrival })
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes as they are, once there is memory to work on them.
    pub(crate) async fn into_bytes(self, app: &App) -> Bytes {
        if let Some(arrival) = &self.arrival {
            arrival.hold_request(app.memory().request().await);
        }
        self.bytes
    }

    /// The text of a JSON body, unparsed but not empty, once there is memory to parse it. A long
    /// one is parsed aside.
    pub(crate) async fn json_text(self, app: &App) -> Result<Bytes, Problem> {
        let Arrived { bytes, arrival } = self;
        if bytes.is_empty() {
            return Err(Problem::invalid_request("the body is empty; send JSON"));
        }
        let Some(arrival) = arrival else { return Ok(bytes) };
        if bytes.len() > SMALL_BYTES {
            arrival.go_aside().await;
        }
        // Parsed values are copied at least once on their way into the store.
        let needed = weight(&bytes).saturating_mul(2);
        let most = app.memory().json_bytes_max();
        if needed > most {
            let detail = format!(
                "what the body holds would take about {needed} bytes in memory, and {most} is the \
                 most (--memory-bytes-max); send fewer values at once"
            );
            return Err(refusal::limit_exceeded(detail));
        }
        if needed > JSON_BYTES {
            arrival.hold_asked(app.memory().json(needed).await);
        }
        arrival.hold_request(app.memory().request().await);
        Ok(bytes)
    }
}

/// Whether the body has one of these media types, whatever its parameters.
pub(crate) fn has_media_type(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = text.and_then(|text| text.split(';').next()).map(str::trim);
    media.is_some_and(|media| wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(media)))
}

/// The memory that a body holds while it arrives.
struct Room<'m> {
    memory: &'m Memory,
    held: Vec<Held>,
    bytes: usize,
}

impl<'m> Room<'m> {
    /// Takes memory for as much as the body declares; for a small body if it declares nothing.
    async fn for_body(memory: &'m Memory, declared: Option<u64>) -> Self {
        let bytes = declared.map_or(SMALL_BYTES, |bytes| bytes as usize);
        Room { memory, held: vec![memory.body(bytes).await], bytes }
    }

    /// Takes memory for a body that is longer than expected. It takes enough for the longest body
    /// at once, so that it never waits for other bodies that are half-way, too.
    async fn reach(&mut self, bytes: usize, bytes_max: usize) {
        if bytes > self.bytes {
            self.held.push(self.memory.body(bytes_max.max(SMALL_BYTES + 1)).await);
            self.bytes = bytes_max;
        }
    }
}

/// Reads a whole body. Most bodies come in one piece, and that piece is not copied.
async fn gather(mut body: Body, room: &mut Room<'_>, bytes_max: usize) -> Result<Bytes, Problem> {
    let (mut first, mut whole) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        // Trailers come after the body and do not belong to it.
        let Ok(piece) = frame.map_err(|error| unread(&error))?.into_data() else { continue };
        let length = first.len() + whole.len() + piece.len();
        if length > bytes_max {
            return Err(Problem::too_long_body(bytes_max));
        }
        room.reach(length, bytes_max).await;
        if first.is_empty() && whole.is_empty() {
            first = piece;
            continue;
        }
        if whole.is_empty() {
            whole.reserve(room.bytes);
            whole.extend_from_slice(&std::mem::take(&mut first));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// Why a body could not be read.
fn unread(error: &axum::Error) -> Problem {
    match overload(error) {
        Some(overloaded) => overloaded.into_problem(),
        None => Problem::invalid_request("the body broke off"),
    }
}

/// The overload in an error, if the server refused the body because it is busy.
fn overload(error: &axum::Error) -> Option<Overloaded> {
    let mut cause: Option<&dyn StdError> = Some(error);
    while let Some(error) = cause {
        if let Some(overloaded) = error.downcast_ref::<Overloaded>() {
            return Some(*overloaded);
        }
        cause = error.source();
    }
    None
}

/// Refuses compressed bodies, so that a small body never becomes a large one.
pub(crate) fn refuse_encodings(headers: &HeaderMap) -> Result<(), Problem> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    Err(Problem::unsupported_media_type("a body without Content-Encoding"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use axum::http::{HeaderMap, StatusCode};
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use proptest::prelude::*;

    use super::*;
    use crate::config::Limits;

    /// A body of these pieces, followed by trailers.
    fn body_of(pieces: &[Vec<u8>]) -> Body {
        let data = pieces.iter().cloned().map(|piece| Frame::data(Bytes::from(piece)));
        let trailers = Frame::trailers(HeaderMap::new());
        let frames: Vec<Result<_, std::io::Error>> = data.chain([trailers]).map(Ok).collect();
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    fn gathered(pieces: &[Vec<u8>], bytes_max: usize) -> Result<Bytes, Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let memory = Memory::new(&Limits::default());
        runtime.block_on(async {
            let body = body_of(pieces);
            let mut room = Room::for_body(&memory, body.size_hint().exact()).await;
            gather(body, &mut room, bytes_max).await
        })
    }

    proptest! {
        #[test]
        fn a_body_is_its_pieces_up_to_the_limit(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6),
            spare in 0_usize..3,
        ) {
            let whole = pieces.concat();
            let bytes = gathered(&pieces, whole.len() + spare);
            prop_assert_eq!(&*bytes.unwrap(), &*whole);
            if let Some(too_few) = whole.len().checked_sub(1) {
                let refusal = gathered(&pieces, too_few).unwrap_err();
                prop_assert_eq!(refusal.status(), StatusCode::PAYLOAD_TOO_LARGE);
            }
        }
    }

    #[tokio::test]
    async fn a_body_without_a_length_takes_room_for_the_longest_when_it_is_no_small_one() {
        const LONGEST: usize = 1 << 20;
        let memory = Memory::new(&Limits::default());
        let taken = async |pieces: &[Vec<u8>]| {
            let mut room = Room::for_body(&memory, None).await;
            gather(body_of(pieces), &mut room, LONGEST).await.unwrap();
            room.held.iter().map(Held::bytes).sum::<usize>()
        };
        assert_eq!(taken(&[vec![0; SMALL_BYTES]]).await, SMALL_BYTES);
        let long = [vec![0; SMALL_BYTES], vec![0; 1], vec![0; 500_000]];
        assert_eq!(taken(&long).await, SMALL_BYTES + LONGEST);
        let room = Room::for_body(&memory, Some(5_000)).await;
        assert_eq!(room.held.iter().map(Held::bytes).sum::<usize>(), 5 << 10);
    }

    #[test]
    fn a_media_type_has_any_case_and_any_parameters() {
        let is_json = |text: &'static str| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, text.parse().unwrap())]);
            has_media_type(&headers, &["application/json"])
        };
        assert!(is_json("application/json") && is_json(" Application/JSON ; charset=utf-8"));
        assert!(!is_json("application/jsonx") && !is_json("text/plain;application/json"));
        assert!(!has_media_type(&HeaderMap::new(), &["application/json"]));
    }
}
