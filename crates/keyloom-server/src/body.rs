//! The body of a request: whole, bounded, in time, and strict JSON.

use std::error::Error as StdError;

use axum::body::{Body, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use keyloom::read_json;
use serde_json::Value;

use crate::app::App;
use crate::guard::Overloaded;
use crate::problem::Problem;

/// The bytes of a body.
pub(crate) struct RawBody(pub(crate) Bytes);

/// A body of JSON: no duplicate names, no number that would be changed by reading it.
pub(crate) struct JsonBody(pub(crate) Value);

impl FromRequest<App> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        refuse_encodings(request.headers())?;
        Ok(RawBody(read(request.into_body(), app).await?))
    }
}

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if !has_media_type(request.headers(), &["application/json", "application/merge-patch+json"])
        {
            return Err(Problem::unsupported_media_type("application/json"));
        }
        let text = RawBody::from_request(request, app).await?.json_text()?;
        Ok(JsonBody(read_json(&text)?))
    }
}

impl RawBody {
    /// The text of JSON, which nobody has looked at, but there is some.
    pub(crate) fn json_text(self) -> Result<Bytes, Problem> {
        match self.0.is_empty() {
            true => Err(Problem::invalid_request("the body is empty; send JSON")),
            false => Ok(self.0),
        }
    }
}

/// Whether the body is of one of these media types, whatever its parameters.
pub(crate) fn has_media_type(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = text.and_then(|text| text.split(';').next()).map(str::trim);
    media.is_some_and(|media| wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(media)))
}

async fn read(body: Body, app: &App) -> Result<Bytes, Problem> {
    let limits = &app.config().limits;
    // What is too long by its own word is refused before it is sent.
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(Problem::too_long_body(limits.body_bytes_max));
    }
    let reading = gather(body, limits.body_bytes_max);
    let read = tokio::time::timeout(limits.body_timeout, reading).await;
    read.unwrap_or_else(|_| Err(Problem::request_timeout()))
}

/// The whole of a body.
async fn gather(mut body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let mut whole = Bytes::new();
    while let Some(frame) = body.frame().await {
        // What is not data comes behind the body, and is no part of it.
        let Ok(piece) = frame.map_err(|error| unread(&error))?.into_data() else { continue };
        if piece.len() > bytes_max - whole.len() {
            return Err(Problem::too_long_body(bytes_max));
        }
        whole = join(whole, piece);
    }
    Ok(whole)
}

/// Two pieces as one. Most bodies have a single piece, which is not copied.
fn join(first: Bytes, second: Bytes) -> Bytes {
    if first.is_empty() {
        return second;
    }
    let mut both = BytesMut::from(first);
    both.extend_from_slice(&second);
    both.freeze()
}

/// Why a body could not be read.
fn unread(error: &axum::Error) -> Problem {
    match overload(error) {
        Some(overloaded) => overloaded.into_problem(),
        None => Problem::invalid_request("the body broke off"),
    }
}

/// Whether a body was refused because the server has too much to do.
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

/// Nothing is decompressed, so that a small body never becomes a large one.
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

    /// A body of these pieces, and what may follow one.
    fn body_of(pieces: &[Vec<u8>]) -> Body {
        let data = pieces.iter().cloned().map(|piece| Frame::data(Bytes::from(piece)));
        let trailers = Frame::trailers(HeaderMap::new());
        let frames: Vec<Result<_, std::io::Error>> = data.chain([trailers]).map(Ok).collect();
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    fn gathered(pieces: &[Vec<u8>], bytes_max: usize) -> Result<Bytes, Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(gather(body_of(pieces), bytes_max))
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
