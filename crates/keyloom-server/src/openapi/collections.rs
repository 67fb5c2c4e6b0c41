//! The paths of one collection, with its records typed.

use keyloom::{CollectionDeclaration, FieldType};
use serde_json::{Map, Value, json};

use super::fields::{self, Form};
use super::parts::{
    body, cursor, flag, in_path, in_query, json_answer, limit, operation, record_answer,
};
use super::{keys, object, schema_named};

/// The schemas of a collection's records and pages.
pub(super) fn schemas(name: &str, collection: &CollectionDeclaration) -> Map<String, Value> {
    let stored =
        json!({ "type": "object", "description": "the record, with its counters in place" });
    object([
        (name.to_owned(), fields::record(collection, Form::Whole)),
        (format!("{name}.stored"), stored),
        (format!("{name}.replacement"), fields::record(collection, Form::Replacement)),
        (format!("{name}.patch"), fields::record(collection, Form::Patch)),
        (format!("{name}.page"), page(name)),
    ])
}

/// Every path below a collection.
pub(super) fn paths(name: &str, collection: &CollectionDeclaration) -> Map<String, Value> {
    let at = |rest: &str| format!("/v1/collections/{name}{rest}");
    let key = keys::record_pattern(collection);
    let key = || {
        let schema = json!({ "type": "string", "pattern": key, "maxLength": 200 });
        vec![in_path("key", schema, "the record's key, after the beginning of its template")]
    };
    let mut paths = object([
        (at("/records"), json!({ "get": list(name, collection), "post": insert(name) })),
        (at("/records/{key}"), one(name, &key)),
        (at("/records/{key}/entries"), json!({ "get": entries(name, key()) })),
    ]);
    if !collection.counters.is_empty() {
        let increment = json!({ "post": increment(name, collection, key()) });
        paths.insert(at("/records/{key}/increment"), increment);
    }
    if collection.history.is_some() {
        paths.insert(at("/records/{key}/history"), json!({ "get": history(name, key()) }));
    }
    for (index, declared) in &collection.unique {
        let (path, operation) = unique(name, index, &declared.key, collection);
        paths.insert(at(&path), json!({ "get": operation }));
    }
    if !collection.geo.is_empty() {
        paths.insert(at("/near"), json!({ "get": near(name, collection) }));
    }
    for aggregate in collection.count.keys().chain(collection.sum.keys()) {
        paths
            .insert(at(&format!("/groups/{aggregate}")), json!({ "get": groups(name, aggregate) }));
    }
    paths.insert(at("/count"), json!({ "get": count(name, collection) }));
    paths
}

fn page(name: &str) -> Value {
    let record = json!({
        "type": "object",
        "required": ["key", "stored_at"],
        "properties": {
            "key": { "type": "string" },
            "stored_at": { "type": "string" },
            "version": { "type": "string" },
            "record": schema_named(&format!("{name}.stored")),
            "distance_m": { "type": "number" },
        },
    });
    json!({
        "type": "object",
        "properties": {
            "records": { "type": "array", "items": record },
            "next": { "type": "string" },
            "previous": { "type": "string" },
            "stopped": { "type": "string", "enum": ["take", "limit", "end"] },
            "read": { "type": "integer" },
            "problems": { "type": "array", "items": schema_named("Trouble") },
            "swept_until": { "type": "integer" },
            "plan": { "type": "string", "description": "instead of all others, with `explain`" },
        },
    })
}

