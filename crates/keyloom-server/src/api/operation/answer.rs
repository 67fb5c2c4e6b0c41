//! The answers of operations, as text. A record's stored text is copied as it is, and never parsed
//! and printed again for an answer.

use bytes::Bytes;
use keyloom::{Version, Written};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::{Map, Value};

use super::Prepared;
use crate::api::answer::bodiless;

/// The result of an operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// The status that the operation would have as a request of its own.
    pub(crate) status: u16,
    /// The current version of the record, if it has one.
    pub(crate) version: Option<Version>,
    /// The key of the written record in the store.
    pub(crate) stored_at: Option<String>,
    /// The values of counters.
    pub(crate) values: Option<Map<String, Value>>,
    /// The text of the record, or `null`.
    pub(crate) record: Option<Bytes>,
}

impl Answered {
    /// An answer without a record.
    pub(super) fn new(status: u16) -> Self {
        Answered { status, ..Answered::default() }
    }

    /// Adds the version of the record.
    pub(super) fn with_version(self, version: Version) -> Self {
        Answered { version: Some(version), ..self }
    }

    /// Adds a written record, if the caller may read it.
    pub(super) fn with_written(self, prepared: &Prepared, written: Written<Value>) -> Self {
        let stored_at = Some(written.key.to_string());
        let answered = Answered { stored_at, ..self.with_version(written.version) };
        match prepared.may_read {
            true => answered.with_record(written.into_document().into_text()),
            false => answered.without_body(),
        }
    }

    /// The answer as a request of its own, without a body if the caller may not read the record.
    pub(super) fn without_body(self) -> Self {
        let status = bodiless(self.status);
        Answered { status, ..self }
    }

    /// Adds the text of a record.
    pub(super) fn with_record(self, text: Bytes) -> Self {
        Answered { record: Some(text), ..self }
    }

    /// States that there is no record.
    pub(super) fn with_no_record(self) -> Self {
        self.with_record(Bytes::from_static(b"null"))
    }

    /// Adds the values of counters.
    pub(super) fn with_values(self, values: Map<String, Value>) -> Self {
        Answered { values: Some(values), ..self }
    }

    /// The answer that a transaction stored under an idempotency key.
    pub(crate) fn of_kept(status: u16, version: Option<Version>, told: &Told) -> Self {
        let mut body: Value = serde_json::from_slice(told.text()).unwrap_or_default();
        let mut take = |name: &str| body.as_object_mut()?.shift_remove(name);
        let record = take("record").map(|record| record.to_string().into());
        let values = take("values").and_then(|values| match values {
            Value::Object(values) => Some(values),
            _ => None,
        });
        Answered { status, version, stored_at: None, values, record }
    }

    /// The record in the answer, if any.
    pub(crate) fn record(&self) -> Value {
        let text = self.record.as_deref().unwrap_or(b"null");
        serde_json::from_slice(text).unwrap_or_default()
    }

    /// The answer as one of several, with its operation and the name of its record.
    pub(crate) fn body(&self, op: &str, key: &str) -> Told {
        let mut members = Map::new();
        members.insert("op".to_owned(), op.into());
        members.insert("key".to_owned(), key.into());
        if let Some(version) = self.version {
            members.insert("version".to_owned(), version.to_string().into());
        }
        if let Some(values) = &self.values {
            members.insert("values".to_owned(), values.clone().into());
        }
        let Ok(mut text) = serde_json::to_vec(&members) else { return Told::default() };
        if let Some(record) = &self.record {
            // The operation and the key come before it.
            text.pop();
            text.extend_from_slice(b",\"record\":");
            text.extend_from_slice(record);
            text.push(b'}');
        }
        Told(text.into())
    }
}

/// The text of one answer. Under an idempotency key, it is stored as a JSON value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told(Bytes);

impl Told {
    /// The text of a value.
    pub(crate) fn of(value: &Value) -> Self {
        Told(value.to_string().into())
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.0
    }

    /// The same without the record and the values of counters, for a caller who may not read the
    /// record.
    pub(crate) fn withheld(&self) -> Self {
        let mut body: Value = serde_json::from_slice(&self.0).unwrap_or_default();
        if let Value::Object(members) = &mut body {
            members.retain(|name, _| matches!(name.as_str(), "op" | "key" | "version"));
        }
        Told::of(&body)
    }

    /// The answer as one result of a batch.
    pub(crate) fn as_result(&self, status: u16, version: Option<&str>) -> Told {
        let mut text = format!("{{\"status\":{status},\"body\":").into_bytes();
        text.extend_from_slice(&self.0);
        if let Some(version) = version {
            // A version has only hex digits and a hyphen.
            text.extend_from_slice(format!(",\"etag\":\"\\\"{version}\\\"\"").as_bytes());
        }
        text.push(b'}');
        Told(text.into())
    }
}

impl Serialize for Told {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = serde_json::from_slice(&self.0).map_err(ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Told::of(&Value::deserialize(deserializer)?))
    }
}

/// `{"results": […]}`. Each text is dropped as soon as it is copied.
pub(crate) fn results(told: Vec<Told>) -> Vec<u8> {
    let bytes = told.iter().map(|told| told.0.len() + 1).sum::<usize>();
    let mut text = Vec::with_capacity(bytes + 16);
    text.extend_from_slice(b"{\"results\":[");
    for (place, told) in told.into_iter().enumerate() {
        if place > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&told.0);
    }
    text.extend_from_slice(b"]}");
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_the_json_that_it_stands_for() {
        let body = Told::of(&json!({"op": "get", "key": "a\"b", "record": {"n": 1}}));
        let results = results(vec![body.as_result(200, Some("01-1")), body.withheld()]);
        let read: Value = serde_json::from_slice(&results).unwrap();
        let whole = json!({"op": "get", "key": "a\"b", "record": {"n": 1}});
        let first = json!({"status": 200, "body": whole, "etag": "\"01-1\""});
        assert_eq!(read, json!({"results": [first, {"op": "get", "key": "a\"b"}]}));
        let kept = serde_json::to_string(&body).unwrap();
        assert_eq!(serde_json::from_str::<Told>(&kept).unwrap(), body);
        assert_eq!(super::results(Vec::new()), b"{\"results\":[]}");
    }
}
