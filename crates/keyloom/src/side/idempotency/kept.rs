//! The cell in which an idempotency key keeps the answer.
//!
//! | bytes | what | example |
//! | --- | --- | --- |
//! | first line | when the write happened, the SHA-256 of what was asked, and the answer, as JSON | `{"at":1700000000000,"request":"9f86d0…","answer":{"record":{"key":"note:1","version":"…-1","effect":"created"}}}` |
//! | the rest | the record in the answer, byte for byte, if there is one | `{"id":"1"}` |

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Cell, VALUE_BYTES_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Document;

/// The answer of a write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Answer {
    /// A record, whose text follows, and the effect of the write.
    Record { key: String, version: String, effect: String },
    /// The version of the deleted value, if there was one.
    Deleted { version: Option<String> },
    /// Any other value.
    Value(Value),
    /// Only that the write happened. A repetition reads the rest of its answer anew.
    Done,
}

/// What a write did to the record in its answer.
pub(crate) const CREATED: &str = "created";
pub(crate) const REPLACED: &str = "replaced";

impl Answer {
    /// The answer about a record, and the text that follows it.
    pub(crate) fn of_record(document: Document, effect: &str) -> (Self, Option<Bytes>) {
        let (key, version) = (document.key.to_string(), document.version.to_string());
        let answer = Answer::Record { key, version, effect: effect.to_owned() };
        (answer, Some(document.into_text()))
    }
}

/// An answer and what it is to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) at: u64,
    /// The SHA-256 of the request, in hex.
    pub(crate) request: String,
    pub(crate) answer: Answer,
    pub(crate) text: Option<Bytes>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: u64,
    request: String,
    answer: Answer,
}

impl Kept {
    /// The bytes of the cell. Fails if they do not fit into one.
    pub(crate) fn to_bytes(&self) -> Result<Bytes> {
        let Kept { at, request, answer, text } = self.clone();
        let line = serde_json::to_vec(&Line { at, request, answer });
        let mut bytes = line.map_err(|error| {
            Error::new(ErrorKind::Internal, "an answer cannot be written as JSON")
                .with_source(error)
        })?;
        if let Some(text) = text {
            bytes.push(b'\n');
            bytes.extend(&text[..]);
        }
        if bytes.len() > VALUE_BYTES_MAX {
            let message = "the answer to a write with an idempotency key has to fit into a value \
                           of 389120 bytes (380 KiB), which leaves a record about a kilobyte less";
            return Err(Error::new(ErrorKind::LimitExceeded, message).with("bytes", bytes.len()));
        }
        Ok(bytes.into())
    }

    pub(crate) fn from_cell(cell: &Cell) -> Option<Self> {
        let bytes = cell.bytes()?;
        let line_end = bytes.iter().position(|&byte| byte == b'\n');
        let line = &bytes[..line_end.unwrap_or(bytes.len())];
        let Line { at, request, answer } = serde_json::from_slice(line).ok()?;
        let text = line_end.map(|end| bytes.slice(end + 1..));
        Some(Kept { at, request, answer, text })
    }
}
