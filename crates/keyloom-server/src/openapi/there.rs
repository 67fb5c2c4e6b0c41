//! The paths that list what exists.

use keyloom::SchemaDeclaration;
use serde_json::{Map, Value, json};

use super::parts::{Operation, in_path, json_answer};
use super::{object, schema_named};

pub(super) fn paths(schema: &SchemaDeclaration) -> Map<String, Value> {
    let mut paths = object([
        ("/v1", json!({ "get": beginning() })),
        ("/v1/collections", json!({ "get": collections() })),
    ]);
    let names: Vec<&String> = schema.collections.keys().collect();
    if !names.is_empty() {
        let name = in_path("collection", json!({ "type": "string", "enum": names }), "its name");
        let one = Operation::new("collections.one", "What is declared of a collection")
            .parameters([name])
            .answer("200", json_answer("The collection", schema_named("Collection")))
            .answers([("404", "NotFound")]);
        paths.insert("/v1/collections/{collection}".to_owned(), json!({ "get": one.build() }));
    }
    paths
}

fn beginning() -> Value {
    let path = || json!({ "type": "string", "format": "uri-reference" });
    let there = json!({
        "type": "object",
        "required": ["keyloom", "space", "collections", "schema", "transaction", "batch",
            "description", "problems"],
        "properties": {
            "keyloom": { "type": "string", "description": "the version of the server" },
            "space": { "type": "string" },
            "collections": path(), "schema": path(), "transaction": path(), "batch": path(),
            "changes": path(), "kv": path(), "description": path(), "problems": path(),
        },
    });
    Operation::new("beginning", "The paths to go on by, as far as the caller may")
        .answer("200", json_answer("Paths", there))
        .build()
}

fn collections() -> Value {
    let list = json!({
        "type": "object",
        "required": ["collections"],
        "properties": {
            "collections": { "type": "array", "items": schema_named("Collection") },
        },
    });
    Operation::new("collections", "The collections that the caller may know of")
        .answer("200", json_answer("Collections by their names", list))
        .build()
}

pub(super) fn schemas() -> Map<String, Value> {
    let text = || json!({ "type": "string" });
    let path = || json!({ "type": "string", "format": "uri-reference" });
    let state = || json!({ "type": "string", "enum": ["ready", "building", "disabled", "failed"] });
    let index = json!({
        "type": "object",
        "required": ["name", "kind", "key", "url"],
        "properties": {
            "name": text(), "kind": { "type": "string", "enum": ["index", "unique", "geo"] },
            "key": text(), "state": state(), "url": path(),
            "where": { "type": "string", "description": "which records are in it, if not all" },
        },
    });
    let aggregate = json!({
        "type": "object",
        "required": ["name", "kind", "group", "url"],
        "properties": {
            "name": text(), "kind": { "type": "string", "enum": ["count", "sum"] },
            "group": { "type": "array", "items": text() }, "state": state(), "url": path(),
            "where": { "type": "string", "description": "which records are counted, if not all" },
        },
    });
    let collection = json!({
        "type": "object",
        "required": ["name", "url", "records", "key", "fields", "indexes", "aggregates"],
        "properties": {
            "name": text(), "url": path(), "records": path(),
            "key": { "type": "string", "description": "the template of its keys" },
            "access": { "type": "string", "enum": ["shared", "read-only", "owned", "hybrid"] },
            "owner": { "type": "string", "description": "the field that names the owner" },
            "fields": { "type": "object", "additionalProperties": true,
                "description": "as a schema file has them" },
            "indexes": { "type": "array", "items": schema_named("CollectionIndex") },
            "aggregates": { "type": "array", "items": schema_named("CollectionAggregate") },
        },
    });
    object([
        ("Collection", collection),
        ("CollectionIndex", index),
        ("CollectionAggregate", aggregate),
    ])
}