/// The operations on one record.
fn one(name: &str, key: &impl Fn() -> Vec<Value>) -> Value {
    let stored = format!("{name}.stored");
    let replacement = body("application/json", schema_named(&format!("{name}.replacement")));
    let patch = body("application/merge-patch+json", schema_named(&format!("{name}.patch")));
    let found = record_answer("The record", &stored);
    json!({
        "get": operation(format!("{name}.get"), "Read a record", key(), None,
            [("200", found.clone()), ("304", json!({ "description": "It has not changed" }))]),
        "put": operation(format!("{name}.put"), "Replace a record, or create it", key(),
            Some(replacement), [("200", found.clone()), ("201", found.clone())]),
        "patch": operation(format!("{name}.patch"), "Change a part of a record (RFC 7386)", key(),
            Some(patch), [("200", found)]),
        "delete": operation(format!("{name}.delete"), "Delete a record with every key that it owns",
            key(), None, [("204", json!({ "description": "It is gone" }))]),
    })
}

fn insert(name: &str) -> Value {
    let mut created = record_answer("The record as it was stored", &format!("{name}.stored"));
    created["headers"]["Location"] =
        json!({ "description": "where it is", "required": true, "schema": { "type": "string" } });
    let record = body("application/json", schema_named(name));
    let id = format!("{name}.insert");
    operation(id, "Insert a record", Vec::new(), Some(record), [("201", created)])
}

fn list(name: &str, collection: &CollectionDeclaration) -> Value {
    let mut parameters = conditions(collection);
    let orders: Vec<String> =
        ordered(collection).flat_map(|field| [field.clone(), format!("-{field}")]).collect();
    if !orders.is_empty() {
        let schema = json!({ "type": "string", "enum": orders });
        parameters.push(in_query("order", schema, "by this field; with `-` the highest first"));
    }
    let indexes: Vec<&String> = collection.index.keys().collect();
    if !indexes.is_empty() {
        let schema = json!({ "type": "string", "enum": indexes });
        parameters.push(in_query("index", schema, "by this index"));
    }
    parameters.extend([
        limit(),
        cursor(),
        flag("scan", "read the whole collection where no index serves"),
        flag("keys_only", "keys without records"),
        flag("explain", "the plan instead of the page"),
    ]);
    let answers = [("200", json_answer("A page", schema_named(&format!("{name}.page"))))];
    operation(format!("{name}.list"), "A page of records", parameters, None, answers)
}

/// What can be asked of the declared fields.
fn conditions(collection: &CollectionDeclaration) -> Vec<Value> {
    let mut parameters = Vec::new();
    for (path, declared) in &collection.fields {
        if matches!(declared.field_type, FieldType::Map | FieldType::Point { .. }) {
            continue;
        }
        let schema = || fields::field(&declared.field_type);
        let name = format!("where.{path}");
        parameters.push(in_query(&name, schema(), "equal"));
        if is_ordered(&declared.field_type) {
            for bound in ["gt", "gte", "lt", "lte"] {
                let name = format!("where.{path}.{bound}");
                parameters.push(in_query(&name, schema(), "a bound of the range"));
            }
        }
    }
    parameters
}

/// The fields that a page can be ordered by.
fn ordered(collection: &CollectionDeclaration) -> impl Iterator<Item = &String> {
    let fields = collection.fields.iter();
    fields.filter(|(_, field)| is_ordered(&field.field_type)).map(|(path, _)| path)
}

fn is_ordered(kind: &FieldType) -> bool {
    matches!(
        kind,
        FieldType::Integer { .. } | FieldType::Float | FieldType::Timestamp | FieldType::Datetime
    )
}

fn count(name: &str, collection: &CollectionDeclaration) -> Value {
    let mut parameters = conditions(collection);
    parameters.push(flag("scan", "read the whole collection where no index serves"));
    let answers = [("200", json_answer("How many", schema_named("Counts")))];
    operation(format!("{name}.count"), "Count records", parameters, None, answers)
}

fn groups(name: &str, aggregate: &str) -> Value {
    let group = json!({
        "type": "object",
        "required": ["values", "count"],
        "properties": {
            "values": { "type": ["array", "object"] },
            "count": { "type": "integer" },
            "sum": { "type": "integer" },
        },
    });
    let page = json!({
        "type": "object",
        "required": ["groups"],
        "properties": { "groups": { "type": "array", "items": group }, "next": { "type": "string" } },
    });
    let id = format!("{name}.groups.{aggregate}");
    let answers = [("200", json_answer("The groups", page))];
    operation(id, "The groups of a declared aggregate", vec![limit(), cursor()], None, answers)
}

