//! Requests and their answers.

use axum::http::{HeaderMap, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::exit::{FAILED, Failure};

/// The characters to encode: all except those that are unreserved in a URL (RFC 3986).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request below `/v1`.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) method: Method,
    /// The path below `/v1`, encoded.
    path: String,
    params: Vec<(String, String)>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

/// An answer that was read completely.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A request without a body.
    pub(crate) fn get(parts: &[&str]) -> Self {
        Request::new(Method::GET, parts)
    }

    /// A request for a path of these parts, each encoded separately.
    pub(crate) fn new(method: Method, parts: &[&str]) -> Self {
        let path = parts.iter().fold(String::new(), |path, part| path + "/" + &encoded(part));
        Request { method, path, params: Vec::new(), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a parameter.
    pub(crate) fn param(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.params.push((name.into(), value.to_string()));
        self
    }

    /// Adds a parameter if there is a value for it.
    pub(crate) fn param_if(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.param(name, value),
            None => self,
        }
    }

    /// Adds a flag if it is set.
    pub(crate) fn flag(self, name: &str, is_set: bool) -> Self {
        if is_set { self.param(name, true) } else { self }
    }

    /// Adds parameters.
    pub(crate) fn params(mut self, params: impl IntoIterator<Item = (String, String)>) -> Self {
        self.params.extend(params);
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Requires this version, if one is given.
    pub(crate) fn if_match(self, version: Option<&str>) -> Self {
        match version {
            Some(version) => self.header("if-match", format!("\"{}\"", version.trim_matches('"'))),
            None => self,
        }
    }

    /// Sets a JSON body.
    pub(crate) fn json(self, text: impl Into<Vec<u8>>) -> Self {
        self.body("application/json", text)
    }

    /// Sets a body of this media type.
    pub(crate) fn body(mut self, media: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("content-type", media)
    }

    /// Whether it only reads.
    pub(super) fn is_read(&self) -> bool {
        self.method == Method::GET
    }

    /// The collection of the request, if it has one.
    pub(super) fn collection(&self) -> Option<String> {
        let mut parts = self.path.split('/').skip(1);
        if parts.next() == Some("collections") {
            let name = percent_encoding::percent_decode_str(parts.next()?);
            return Some(name.decode_utf8_lossy().into_owned());
        }
        let named = self.params.iter().find(|(name, _)| name == "collection");
        named.map(|(_, value)| value.clone())
    }

    /// The path below `/v1`, with its parameters.
    pub(super) fn path_and_query(&self) -> String {
        if self.params.is_empty() {
            return self.path.clone();
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.params);
        format!("{}?{}", self.path, query.finish())
    }
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::new(FAILED, format!("the answer is not JSON: {error}")))
    }

    /// The version of the record in the answer.
    pub(crate) fn version(&self) -> Option<&str> {
        Some(self.header("etag")?.trim_matches('"'))
    }

    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The last part of the path in `Location` or `Content-Location`, decoded.
    pub(crate) fn located(&self) -> Option<String> {
        let path = self.header("location").or_else(|| self.header("content-location"))?;
        let last = path.rsplit('/').next()?;
        Some(percent_encoding::percent_decode_str(last).decode_utf8().ok()?.into_owned())
    }
}

/// Text as one part of a path. Dots alone are encoded too, since proxies would resolve them.
pub(super) fn encoded(text: &str) -> String {
    match text {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(text, RESERVED).to_string(),
    }
}
