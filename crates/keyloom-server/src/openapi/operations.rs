//! What a transaction and a batch are made of.
//!
//! The operations of a transaction are typed for each collection: one that does not fit refuses
//! them all. Those of a batch are answered each by itself, so that only their form is described.

use keyloom::{CollectionDeclaration, SchemaDeclaration};
use serde_json::{Map, Value, json};

use super::collections::{additions, own_beginning};
use super::keys::Escapes;
use super::{Scope, keys, object, schema_named};

/// The schemas of operations, of lists of them, and of their answers.
pub(super) fn schemas(schema: &SchemaDeclaration, scope: &Scope) -> Map<String, Value> {
    let collections = || schema.collections.iter();
    let each: Vec<Value> =
        collections().flat_map(|(name, collection)| typed(name, collection, scope)).collect();
    let operation = if each.is_empty() { json!(false) } else { json!({ "anyOf": each }) };
    let most = scope.limits.operations_max;
    object([
        ("Operation", operation),
        ("BatchOperation", json!({ "anyOf": in_batch() })),
        ("Operations", list("Operation", most)),
        ("BatchOperations", list("BatchOperation", most)),
        ("Results", results(result())),
        ("BatchResults", results(batch_result())),
    ])
}

/// An operation with these members and no others.
fn operation(op: &str, required: Vec<(&str, Value)>, optional: Vec<(&str, Value)>) -> Value {
    let mut properties = object([("op", json!({ "const": op }))]);
    properties.extend(object(required));
    let required: Vec<String> = properties.keys().cloned().collect();
    properties.extend(object(optional));
    json!({ "type": "object", "required": required, "properties": properties,
        "additionalProperties": false })
}

/// The operations on one collection.
fn typed(name: &str, collection: &CollectionDeclaration, scope: &Scope) -> Vec<Value> {
    let beginning = own_beginning(collection, scope);
    let pattern = keys::record_pattern(collection, beginning, Escapes::Shown);
    let on = || ("collection", json!({ "const": name }));
    let key = || ("key", json!({ "type": "string", "pattern": pattern }));
    let record = |form: &str| schema_named(&format!("{name}{form}"));
    let members = |more: Vec<(&'static str, Value)>| [vec![on(), key()], more].concat();
    let mut all = vec![
        operation("insert", vec![on(), ("record", record(""))], vec![]),
        operation("get", members(vec![]), vec![]),
    ];
    let replacement = || ("record", record(".replacement"));
    all.extend(conditional(&members, replacement, ("patch", record(".patch"))));
    if !collection.counters.is_empty() {
        all.push(operation("increment", members(vec![("add", additions(collection))]), vec![]));
    }
    all
}

/// The form of every operation, with its conditions.
fn in_batch() -> Vec<Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let on = || ("collection", text("its name"));
    let members = |more: Vec<(&'static str, Value)>| {
        [vec![on(), ("key", text("the record's name"))], more].concat()
    };
    let object = || json!({ "type": "object", "additionalProperties": schema_named("Json") });
    let delta = json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX });
    let deltas = json!({ "type": "object", "minProperties": 1, "additionalProperties": delta });
    let record = || ("record", object());
    let mut all = vec![
        operation("insert", vec![on(), record()], vec![]),
        operation("increment", members(vec![("add", deltas)]), vec![]),
        operation("get", members(vec![]), vec![]),
    ];
    all.extend(conditional(&members, record, ("patch", object())));
    all
}

/// The operations that take conditions, on what `members` name.
fn conditional(
    members: &impl Fn(Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)>,
    record: impl Fn() -> (&'static str, Value),
    patch: (&'static str, Value),
) -> Vec<Value> {
    let only = |name: &'static str, value: bool| (name, json!({ "const": value }));
    let flag = |name: &'static str| (name, json!({ "type": "boolean" }));
    vec![
        operation("put", members(vec![record()]), vec![flag("if_absent")]),
        operation("put", members(vec![record(), version()]), vec![only("if_absent", false)]),
        operation("patch", members(vec![patch]), vec![version(), guard()]),
        operation("delete", members(vec![]), vec![version()]),
        operation("check", members(vec![flag("exists")]), vec![]),
        operation("check", members(vec![version()]), vec![guard(), only("exists", true)]),
        operation("check", members(vec![guard()]), vec![version(), only("exists", true)]),
    ]
}

fn version() -> (&'static str, Value) {
    let pattern = "^[0-9a-f]{32}-(?:0|[1-9][0-9]{0,17})$";
    let about = "only in this version";
    ("if_match", json!({ "type": "string", "pattern": pattern, "description": about }))
}

fn guard() -> (&'static str, Value) {
    let about = "only while these fields, named by their paths, have these values";
    let fields = schema_named("Json");
    (
        "if",
        json!({ "type": "object", "minProperties": 1, "additionalProperties": fields,
            "description": about }),
    )
}

fn list(operation: &str, operations_max: usize) -> Value {
    let about = format!(
        "at most {operations_max}; more are refused with 413. In a transaction, a condition that \
         does not hold refuses them all with 412."
    );
    json!({
        "type": "object",
        "required": ["operations"],
        "additionalProperties": false,
        "properties": { "operations": {
            "type": "array", "minItems": 1, "items": schema_named(operation), "description": about,
        } },
    })
}

/// The answer of one operation.
fn result() -> Value {
    json!({
        "type": "object",
        "required": ["op"],
        "properties": {
            "op": { "type": "string" },
            "key": { "type": "string" },
            "version": { "type": "string" },
            "record": { "type": ["object", "null"] },
            "values": { "type": "object", "additionalProperties": { "type": "integer" } },
        },
    })
}

fn batch_result() -> Value {
    json!({
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": { "type": "integer", "description": "as of a request by itself" },
            "body": { "anyOf": [result(), schema_named("Problem")] },
            "etag": { "type": "string" },
        },
    })
}

fn results(result: Value) -> Value {
    json!({
        "type": "object",
        "required": ["results"],
        "properties": { "results": { "type": "array", "items": result } },
    })
}
