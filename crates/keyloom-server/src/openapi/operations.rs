//! The operations of transactions and batches.
//!
//! The operations of a transaction are typed for each collection, since a single one that does not
//! fit makes all of them fail. The operations of a batch are answered one by one, so only their
//! form is described.

use keyloom::{CollectionDeclaration, SchemaDeclaration};
use serde_json::{Map, Value, json};

use super::collections::{additions, own_beginning};
use super::keys::Escapes;
use super::{Scope, keys, object, schema_named};

/// The schemas of operations, of lists of them, and of their answers.
pub(super) fn schemas(schema: &SchemaDeclaration, scope: &Scope) -> Map<String, Value> {
    let each = schema.collections.iter().flat_map(|(name, collection)| {
        let named = move |(label, form)| (format!("{name}.op.{label}"), form);
        typed(name, collection, scope).into_iter().map(named)
    });
    let each: Vec<(String, Value)> = each.collect();
    let in_batch: Vec<(String, Value)> = in_batch()
        .into_iter()
        .map(|(label, form)| (format!("BatchOperation.{label}"), form))
        .collect();
    let most = scope.limits.operations_max;
    let mut schemas = object([
        ("Operation", one_of(&each)),
        ("BatchOperation", one_of(&in_batch)),
        ("Operations", list("Operation", most)),
        ("BatchOperations", list("BatchOperation", most)),
        ("Guard", guard()),
        ("Result", result()),
        ("BatchResult", batch_result()),
        ("Results", results("Result")),
        ("BatchResults", results("BatchResult")),
    ]);
    schemas.extend(each.into_iter().chain(in_batch));
    schemas
}

/// One of several named schemas; nothing matches if there are none.
fn one_of(named: &[(String, Value)]) -> Value {
    if named.is_empty() {
        return json!(false);
    }
    let all: Vec<Value> = named.iter().map(|(name, _)| schema_named(name)).collect();
    json!({ "anyOf": all })
}

/// The name of an operation, and its form: exactly these members.
type Form = (&'static str, Value);

fn operation(
    label: &'static str,
    op: &str,
    required: Vec<(&str, Value)>,
    optional: Vec<(&str, Value)>,
) -> Form {
    let mut properties = object([("op", json!({ "type": "string", "const": op }))]);
    properties.extend(object(required));
    let required: Vec<String> = properties.keys().cloned().collect();
    properties.extend(object(optional));
    let form = json!({ "type": "object", "required": required, "properties": properties,
        "additionalProperties": false });
    (label, form)
}

/// The operations on one collection.
fn typed(name: &str, collection: &CollectionDeclaration, scope: &Scope) -> Vec<Form> {
    let beginning = own_beginning(collection, scope);
    let pattern = keys::record_pattern(collection, beginning, Escapes::Shown);
    let on = || ("collection", json!({ "type": "string", "const": name }));
    let key = || ("key", json!({ "type": "string", "pattern": pattern }));
    let record = |form: &str| schema_named(&format!("{name}{form}"));
    let members = |more: Vec<(&'static str, Value)>| [vec![on(), key()], more].concat();
    let mut all = vec![
        operation("insert", "insert", vec![on(), ("record", record(""))], vec![]),
        operation("get", "get", members(vec![]), vec![]),
    ];
    let replacement = || ("record", record(".replacement"));
    all.extend(conditional(&members, replacement, ("patch", record(".patch"))));
    if !collection.counters.is_empty() {
        let add = ("add", additions(collection));
        all.push(operation("increment", "increment", members(vec![add]), vec![]));
    }
    all
}

/// The form of every operation, with its conditions.
fn in_batch() -> Vec<Form> {
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
        operation("insert", "insert", vec![on(), record()], vec![]),
        operation("increment", "increment", members(vec![("add", deltas)]), vec![]),
        operation("get", "get", members(vec![]), vec![]),
    ];
    all.extend(conditional(&members, record, ("patch", object())));
    all
}

/// The operations with conditions, on the record that `members` names.
fn conditional(
    members: &impl Fn(Vec<(&'static str, Value)>) -> Vec<(&'static str, Value)>,
    record: impl Fn() -> (&'static str, Value),
    patch: (&'static str, Value),
) -> Vec<Form> {
    let only =
        |name: &'static str, value: bool| (name, json!({ "type": "boolean", "const": value }));
    let flag = |name: &'static str| (name, json!({ "type": "boolean" }));
    let fields = || ("if", schema_named("Guard"));
    let exists = || only("exists", true);
    vec![
        operation("put", "put", members(vec![record()]), vec![flag("if_absent")]),
        operation(
            "put_version",
            "put",
            members(vec![record(), version()]),
            vec![only("if_absent", false)],
        ),
        operation("patch", "patch", members(vec![patch]), vec![version(), fields()]),
        operation("delete", "delete", members(vec![]), vec![version()]),
        operation("check", "check", members(vec![flag("exists")]), vec![]),
        operation("check_version", "check", members(vec![version()]), vec![fields(), exists()]),
        operation("check_fields", "check", members(vec![fields()]), vec![version(), exists()]),
    ]
}

fn version() -> (&'static str, Value) {
    let pattern = "^[0-9a-f]{32}-(?:0|[1-9][0-9]{0,17})$";
    let about = "only in this version";
    ("if_match", json!({ "type": "string", "pattern": pattern, "description": about }))
}

fn guard() -> Value {
    let about = "only while these fields, named by their paths, have these values";
    json!({ "type": "object", "minProperties": 1, "additionalProperties": schema_named("Json"),
        "description": about })
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
            "record": { "type": ["object", "null"], "additionalProperties": true },
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
            "body": { "anyOf": [schema_named("Result"), schema_named("Problem")] },
            "etag": { "type": "string" },
        },
    })
}

fn results(result: &str) -> Value {
    json!({
        "type": "object",
        "required": ["results"],
        "properties": { "results": { "type": "array", "items": schema_named(result) } },
    })
}
