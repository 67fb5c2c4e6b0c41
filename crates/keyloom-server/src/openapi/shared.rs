//! The parts that many operations share: free JSON, problems, records of pages, headers.
//!
//! The schema of JSON within JSON refers to itself. Client generators do not accept such a schema
//! in a union, and ignore `if`. So they see any JSON there, which is the type that a client can
//! use.

use serde_json::{Map, Value, json};

use super::fields::name_in_patch;
use super::parts::answer;
use super::{object, schema_named};

/// Schemas that do not depend on the declared schema.
pub(super) fn schemas() -> Map<String, Value> {
    object([
        ("Json", free_json()),
        ("Change", change()),
        ("Problem", problem()),
        ("Trouble", trouble()),
        ("Counts", counts()),
        ("OwnedKeys", owned_keys()),
    ])
}

/// Any JSON that Keyloom stores as it came.
fn free_json() -> Value {
    json!({
        "description": "any JSON; whole numbers have at most 64 bits",
        "if": { "type": "integer" },
        "then": { "minimum": i64::MIN, "maximum": u64::MAX },
        "else": { "items": schema_named("Json"), "additionalProperties": schema_named("Json") },
    })
}

/// Any JSON that is merged into the existing record.
fn change() -> Value {
    json!({
        "description": "any JSON; names in objects have no dots",
        "if": { "type": "object" },
        "then": {
            "propertyNames": name_in_patch(),
            "additionalProperties": schema_named("Change"),
        },
        "else": schema_named("Json"),
    })
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
            "context": { "type": "object", "additionalProperties": true, "description":
                "what belongs to the detail, by name; several values of one name are an array" },
            "holder": { "type": "string",
                "description": "of a unique value: the key of the record that has it" },
            "holder_owner": { "type": "string", "description": "whose record that is" },
            "current": { "type": "object", "required": ["version"],
                "description": "the record as it is, where a condition does not hold",
                "properties": { "version": { "type": "string" }, "record": { "type": "object", "additionalProperties": true } } },
            "operation": { "type": "integer",
                "description": "of a transaction: the number of the operation, from 0" },
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
        "properties": {
            "count": { "type": "integer", "minimum": 0 },
            "swept_until": { "type": "integer",
                "description": "keys of records that expired since then are still counted" },
        },
    })
}

fn owned_keys() -> Value {
    let key = json!({
        "type": "object",
        "required": ["area", "key", "value", "kind", "is_present"],
        "properties": {
            "area": { "type": "string" },
            "key": { "type": "string" },
            "value": { "type": "string" },
            "kind": { "type": "string" },
            "index": { "type": "string" },
            "aggregate": { "type": "string" },
            "is_present": { "type": "boolean" },
        },
    });
    json!({
        "type": "object",
        "required": ["keys"],
        "properties": { "keys": { "type": "array", "items": key } },
    })
}

/// Problems that operations refer to.
pub(super) fn responses() -> Map<String, Value> {
    let problem = |about: &str| answer(about, "application/problem+json", schema_named("Problem"));
    object([
        ("Problem", problem("A problem; its type has a page at its URL")),
        ("NotFound", problem("There is nothing here, or nothing that the caller may see")),
        ("Conflict", problem("What is stored, or declared, stands against it")),
        ("Unanswerable", problem("No index answers this, or the parameters do not go together")),
        ("Changed", problem("A condition does not hold; `current` is the record as it is")),
        ("Invalid", problem("The record breaks its schema")),
    ])
}

/// A list of entity tags (RFC 9110).
const TAGS: &str = r#"^(?:W/)?"[!#-~]*"(?: ?, ?(?:W/)?"[!#-~]*"){0,19}$"#;

/// Headers of many operations. Each operation lists those that it accepts, except for
/// `Keyloom-Act-As`, which every operation accepts, but only from some callers.
pub(super) fn headers() -> Map<String, Value> {
    let header = |name: &str, schema: Value, about: &str| json!({ "name": name, "in": "header", "schema": schema, "description": about });
    let version = "\"0199c0e2a1b27f3c0000000000000000-3\"";
    let any = || json!({ "type": "string", "enum": ["*"] });
    let tags = || {
        json!({ "anyOf": [
            { "type": "string", "pattern": TAGS, "examples": [version] }, any(),
        ] })
    };
    let key = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
    let user = json!({ "type": "string" });
    object([
        (
            "If-Match",
            header(
                "If-Match",
                tags(),
                "write only this version, the `ETag` of the record; 412 if it has changed",
            ),
        ),
        ("If-None-Match", header("If-None-Match", tags(), "304 if it is still in this version")),
        ("If-Absent", header("If-None-Match", any(), "`*`: create only; 412 if there is a record")),
        (
            "Idempotency-Key",
            header(
                "Idempotency-Key",
                key,
                "new for each write; repeated with the same, it happens once",
            ),
        ),
        ("Keyloom-Act-As", header("Keyloom-Act-As", user, "the acting user, percent-encoded")),
    ])
}
