//! The paths of a whole space: transactions, changes, plain keys, the schema.

use keyloom::SchemaDeclaration;
use serde_json::{Map, Value, json};

use super::parts::{answer, body, cursor, in_path, in_query, json_answer, limit, operation};
use super::{object, schema_named};

/// Every path that does not belong to one collection.
pub(super) fn paths(schema: &SchemaDeclaration) -> Map<String, Value> {
    let mut paths = object([
        ("/v1/transaction", json!({ "post": transaction() })),
        ("/v1/batch", json!({ "post": batch() })),
        ("/v1/kv", json!({ "get": list() })),
        ("/v1/kv/{key}", json!({ "get": get(), "put": put(), "delete": delete() })),
        ("/v1/schema", json!({ "get": stored_schema() })),
    ]);
    if schema.log.is_some() {
        paths.insert("/v1/changes".to_owned(), json!({ "get": changes() }));
    }
    paths
}

fn transaction() -> Value {
    let operations = body("application/json", schema_named("Operations"));
    let answers = [("200", json_answer("One result for each", schema_named("Results")))];
    let summary = "Several operations, all or nothing";
    operation("transaction".to_owned(), summary, Vec::new(), Some(operations), answers)
}

fn batch() -> Value {
    let operations = body("application/json", schema_named("Operations"));
    let answers = [("200", json_answer("One answer for each", schema_named("Results")))];
    let summary = "Several operations, each by itself";
    operation("batch".to_owned(), summary, Vec::new(), Some(operations), answers)
}

fn changes() -> Value {
    let from = json!({ "type": "integer", "minimum": 0 });
    let parameters = vec![in_query("from", from, "the first position to read"), limit()];
    let page = json!({ "type": "object", "required": ["commits", "next"], "properties": {
        "commits": { "type": "array", "items": { "type": "object" } },
        "next": { "type": "integer" }, "oldest": { "type": "integer" },
    } });
    let answers = [("200", json_answer("Commits, in their order", page))];
    operation("changes".to_owned(), "The change log", parameters, None, answers)
}

fn key() -> Value {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    in_path("key", schema, "the whole key")
}

fn list() -> Value {
    let prefix = json!({ "type": "string", "maxLength": 200 });
    let parameters = vec![in_query("prefix", prefix, "what keys begin with"), limit(), cursor()];
    let page = json!({ "type": "object", "required": ["keys"], "properties": {
        "keys": { "type": "array", "items": { "type": "object" } }, "next": { "type": "string" },
    } });
    let answers = [("200", json_answer("Keys in order", page))];
    operation("kv.list".to_owned(), "Keys by their beginning", parameters, None, answers)
}

fn get() -> Value {
    let bytes = answer("What is there", "application/octet-stream", json!({}));
    operation("kv.get".to_owned(), "What is at a key", vec![key()], None, [("200", bytes)])
}

fn put() -> Value {
    let bytes = body("application/octet-stream", json!({ "type": "string", "format": "binary" }));
    let answers = [("204", json!({ "description": "It is there" }))];
    operation("kv.put".to_owned(), "Put bytes at a key", vec![key()], Some(bytes), answers)
}

fn delete() -> Value {
    let answers = [("204", json!({ "description": "It is gone" }))];
    operation("kv.delete".to_owned(), "Delete what is at a key", vec![key()], None, answers)
}

fn stored_schema() -> Value {
    let answers = [("200", json_answer("The schema and its keys", json!({ "type": "object" })))];
    operation("schema".to_owned(), "The schema of the space", Vec::new(), None, answers)
}