fn near(name: &str, collection: &CollectionDeclaration) -> Value {
    let required = |parameter: Value| {
        let mut parameter = parameter;
        parameter["required"] = json!(true);
        parameter
    };
    let radius = json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 20_100_000 });
    let mut parameters = vec![
        required(in_query("lat", fields::latitude(), "latitude in degrees")),
        required(in_query("lon", fields::longitude(), "longitude in degrees")),
        required(in_query("radius_m", radius, "how far away at most, in metres")),
        limit(),
        cursor(),
    ];
    let indexes: Vec<&String> = collection.geo.keys().collect();
    let schema = json!({ "type": "string", "enum": indexes });
    let mut index = in_query("index", schema, "by this index");
    index["required"] = json!(indexes.len() > 1);
    parameters.push(index);
    let answers = [("200", json_answer("Nearest first", schema_named(&format!("{name}.page"))))];
    operation(format!("{name}.near"), "Records around a place", parameters, None, answers)
}

/// The look-up by a unique index: one part of the path for each of its fields.
fn unique(
    name: &str,
    index: &str,
    template: &str,
    collection: &CollectionDeclaration,
) -> (String, Value) {
    let fields = keys::fields(template);
    let path = fields.iter().fold(format!("/unique/{index}"), |path, field| {
        format!("{path}/{{{}}}", field.replace(['.', '*'], "_"))
    });
    let parameters = fields
        .iter()
        .map(|field| {
            let declared = collection.fields.get(field);
            let mut schema =
                declared.map_or(json!({ "type": "string" }), |it| fields::field(&it.field_type));
            if schema["type"] == "string" && schema.get("enum").is_none() {
                schema["minLength"] = json!(1);
            }
            in_path(&field.replace(['.', '*'], "_"), schema, "the unique value")
        })
        .collect();
    let answers = [("200", record_answer("The record", &format!("{name}.stored")))];
    let id = format!("{name}.by.{index}");
    (path, operation(id, "The record with a unique value", parameters, None, answers))
}

fn increment(name: &str, collection: &CollectionDeclaration, key: Vec<Value>) -> Value {
    let names: Vec<String> = collection
        .counters
        .keys()
        .map(|path| path.split('.').map(counter_step).collect::<Vec<_>>().join("\\."))
        .collect();
    let deltas = json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": { "pattern": format!("^({})$", names.join("|")) },
        "additionalProperties": { "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX },
    });
    let values = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let id = format!("{name}.increment");
    let answers = [("200", json_answer("The values after it", values))];
    operation(id, "Add to counters", key, Some(body("application/json", deltas)), answers)
}

fn counter_step(step: &str) -> String {
    if step == "*" { "[A-Za-z0-9_]{1,40}".to_owned() } else { step.to_owned() }
}

fn history(name: &str, mut key: Vec<Value>) -> Value {
    key.extend([limit(), cursor()]);
    let versions = json!({
        "type": "object",
        "required": ["versions"],
        "properties": {
            "versions": { "type": "array", "items": { "type": "object" } },
            "next": { "type": "string" },
        },
    });
    let answers = [("200", json_answer("Newest first", versions))];
    operation(format!("{name}.history"), "The versions of a record", key, None, answers)
}

fn entries(name: &str, key: Vec<Value>) -> Value {
    let keys = json!({
        "type": "object",
        "required": ["keys"],
        "properties": { "keys": { "type": "array", "items": { "type": "object" } } },
    });
    let answers = [("200", json_answer("Every key that the record owns", keys))];
    operation(format!("{name}.entries"), "The keys of a record", key, None, answers)
}
