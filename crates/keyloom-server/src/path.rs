//! The parts of a path, decoded strictly.
//!
//! The router splits a path at its slashes and matches the parts as they came, so that `%2F`
//! never divides. It decodes what it matched, leniently. What that would let through is refused
//! by the guards, before anybody answers.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::problem::Problem;

/// Everything that is not unreserved in a URL (RFC 3986) is encoded.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The named parts of a path, decoded; `None` on a route without parts.
pub(crate) struct PathParts(Option<RawPathParams>);

impl PathParts {
    /// The part of that name; empty where the route has none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The part of that name, where the route has one.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().flatten().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParts {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Fails on a route without parts, which then has none; and on parts that are not UTF-8,
        // which the guards refuse.
        Ok(PathParts(RawPathParams::from_request_parts(parts, state).await.ok()))
    }
}

/// Refuses a path that does not decode to text, wherever it may lead.
pub(crate) fn check(path: &str) -> Result<(), Problem> {
    if path.contains('%') {
        decode(path)?;
    }
    Ok(())
}

/// Decodes one part of a path, or one value of a header.
pub(crate) fn decode(part: &str) -> Result<String, Problem> {
    let bytes = part.as_bytes();
    let is_broken = bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%'
            && !bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    if is_broken {
        return Err(Problem::invalid_request("a % must be followed by two hexadecimal digits"));
    }
    let decoded = percent_decode_str(part).decode_utf8();
    let text =
        decoded.map_err(|_| Problem::invalid_request("what is percent-encoded is not UTF-8"))?;
    Ok(text.into_owned())
}

/// Encodes text as one part of a path. A part of dots alone would be a step, which clients take
/// before they ask; those that keep to RFC 3986 leave it alone when it is encoded.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    match text {
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        _ => utf8_percent_encode(text, RESERVED).into(),
    }
}
