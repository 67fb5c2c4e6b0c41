//! Operations on records, as transactions and batches list them.
//!
//! | step | where |
//! | --- | --- |
//! | JSON becomes an operation, or is refused with its number | [`parse`] |
//! | rights are checked and keys are found | [`prepare`] |
//! | it happens, within a transaction or by itself | [`apply`] |
//! | and is answered | [`answer`] |
//! | as far as there is room | [`room`] |

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

use keyloom::Version;
use serde_json::{Map, Value};

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
    Insert { record: Value },
    Put { key: String, record: Value, only: PutOnly },
    Patch { key: String, patch: Value, version: Option<Version>, guard: Guard },
    Delete { key: String, version: Option<Version> },
    Increment { key: String, add: Vec<(String, i64)> },
    Check { key: String, version: Option<Version>, guard: Guard, exists: Option<bool> },
    Get { key: String },
}

/// When a record may be put.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PutOnly {
    Always,
    IfMatch(Version),
    IfAbsent,
}

/// Fields and the values that they must have.
pub(crate) type Guard = Map<String, Value>;

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
