//! What an operation answers.

use keyloom::{Version, Written};
use serde_json::{Map, Value, json};

use super::Prepared;
use crate::api::answer::bodiless;
use crate::problem::Problem;

/// What an operation came to.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// The status that the same request by itself would have.
    pub(crate) status: u16,
    /// The version of the record, if it has one now.
    pub(crate) version: Option<Version>,
    /// The key of the record in the store, where it was written.
    pub(crate) stored_at: Option<String>,
    body: Map<String, Value>,
}

impl Answered {
    /// An answer about a record that is not told.
    pub(super) fn new(status: u16, prepared: &Prepared, key: &str) -> Self {
        let mut body = Map::new();
        body.insert("op".to_owned(), prepared.operation.name().into());
        body.insert("key".to_owned(), key.into());
        Answered { status, version: None, stored_at: None, body }
    }

    /// The version of the record.
    pub(super) fn with_version(mut self, version: Version) -> Self {
        self.body.insert("version".to_owned(), version.to_string().into());
        Answered { version: Some(version), ..self }
    }

    /// A record that was written, told to those who may read it.
    pub(super) fn with_written(
        self,
        prepared: &Prepared,
        written: &Written<Value>,
    ) -> Result<Self, Problem> {
        let stored_at = Some(written.key.to_string());
        let answered = Answered { stored_at, ..self.with_version(written.version) };
        match prepared.may_read {
            true => Ok(answered.with_record(written.value()?)),
            false => Ok(answered.without_body()),
        }
    }

    /// As a request by itself, which has no body where nothing of the record may be told.
    pub(super) fn without_body(self) -> Self {
        let status = bodiless(self.status);
        Answered { status, ..self }
    }

    /// A record, or `null`.
    pub(super) fn with_record(mut self, record: Value) -> Self {
        self.body.insert("record".to_owned(), record);
        self
    }

    /// The values of counters.
    pub(super) fn with_values(mut self, values: Map<String, Value>) -> Self {
        self.body.insert("values".to_owned(), values.into());
        self
    }

    /// The answer as one of a transaction.
    pub(crate) fn into_body(self) -> Value {
        self.body.into()
    }

    /// The answer as one of a batch.
    pub(crate) fn into_result(self) -> Value {
        let mut result = json!({"status": self.status, "body": self.body});
        if let Some(version) = self.version {
            result["etag"] = format!("\"{version}\"").into();
        }
        result
    }
}

/// Leaves of an answer that was kept what a caller is told who may not read the record.
pub(crate) fn withhold(body: &mut Value, status: &mut u16) {
    if let Value::Object(members) = body {
        members.retain(|name, _| matches!(name.as_str(), "op" | "key" | "version"));
    }
    *status = bodiless(*status);
}
