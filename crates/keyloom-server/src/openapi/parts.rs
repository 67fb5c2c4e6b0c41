//! What many operations share: problems, pages, free JSON, parameters.

use serde_json::{Map, Value, json};

use super::{object, schema_named};

/// Schemas that do not depend on what is declared.
pub(super) fn schemas() -> Map<String, Value> {
    object([
        ("Json", free_json()),
        ("Problem", problem()),
        ("Trouble", trouble()),
        ("Counts", counts()),
    ])
}

/// Any JSON that Keyloom keeps as it came: integers fit into 64 bits, and names have no dots.
fn free_json() -> Value {
    json!({ "anyOf": [
        { "type": ["string", "boolean", "null"] },
        { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX },
        { "type": "number", "minimum": -1e300, "maximum": 1e300 },
        { "type": "array", "items": schema_named("Json") },
        { "type": "object", "propertyNames": { "pattern": "^[^.]*$" },
          "additionalProperties": schema_named("Json") },
    ]})
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "RFC 9457",
        "required": ["type", "title", "status", "detail", "outcome", "retry"],
        "properties": {
            "type": { "type": "string", "format": "uri-reference" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "outcome": { "type": "string", "enum": ["did_not_happen", "may_have_happened"],
                "description": "what became of the write" },
            "retry": { "type": "boolean", "description": "whether the same request may succeed later" },
            "context": { "type": "object", "additionalProperties": { "type": "string" } },
        },
    })
}

/// A record that a page could not show.
fn trouble() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "key", "reason"],
        "properties": {
            "kind": { "type": "string" }, "key": { "type": "string" }, "reason": { "type": "string" },
        },
    })
}

fn counts() -> Value {
    json!({
        "type": "object",
        "required": ["count"],
        "properties": { "count": { "type": "integer" }, "swept_until": { "type": "integer" } },
    })
}

/// Answers that every operation may give.
pub(super) fn responses() -> Map<String, Value> {
    object([("Problem", answer("A problem", "application/problem+json", schema_named("Problem")))])
}

/// An answer with a body.
pub(super) fn answer(description: &str, media: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { media: { "schema": schema } } })
}

/// An answer with a JSON body.
pub(super) fn json_answer(description: &str, schema: Value) -> Value {
    answer(description, "application/json", schema)
}

/// An answer with a record, and its version.
pub(super) fn record_answer(description: &str, record: &str) -> Value {
    let mut answer = json_answer(description, schema_named(record));
    answer["headers"] = json!({ "ETag": { "description": "the version", "required": true,
        "schema": { "type": "string" } } });
    answer
}

/// One operation. Whatever goes wrong is a problem.
pub(super) fn operation(
    id: String,
    summary: &str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let mut responses = object(answers);
    responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
    let mut operation = object([
        ("operationId", json!(id)),
        ("summary", json!(summary)),
        ("parameters", parameters.into()),
        ("responses", responses.into()),
    ]);
    if let Some(body) = body {
        operation.insert("requestBody".to_owned(), body);
    }
    operation.into()
}

/// A body that must be there.
pub(super) fn body(media: &str, schema: Value) -> Value {
    json!({ "required": true, "content": { media: { "schema": schema } } })
}

/// A parameter of the path.
pub(super) fn in_path(name: &str, schema: Value, description: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": schema, "description": description })
}

/// A parameter that may be left out.
pub(super) fn in_query(name: &str, schema: Value, description: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": schema, "description": description })
}

/// How many of something a page has at most.
pub(super) fn limit() -> Value {
    let schema = json!({ "type": "integer", "minimum": 1, "maximum": 1000 });
    in_query("limit", schema, "how many at most; 20 unless set")
}

/// Where an earlier page ended.
pub(super) fn cursor() -> Value {
    let schema = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{16,}$" });
    in_query("cursor", schema, "`next` or `previous` of an earlier page of the same question")
}

/// A switch.
pub(super) fn flag(name: &str, description: &str) -> Value {
    in_query(name, json!({ "type": "boolean" }), description)
}
