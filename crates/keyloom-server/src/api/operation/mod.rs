//! Operations on records: single requests, and the items of transactions and batches.
//!
//! | step | where |
//! | --- | --- |
//! | a request or an item of a list is parsed; a refused item has its number | [`parse`] |
//! | rights are checked and keys are found | [`prepare`] |
//! | it is done, alone or within a transaction | [`alone`], [`apply`] |
//! | it is answered | [`answer`] |
//! | the answers are limited in size | [`room`] |
//!
//! # A record that is missing
//!
//! A condition counts only if the request would do something without it (RFC 9110, section 13.2.1).
//! So a missing record gets the same answer with and without conditions, and the same answer alone,
//! in a batch and in a transaction:
//!
//! | operation | missing record | why |
//! | --- | --- | --- |
//! | `patch`, `delete`, `increment`, `get` | 404 | there is nothing to work on, whatever the condition |
//! | `put` with `If-Match` | 412 | without the condition it would create the record |
//! | `check` | 412, unless it asks for `exists: false` | a check consists only of its conditions |

mod alone;
mod answer;
mod apply;
mod fields;
mod guard;
mod lanes;
mod parse;
mod prepare;
mod room;

pub(crate) use answer::{Answered, Told, results};
pub(crate) use apply::apply;
pub(crate) use fields::remove_member;
pub(crate) use lanes::{Lane, lanes};
pub(crate) use parse::{Members, read_all, whole};
pub(crate) use prepare::{Prepared, Preparing};
pub(crate) use room::Room;

use bytes::Bytes;
use keyloom::Version;
use serde_json::Value;

use crate::auth::Verb;

/// One operation, as requested.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    pub(crate) collection: String,
    pub(crate) action: Action,
}

/// The action of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Insert { record: NewRecord },
    Put { key: String, record: Value, only: PutOnly },
    Patch { key: String, patch: Value, versions: Option<Versions>, guard: Guard },
    Delete { key: String, versions: Option<Versions> },
    Increment { key: String, add: Vec<(String, i64)> },
    Check { key: String, version: Option<Version>, guard: Guard, exists: Option<bool> },
    Get { key: String },
}

/// When a record may be put.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PutOnly {
    Always,
    /// Whatever its version is.
    IfPresent,
    IfMatch(Versions),
    IfAbsent,
}

/// The versions that a write accepts. None of them matches if a condition names invalid versions.
pub(crate) type Versions = Vec<Version>;

/// A record to insert.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NewRecord {
    /// JSON text that was not parsed yet.
    Text(Bytes),
    Read(Value),
}

/// Fields and the values that they must have.
pub(crate) type Guard = Vec<(String, Value)>;

impl Operation {
    /// The name of the operation.
    pub(crate) fn name(&self) -> &'static str {
        match self.action {
            Action::Insert { .. } => "insert",
            Action::Put { .. } => "put",
            Action::Patch { .. } => "patch",
            Action::Delete { .. } => "delete",
            Action::Increment { .. } => "increment",
            Action::Check { .. } => "check",
            Action::Get { .. } => "get",
        }
    }

    /// The right that the caller needs.
    pub(crate) fn verb(&self) -> Verb {
        match self.action {
            Action::Insert { .. }
            | Action::Put { .. }
            | Action::Patch { .. }
            | Action::Increment { .. } => Verb::Write,
            Action::Delete { .. } => Verb::Delete,
            Action::Check { .. } | Action::Get { .. } => Verb::Read,
        }
    }

    /// The record's key in its collection. An insert has it in the record instead.
    pub(crate) fn key(&self) -> Option<&str> {
        match &self.action {
            Action::Insert { .. } => None,
            Action::Put { key, .. }
            | Action::Patch { key, .. }
            | Action::Delete { key, .. }
            | Action::Increment { key, .. }
            | Action::Check { key, .. }
            | Action::Get { key } => Some(key),
        }
    }
}
