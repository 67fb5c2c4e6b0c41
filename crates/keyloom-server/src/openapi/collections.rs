//! The paths of one collection, with typed records.

use keyloom::{Access, CollectionDeclaration, FieldType};
use serde_json::{Map, Value, json};

use super::fields::{self, Form};
use super::keys::{Beginning, Escapes};
use super::parts::{
    Operation, answer, cursor, empty, header_named, in_path, json_answer, number, record_answer,
    with_header,
};
use super::{Scope, keys, object, questions, schema_named};

/// A name in a family of counters; the whole path has at most 255 bytes. Names with a `*` are only
/// described in words, since `*` and `*key` alone are not names.
const COUNTER: &str = "[^\\u0000-\\u001f\\u007f-\\u009f*]+";

/// The schemas of a collection's records and pages.
pub(super) fn schemas(
    name: &str,
    collection: &CollectionDeclaration,
    scope: &Scope,
) -> Map<String, Value> {
    let record = |form| fields::record(collection, form, scope.is_user);
    object([
        (name.to_owned(), record(Form::Whole)),
        (format!("{name}.stored"), record(Form::Stored)),
        (format!("{name}.replacement"), record(Form::Replacement)),
        (format!("{name}.patch"), record(Form::Patch)),
        (format!("{name}.page"), questions::page(name)),
        (format!("{name}.changed"), changed(name)),
    ])
}

/// Every path below a collection.
pub(super) fn paths(
    name: &str,
    collection: &CollectionDeclaration,
    scope: &Scope,
) -> Map<String, Value> {
    let at = |rest: &str| format!("/v1/collections/{name}{rest}");
    let key = || vec![key_in_path(collection, own_beginning(collection, scope))];
    let mut of_all = object([("get", questions::list(name, collection, scope))]);
    let mut of_one = object([("get", read(name, key()))]);
    // Operations that a user may not do are not offered to them.
    let is_written = !scope.is_user || collection.access != Some(Access::ReadOnly);
    if is_written {
        of_all.insert("post".to_owned(), insert(name, collection, scope));
        of_one.extend(writes(name, &key, scope));
    }
    let mut paths = object([
        (at("/records"), of_all.into()),
        (at("/records/{key}"), of_one.into()),
        (at("/records/{key}/entries"), json!({ "get": entries(name, key()) })),
        (at("/count"), json!({ "get": questions::count(name, collection) })),
        (at("/explain"), json!({ "get": questions::explain(name, collection, scope) })),
    ]);
    if !collection.counters.is_empty() && is_written {
        let increment = increment(name, collection, key(), scope);
        paths.insert(at("/records/{key}/increment"), json!({ "post": increment }));
    }
    if collection.history.is_some() {
        let history = history(name, key(), scope);
        paths.insert(at("/records/{key}/history"), json!({ "get": history }));
    }
    if collection.access == Some(Access::Hybrid) {
        let path = at("/owners/{owner}/records/{key}");
        paths.insert(path, json!({ "get": read_of_owner(name, collection) }));
    }
    for (index, declared) in &collection.unique {
        let (path, operation) = unique(name, index, &declared.key, collection, scope);
        paths.insert(at(&path), json!({ "get": operation }));
    }
    if !collection.geo.is_empty() {
        paths.insert(at("/near"), json!({ "get": questions::near(name, collection, scope) }));
    }
    for (aggregate, declared) in collection.count.iter().chain(&collection.sum) {
        let groups = questions::groups(name, aggregate, &declared.group, collection, scope);
        paths.insert(at(&format!("/groups/{aggregate}")), json!({ "get": groups }));
    }
    paths
}

/// The part of keys that names omit for the caller.
pub(super) fn own_beginning(collection: &CollectionDeclaration, scope: &Scope) -> Beginning {
    let has_owner = matches!(collection.access, Some(Access::Owned | Access::Hybrid));
    if scope.is_user && has_owner { Beginning::Owner } else { Beginning::Literal }
}

fn key_in_path(collection: &CollectionDeclaration, beginning: Beginning) -> Value {
    let pattern = keys::record_pattern(collection, beginning, Escapes::Hidden);
    let about = "the record's key, after the beginning of its template. Texts in it have the \
                 separator, `%` and control characters as `%XX`: take such keys from answers";
    in_path("key", json!({ "type": "string", "pattern": pattern }), about)
}

/// A problem that includes the current record.
fn changed(name: &str) -> Value {
    let current = json!({ "type": "object", "properties": {
        "version": { "type": "string" }, "record": schema_named(&format!("{name}.stored")),
    } });
    json!({ "allOf": [
        schema_named("Problem"),
        { "type": "object", "properties": { "current": current } },
    ] })
}

