//! The parts of a path, decoded strictly.
//!
//! The router splits a path at its slashes and matches the parts as they came, so `%2F` never
//! separates parts. The router then decodes the parts leniently. So the guards refuse invalid parts
//! before a handler runs.

use std::borrow::Cow;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::problem::Problem;

/// The characters to encode: all except those that are unreserved in a URL (RFC 3986).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The named parts of a path, decoded; `None` on a route without parts.
pub(crate) struct PathParts(Option<RawPathParams>);

impl PathParts {
    /// The part with this name; empty if the route has none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The part with this name, if the route has it.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().flatten().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParts {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // Fails on a route without parts, and on parts that are not UTF-8, which the guards refuse.
        Ok(PathParts(RawPathParams::from_request_parts(parts, state).await.ok()))
    }
}

/// Refuses a path that does not decode to text, wherever it leads.
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

/// Encodes text as one part of a path. A part of only dots would be resolved as a step by clients.
/// It is encoded too, and clients that follow RFC 3986 then leave it alone.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    match text {
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        _ => utf8_percent_encode(text, RESERVED).into(),
    }
}
