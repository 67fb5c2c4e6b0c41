//! What a transaction and a batch are made of, typed for each collection.

use keyloom::{CollectionDeclaration, SchemaDeclaration};
use serde_json::{Map, Value, json};

use super::{keys, object, schema_named};

/// The schema of one operation, and of lists of them.
pub(super) fn schemas(schema: &SchemaDeclaration) -> Map<String, Value> {
    let each: Vec<Value> =
        schema.collections.iter().flat_map(|(name, collection)| of(name, collection)).collect();
    let operation = if each.is_empty() { Value::Bool(false) } else { json!({ "oneOf": each }) };
    object([("Operation", operation), ("Operations", list()), ("Results", results())])
}

fn of(name: &str, collection: &CollectionDeclaration) -> Vec<Value> {
    let key =
        json!({ "type": "string", "pattern": keys::record_pattern(collection), "maxLength": 200 });
    let operation = |op: &str, members: Vec<(&str, Value)>| {
        let mut properties =
            object([("op", json!({ "const": op })), ("collection", json!({ "const": name }))]);
        properties.extend(object(members));
        let required: Vec<&String> = properties.keys().collect();
        json!({ "type": "object", "required": required, "properties": properties.clone(),
            "additionalProperties": false })
    };
    let record = |form: &str| schema_named(&format!("{name}{form}"));
    vec![
        operation("insert", vec![("record", record(""))]),
        operation("put", vec![("key", key.clone()), ("record", record(".replacement"))]),
        operation("patch", vec![("key", key.clone()), ("patch", record(".patch"))]),
        operation("delete", vec![("key", key.clone())]),
        operation("get", vec![("key", key)]),
    ]
}

fn list() -> Value {
    json!({
        "type": "object",
        "required": ["operations"],
        "additionalProperties": false,
        "properties": { "operations": {
            "type": "array", "minItems": 1, "maxItems": 1000, "items": schema_named("Operation"),
        } },
    })
}

fn results() -> Value {
    json!({
        "type": "object",
        "required": ["results"],
        "properties": { "results": { "type": "array", "items": { "type": "object" } } },
    })
}