/// The answer to a failed condition.
fn changed_answer(name: &str) -> Value {
    let about = "A condition does not hold; `current` is the record as it is";
    answer(about, "application/problem+json", schema_named(&format!("{name}.changed")))
}

fn read(name: &str, key: Vec<Value>) -> Value {
    Operation::new(format!("{name}.get"), "Read a record")
        .about(
            "`?version=` a version, or `?at=` a time in milliseconds or ISO 8601, read from the \
             history, where the collection keeps one; 410 where it does not go back so far.",
        )
        .parameters(key)
        .parameters([header_named("If-None-Match")])
        .answer("200", record_answer("The record", &format!("{name}.stored")))
        .answer("304", empty("It has not changed"))
        .answers([("404", "NotFound")])
        .build()
}

fn read_of_owner(name: &str, collection: &CollectionDeclaration) -> Value {
    let owner = json!({ "type": "string", "pattern": keys::owner_pattern() });
    Operation::new(format!("{name}.get.of"), "Read a record of another user")
        .parameters([
            in_path("owner", owner, "the user whose record it is"),
            key_in_path(collection, Beginning::Owner),
            header_named("If-None-Match"),
        ])
        .answer("200", record_answer("The record", &format!("{name}.stored")))
        .answer("304", empty("It has not changed"))
        .answers([("404", "NotFound")])
        .build()
}

/// The answer to a write: the record, if the caller may read it.
fn written(name: &str, scope: &Scope) -> Value {
    match scope.may_read {
        true => record_answer("The record as it was stored", &format!("{name}.stored")),
        false => with_header(empty("It is stored"), "ETag", "the version"),
    }
}

/// The status of an answer, which has no body if the caller may not read it.
fn ok(scope: &Scope) -> &'static str {
    if scope.may_read { "200" } else { "204" }
}

/// The operations that change one record.
fn writes(name: &str, key: &impl Fn() -> Vec<Value>, scope: &Scope) -> Map<String, Value> {
    let put = Operation::new(format!("{name}.put"), "Replace a record, or create it")
        .parameters(key())
        .parameters(["If-Match", "If-Absent", "Idempotency-Key"].map(header_named))
        .body("application/json", schema_named(&format!("{name}.replacement")))
        .answer(ok(scope), written(name, scope))
        .answer("201", written(name, scope))
        .answers([("409", "Conflict"), ("422", "Invalid")])
        .answer("412", changed_answer(name));
    let patch = Operation::new(format!("{name}.patch"), "Change a part of a record (RFC 7386)")
        .about(
            "`?if.FIELD=value`: only while the fields have these values, otherwise 412. A place may \
             be sent whole, or in part where the record has one.",
        )
        .parameters(key())
        .parameters(["If-Match", "Idempotency-Key"].map(header_named))
        .body("application/merge-patch+json", schema_named(&format!("{name}.patch")))
        .answer(ok(scope), written(name, scope))
        .answers([("404", "NotFound"), ("409", "Conflict"), ("422", "Invalid")])
        .answer("412", changed_answer(name));
    let delete = Operation::new(format!("{name}.delete"), "Delete a record with all its keys")
        .parameters(key())
        .parameters(["If-Match", "Idempotency-Key"].map(header_named))
        .answer("204", empty("It is gone"))
        .answers([("404", "NotFound")])
        .answer("412", changed_answer(name));
    object([("put", put.build()), ("patch", patch.build()), ("delete", delete.build())])
}

fn insert(name: &str, collection: &CollectionDeclaration, scope: &Scope) -> Value {
    let mut created = with_header(written(name, scope), "Location", "where it is");
    if let (true, Some(key)) = (scope.may_read, key_in_answer(collection)) {
        let link = |verb: &str| json!({ "operationId": format!("{name}.{verb}"), "parameters": { "key": key } });
        let verbs = ["get", "put", "patch", "delete"];
        // An answer is an object.
        created["links"] = object(verbs.map(|verb| (verb, link(verb)))).into();
    }
    Operation::new(format!("{name}.insert"), "Insert a record")
        .parameters([header_named("Idempotency-Key")])
        .body("application/json", schema_named(name))
        .answer("201", created)
        .answers([("409", "Conflict"), ("422", "Invalid")])
        .build()
}

