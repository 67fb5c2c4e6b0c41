//! The parts of operations: parameters, bodies, answers.

use serde_json::{Map, Value, json};

use super::{object, schema_named};

/// One operation under construction. Every error is a problem; those with more members than usual
/// are named.
pub(super) struct Operation {
    members: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

impl Operation {
    pub(super) fn new(id: impl Into<String>, summary: &str) -> Self {
        let members = object([("operationId", json!(id.into())), ("summary", json!(summary))]);
        let responses = object([("default", response_named("Problem"))]);
        Operation { members, parameters: Vec::new(), responses }
    }

    /// Adds a description to the summary.
    pub(super) fn about(mut self, description: &str) -> Self {
        self.members.insert("description".to_owned(), json!(description));
        self
    }

    pub(super) fn parameters(mut self, parameters: impl IntoIterator<Item = Value>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// A required body.
    pub(super) fn body(self, media: &str, schema: Value) -> Self {
        self.any_body(media, schema, true)
    }

    /// A body that may be missing, which then counts as empty.
    pub(super) fn optional_body(self, media: &str, schema: Value) -> Self {
        self.any_body(media, schema, false)
    }

    fn any_body(mut self, media: &str, schema: Value, is_required: bool) -> Self {
        let body = json!({ "required": is_required, "content": { media: { "schema": schema } } });
        self.members.insert("requestBody".to_owned(), body);
        self
    }

    pub(super) fn answer(mut self, status: &str, answer: Value) -> Self {
        self.responses.insert(status.to_owned(), answer);
        self
    }

    /// Answers that many operations share.
    pub(super) fn answers<const N: usize>(mut self, named: [(&str, &str); N]) -> Self {
        let named = named.map(|(status, name)| (status, response_named(name)));
        self.responses.extend(object(named));
        self
    }

    pub(super) fn build(mut self) -> Value {
        if !self.parameters.is_empty() {
            self.members.insert("parameters".to_owned(), self.parameters.into());
        }
        self.members.insert("responses".to_owned(), self.responses.into());
        self.members.into()
    }
}

/// An answer with a body.
pub(super) fn answer(description: &str, media: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { media: { "schema": schema } } })
}

/// An answer with a JSON body.
pub(super) fn json_answer(description: &str, schema: Value) -> Value {
    answer(description, "application/json", schema)
}

/// An answer without a body.
pub(super) fn empty(description: &str) -> Value {
    json!({ "description": description })
}

/// An answer with a record, and its version.
pub(super) fn record_answer(description: &str, record: &str) -> Value {
    with_header(json_answer(description, schema_named(record)), "ETag", "the version")
}

/// Adds a header that is always present.
pub(super) fn with_header(mut answer: Value, name: &str, description: &str) -> Value {
    // An answer is an object.
    answer["headers"][name] =
        json!({ "description": description, "required": true, "schema": { "type": "string" } });
    answer
}

/// A parameter of the path.
pub(super) fn in_path(name: &str, schema: Value, description: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": description })
}

/// A shared header, which is optional.
pub(super) fn header_named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

/// An optional parameter of the query.
pub(super) fn in_query(name: &str, schema: Value, description: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": schema, "description": description })
}

/// Makes a parameter required.
pub(super) fn required(mut parameter: Value) -> Value {
    // A parameter is an object.
    parameter["required"] = json!(true);
    parameter
}

/// A number of at least one.
pub(super) fn number(name: &str, max: usize, description: &str) -> Value {
    in_query(name, json!({ "type": "integer", "minimum": 1, "maximum": max }), description)
}

/// The cursor of an earlier page.
pub(super) fn cursor() -> Value {
    let about = "`next` or `previous` of an earlier page of the same question";
    in_query("cursor", json!({ "type": "string" }), about)
}

/// A boolean parameter.
pub(super) fn flag(name: &str, description: &str) -> Value {
    in_query(name, json!({ "type": "boolean" }), description)
}

/// One of several words; no parameter if there are none.
pub(super) fn choice(
    name: &str,
    words: impl IntoIterator<Item = impl Into<Value>>,
    description: &str,
) -> Option<Value> {
    let words: Vec<Value> = words.into_iter().map(Into::into).collect();
    let schema = json!({ "type": "string", "enum": words });
    (!words.is_empty()).then(|| in_query(name, schema, description))
}

/// An area of the store.
pub(super) fn area() -> Value {
    let schema = json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{0,64}$" });
    in_query("area", schema, "another area than the default one")
}

fn response_named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{name}") })
}
