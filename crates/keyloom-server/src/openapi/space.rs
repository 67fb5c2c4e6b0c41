//! The paths of a whole space: transactions, changes, plain keys, the schema.

use keyloom::SchemaDeclaration;
use serde_json::{Map, Value, json};

use super::parts::{
    Operation, answer, area, choice, cursor, empty, header_named, in_path, in_query, json_answer,
    number, required, with_header,
};
use super::{Scope, object, schema_named};

/// All paths that do not belong to one collection.
pub(super) fn paths(schema: &SchemaDeclaration, scope: &Scope) -> Map<String, Value> {
    let mut paths = object([
        ("/v1/transaction", json!({ "post": transaction() })),
        ("/v1/batch", json!({ "post": batch() })),
        ("/v1/schema", json!({ "get": stored_schema() })),
    ]);
    if scope.reads_keys {
        let one = || vec![in_path("key", json!({ "type": "string", "minLength": 1 }), "the key")];
        let base64 = || {
            // Groups of two, three or four letters for one, two or three bytes; unused bits are
            // zero.
            let pattern = "^(?:(?:[A-Za-z0-9_-]{4})+\
                 |(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]))=*$";
            let schema = json!({ "type": "string", "pattern": pattern });
            vec![required(in_query("key_base64", schema, "the key, in Base64 for URLs"))]
        };
        paths.extend(object([
            ("/v1/kv", json!({
                "get": list(scope), "put": put("kv.put.bytes", base64()),
                "delete": delete("kv.delete.bytes", base64()),
            })),
            ("/v1/kv/{key}", json!({
                "get": get(one()), "put": put("kv.put", one()), "delete": delete("kv.delete", one()),
            })),
        ]));
    }
    if schema.log.is_some() && !scope.is_user {
        paths.insert("/v1/changes".to_owned(), json!({ "get": changes(schema, scope) }));
    }
    paths
}

fn transaction() -> Value {
    Operation::new("transaction", "Several operations, all or nothing")
        .parameters([header_named("Idempotency-Key")])
        .body("application/json", schema_named("Operations"))
        .answer("200", json_answer("One result for each", schema_named("Results")))
        .answers([("404", "NotFound"), ("409", "Conflict"), ("412", "Changed"), ("422", "Invalid")])
        .build()
}

fn batch() -> Value {
    Operation::new("batch", "Several operations, each by itself")
        .parameters([header_named("Idempotency-Key")])
        .body("application/json", schema_named("BatchOperations"))
        .answer("200", json_answer("One answer for each", schema_named("BatchResults")))
        .build()
}