/// Where an answer with a record has its key, if that is a single field that is never escaped.
fn key_in_answer(collection: &CollectionDeclaration) -> Option<String> {
    let fields = keys::fields(&collection.key);
    let [field] = fields.as_slice() else { return None };
    let kind = &collection.fields.get(field)?.field_type;
    let is_never_escaped = matches!(kind, FieldType::Id | FieldType::Uuid { .. });
    (is_never_escaped && collection.key.ends_with('}') && !collection.key.ends_with("desc}"))
        .then(|| format!("$response.body#/{}", field.replace('.', "/")))
}

/// The look-up by a unique index: one part of the path for each of its fields.
fn unique(
    name: &str,
    index: &str,
    template: &str,
    collection: &CollectionDeclaration,
    scope: &Scope,
) -> (String, Value) {
    let mut fields = keys::fields(template);
    // The user is the owner, and need not name it.
    let is_own = own_beginning(collection, scope) == Beginning::Owner;
    if is_own && fields.first() == collection.owner.as_ref() {
        fields.remove(0);
    }
    let part = |field: &String| field.replace(['.', '*'], "_");
    let path = fields
        .iter()
        .fold(format!("/unique/{index}"), |path, field| format!("{path}/{{{}}}", part(field)));
    let value = |field: &String| {
        let declared = collection.fields.get(field);
        let schema =
            declared.map_or(json!({ "type": "string" }), |it| fields::field(&it.field_type));
        in_path(&part(field), schema, "the unique value")
    };
    let found = record_answer("The record", &format!("{name}.stored"));
    let operation = Operation::new(format!("{name}.by.{index}"), "The record with a unique value")
        .parameters(fields.iter().map(value))
        .parameters([header_named("If-None-Match")])
        .answer("200", with_header(found, "Content-Location", "its own URL"))
        .answer("304", empty("It has not changed"))
        .answers([("404", "NotFound"), ("409", "Unanswerable")]);
    (path, operation.build())
}

fn increment(
    name: &str,
    collection: &CollectionDeclaration,
    key: Vec<Value>,
    scope: &Scope,
) -> Value {
    let values = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let added = match scope.may_read {
        true => json_answer("The values after it", values),
        false => empty("They are added"),
    };
    Operation::new(format!("{name}.increment"), "Add to counters")
        .parameters(key)
        .parameters([header_named("Idempotency-Key")])
        .body("application/json", additions(collection))
        .answer(ok(scope), added)
        .answers([("404", "NotFound"), ("409", "Conflict")])
        .build()
}

/// Counters and their increments.
pub(super) fn additions(collection: &CollectionDeclaration) -> Value {
    let delta = json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX });
    let (families, single): (Vec<&String>, Vec<&String>) =
        collection.counters.keys().partition(|path| path.contains('*'));
    let pattern = |path: &&String| {
        let steps = path.split('.').map(|step| match step {
            "*" => COUNTER.to_owned(),
            step => keys::quoted(step),
        });
        (format!("^{}$", steps.collect::<Vec<_>>().join("\\.")), delta.clone())
    };
    let mut schema = json!({
        "type": "object",
        "minProperties": 1,
        "properties": object(single.iter().map(|path| (path.as_str(), delta.clone()))),
        "additionalProperties": false,
    });
    if !families.is_empty() {
        // The schema is an object.
        schema["patternProperties"] = object(families.iter().map(pattern)).into();
    }
    schema
}

fn history(name: &str, key: Vec<Value>, scope: &Scope) -> Value {
    let version = json!({
        "type": "object",
        "required": ["version", "kind", "at_ms", "stored_at", "changes"],
        "properties": {
            "version": { "type": "string" },
            "kind": { "type": "string" },
            "at_ms": { "type": "integer" },
            "by": { "type": "string" },
            "key": { "type": "string" },
            "stored_at": { "type": "string" },
            "renamed_from": { "type": "string" },
            "record": schema_named(&format!("{name}.stored")),
            "changes": { "type": "array", "items": { "type": "object", "additionalProperties": true } },
        },
    });
    let versions = json!({
        "type": "object",
        "required": ["versions", "problems"],
        "properties": {
            "versions": { "type": "array", "items": version },
            "problems": { "type": "array", "items": schema_named("Trouble") },
            "next": { "type": "string" },
        },
    });
    Operation::new(format!("{name}.history"), "The versions of a record")
        .parameters(key)
        .parameters([number("limit", scope.limits.page_max, "versions; 20 unless set"), cursor()])
        .answer("200", json_answer("Newest first", versions))
        .answers([("404", "NotFound")])
        .build()
}

fn entries(name: &str, key: Vec<Value>) -> Value {
    Operation::new(format!("{name}.entries"), "The keys of a record")
        .parameters(key)
        .answer("200", json_answer("Every key that the record owns", schema_named("OwnedKeys")))
        .answers([("404", "NotFound")])
        .build()
}
