//! Where a value stands in a record: `status`, `stats.running`, `tags.*`,
//! `awaitingSteps.*.timeoutAt`, `awaitingSteps.*key`.

use std::fmt;

use serde_json::Value;

/// One step into a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// A member of an object.
    Name(String),
    /// `*`: each element of an array, or each value of a map.
    Each,
    /// `*key`: each name of a map. Only as the last step.
    EachKey,
}

/// A path into a record, with at most one `*` or `*key`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    /// Reads a path; the error is a sentence that says what is wrong with it.
    pub(crate) fn parse(_text: &str) -> Result<Self, String> {
        todo!()
    }

    /// The path up to `*` (exclusive), if it has one: the array or map that it walks over.
    pub(crate) fn star(&self) -> Option<Path> {
        todo!()
    }

    /// The value at a path without `*`; `None` when it, or anything above it, is missing.
    /// A present `null` is `Some(Null)`.
    pub(crate) fn get<'v>(&self, _record: &'v Value) -> Option<&'v Value> {
        todo!()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}