fn changes(schema: &SchemaDeclaration, scope: &Scope) -> Value {
    let position = || json!({ "type": "string", "pattern": "^[1-9][0-9]{0,17}$" });
    let change = json!({
        "type": "object",
        "required": ["collection", "stored_at", "became"],
        "properties": {
            "collection": { "type": "string" },
            "stored_at": { "type": "string" },
            "before": { "type": ["string", "null"], "description": "the version before it" },
            "became": { "type": "string", "enum": ["written", "deleted", "untouched"] },
            "version": { "type": "string" },
            "record": { "type": "object", "additionalProperties": true },
            "increments": { "type": "object", "additionalProperties": { "type": "integer" } },
        },
    });
    let commit = json!({
        "type": "object",
        "required": ["position", "at", "changes", "is_schema_change"],
        "properties": {
            "position": position(),
            "at": { "type": "integer" },
            "by": { "type": ["string", "null"] },
            "is_schema_change": { "type": "boolean" },
            "changes": { "type": "array", "items": change },
        },
    });
    let page = json!({
        "type": "object",
        "required": ["commits", "next", "oldest", "is_end"],
        "properties": {
            "commits": { "type": "array", "items": commit },
            "next": position(),
            "oldest": position(),
            "is_end": { "type": "boolean" },
        },
    });
    let mut found = json_answer("Commits, in their order", page);
    // An answer is an object.
    found["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
    let names = schema.collections.keys().cloned();
    Operation::new("changes", "The change log")
        .about(
            "With `Accept: text/event-stream` a stream that goes on, without `limit`, resumed by \
             `Last-Event-ID`. A position that is not kept any more is 410.",
        )
        .parameters([
            in_query("from", position(), "the first position to read: `next` of an earlier page"),
            number("limit", scope.limits.page_max, "commits of the page; 100 unless set"),
            in_query("prefix", json!({ "type": "string" }), "what the keys begin with"),
        ])
        .parameters(choice("collection", names, "changes of this collection alone"))
        .answer("200", found)
        .answers([("409", "Unanswerable")])
        .build()
}

fn list(scope: &Scope) -> Value {
    let key = json!({
        "type": "object",
        "properties": {
            "key": { "type": "string" },
            "key_base64": { "type": "string", "description": "of a key that is not UTF-8" },
            "value": { "type": "string" },
            "value_base64": { "type": "string", "description": "of a value that is not UTF-8" },
        },
    });
    let page = json!({
        "type": "object",
        "required": ["keys", "stopped", "problems"],
        "properties": {
            "keys": { "type": "array", "items": key },
            "next": { "type": "string" },
            "stopped": { "type": "string", "enum": ["take", "bytes", "end"] },
            "problems": { "type": "array", "items": schema_named("Trouble") },
        },
    });
    Operation::new("kv.list", "Keys by their beginning")
        .about(
            "`prefix_base64` instead of `prefix` for bytes that are no text. With `key_base64` \
             and `area` alone, what is at that key, as bytes.",
        )
        .parameters([
            in_query("prefix", json!({ "type": "string" }), "what keys begin with"),
            number("limit", scope.limits.page_max, "keys of the page; 100 unless set"),
            cursor(),
            area(),
        ])
        .answer("200", json_answer("Keys in order", page))
        .answers([("409", "Unanswerable")])
        .build()
}

fn get(key: Vec<Value>) -> Value {
    let bytes = answer("What is there", "application/octet-stream", json!({}));
    Operation::new("kv.get", "What is at a key")
        .parameters(key)
        .parameters([area()])
        .answer("200", with_header(bytes, "ETag", "made from the bytes"))
        .answer("304", empty("It has not changed"))
        .answers([("404", "NotFound")])
        .build()
}

fn put(id: &str, key: Vec<Value>) -> Value {
    let bytes = json!({ "type": "string", "format": "binary" });
    Operation::new(id, "Put bytes at a key; at the key of a record, the record")
        .about(
            "`area=`: in another area. What begins like the key of a record and is none is refused.",
        )
        .parameters(key)
        .parameters([header_named("Idempotency-Key")])
        .optional_body("application/octet-stream", bytes)
        .answer("204", empty("It is there"))
        .answers([("409", "Conflict"), ("422", "Invalid")])
        .build()
}

fn delete(id: &str, key: Vec<Value>) -> Value {
    Operation::new(id, "Delete what is at a key")
        .parameters(key)
        .parameters([area(), header_named("Idempotency-Key")])
        .answer("204", empty("It is gone"))
        .answers([("404", "NotFound"), ("409", "Conflict")])
        .build()
}

fn stored_schema() -> Value {
    let schema = json!({
        "type": "object",
        "required": ["schema", "keyspace", "indexes"],
        "properties": {
            "schema": { "type": "object", "additionalProperties": true, "description": "as a schema file has it" },
            "keyspace": { "type": "array", "items": { "type": "object", "additionalProperties": true } },
            "indexes": { "type": "object", "additionalProperties": {
                "type": "object", "additionalProperties": {
                    "type": "string", "enum": ["ready", "building", "disabled", "failed"],
                },
            } },
            "failures": { "type": "object", "additionalProperties": true },
        },
    });
    Operation::new("schema", "The schema of the space")
        .answer("200", json_answer("The schema and its keys", schema))
        .build()
}
