//! Operations on records: one that is a request by itself, and those that transactions and batches
//! list.
//!
//! | step | where |
//! | --- | --- |
//! | a request or an item of a list becomes an operation; items are refused with their number | [`parse`] |
//! | rights are checked and keys are found | [`prepare`] |
//! | it happens: alone, or within a transaction | [`alone`], [`apply`] |
//! | and is answered | [`answer`] |
//! | as far as there is room | [`room`] |
//!
//! # A record that is missing
//!
//! Conditions are looked at where the request without them would do something (RFC 9110, section
//! 13.2.1). So a record that is missing is answered alike with and without conditions, and alike
//! alone, in a batch and in a transaction:
//!
//! | operation | missing record | why |
//! | --- | --- | --- |
//! | `patch`, `delete`, `increment`, `get` | 404 | there is nothing to work on, whatever the condition |
//! | `put` with `If-Match` | 412 | without the condition it would create the record |
//! | `check` | 412, unless it asks for `exists: false` | a check is nothing but its conditions |

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

/// One operation, as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Operation {
    pub(crate) collection: String,
    pub(crate) action: Action,
}

/// What is to be done.
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
    /// Whatever version is there.
    IfPresent,
    IfMatch(Versions),
    IfAbsent,
}

/// The versions that a write may meet. None is met where a condition names what is no version.
pub(crate) type Versions = Vec<Version>;

/// A record that is to be inserted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NewRecord {
    /// JSON text, which nobody has looked at.
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

    /// What the caller must be allowed to do.
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

    /// The record's key in its collection; an insert has it in the record.
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
