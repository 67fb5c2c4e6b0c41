//! The paths of the administration.

use keyloom::{CollectionDeclaration, SchemaDeclaration};
use serde_json::{Map, Value, json};

use super::parts::{
    Operation, answer, area, choice, cursor, flag, header_named, in_path, in_query, json_answer,
    number, with_header,
};
use super::{Scope, keys, object, schema_named};

/// Schemas that only the administration uses.
pub(super) fn schemas() -> Map<String, Value> {
    object([("Amount", amount()), ("Job", job())])
}

/// Every path below `/v1/admin`.
pub(super) fn paths(schema: &SchemaDeclaration, scope: &Scope) -> Map<String, Value> {
    let mut paths = object([
        ("/v1/admin/keys", json!({ "get": raw_keys(scope) })),
        ("/v1/admin/branches", json!({ "get": branches(scope) })),
        ("/v1/admin/stats", json!({ "get": stats(schema, scope) })),
        ("/v1/admin/rates", json!({ "get": rates() })),
        ("/v1/admin/verify", json!({ "post": verify() })),
        ("/v1/admin/repair", json!({ "post": repair() })),
        ("/v1/admin/build", json!({ "post": build(schema) })),
        ("/v1/admin/jobs", json!({ "get": jobs() })),
        ("/v1/admin/jobs/{id}", json!({ "get": job_shown(), "delete": job_stopped() })),
        ("/v1/admin/import", json!({ "post": import(schema) })),
        ("/v1/admin/export", json!({ "get": export(schema) })),
        ("/v1/admin/backup", json!({ "get": backup() })),
        ("/v1/admin/restore", json!({ "post": restore() })),
    ]);
    for (name, collection) in &schema.collections {
        for (index, template) in templates(collection) {
            let path = format!("/v1/admin/distribution/{name}/{index}");
            paths.insert(path, json!({ "get": distribution(name, index, template, scope) }));
        }
    }
    paths
}

/// The indexes of a collection, with the templates of their keys.
fn templates(collection: &CollectionDeclaration) -> impl Iterator<Item = (&String, &String)> {
    let all = collection.index.iter().chain(&collection.unique).chain(&collection.geo);
    all.map(|(name, index)| (name, &index.key))
}

fn amount() -> Value {
    json!({
        "type": "object",
        "required": ["keys", "bytes", "is_exact"],
        "properties": {
            "keys": { "type": "integer" },
            "bytes": { "type": "integer" },
            "is_exact": { "type": "boolean", "description": "whether all were counted" },
        },
    })
}

fn job() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "state", "started_at", "took_ms", "progress"],
        "properties": {
            "id": { "type": "string" },
            "kind": { "type": "string", "enum": ["verify", "repair", "build"] },
            "request": { "type": ["object", "null"], "additionalProperties": true },
            "state": { "type": "string", "enum": ["running", "done", "failed", "stopped"] },
            "started_at": { "type": "integer" },
            "took_ms": { "type": "integer" },
            "progress": { "type": "object", "additionalProperties": { "type": "integer" } },
            "estimate": {
                "type": "object",
                "description": "of a job that runs, as far as known: how much is done, of about \
                                how much, how much in a second, and how long the rest takes",
                "required": ["done"],
                "additionalProperties": false,
                "properties": {
                    "done": { "type": "integer" },
                    "about": { "type": "integer" },
                    "per_second": { "type": "integer" },
                    "left_ms": { "type": "integer" },
                },
            },
            "result": { "type": "object", "additionalProperties": true },
            "problem": schema_named("Problem"),
        },
    })
}

/// An answer with a list of objects.
fn list_of(name: &str, item: Value, more: [(&str, Value); 1]) -> Value {
    let mut properties = object([(name, json!({ "type": "array", "items": item }))]);
    properties.extend(object(more));
    json!({ "type": "object", "required": [name], "properties": properties })
}

fn budget(scope: &Scope) -> Value {
    number("budget", scope.limits.read_max, "how many keys may be read for each number")
}

fn prefix() -> Value {
    in_query("prefix", json!({ "type": "string" }), "what keys begin with")
}

fn raw_keys(scope: &Scope) -> Value {
    let key = json!({
        "type": "object",
        "required": ["area", "key", "bytes", "kind"],
        "properties": {
            "area": { "type": "string" },
            "key": { "type": "string" },
            "key_base64": { "type": "string", "description": "of a key that is not UTF-8" },
            "bytes": { "type": "integer" },
            "kind": { "type": "string" },
            "collection": { "type": "string" },
            "index": { "type": "string" },
            "template": { "type": "string" },
            "value": { "type": "string" },
        },
    });
    let page = list_of("keys", key, [("next", json!({ "type": "string" }))]);
    Operation::new("admin.keys", "Raw keys, with what they are")
        .parameters([
            area(),
            prefix(),
            number("limit", scope.limits.page_max, "keys of the page; 100 unless set"),
            cursor(),
            flag("values", "with their values"),
        ])
        .answer("200", json_answer("Keys in order", page))
        .answers([("409", "Unanswerable")])
        .build()
}

fn branches(scope: &Scope) -> Value {
    let branch = json!({
        "type": "object",
        "required": ["text", "keys", "bytes", "is_key", "is_exact"],
        "properties": {
            "text": { "type": "string" },
            "keys": { "type": "integer" },
            "bytes": { "type": "integer" },
            "is_key": { "type": "boolean" },
            "is_exact": { "type": "boolean" },
        },
    });
    let page = list_of("branches", branch, [("more", json!({ "type": "boolean" }))]);
    Operation::new("admin.branches", "The keyspace as a tree, one level")
        .parameters([
            area(),
            prefix(),
            budget(scope),
            number("limit", scope.limits.page_max, "branches; 100 unless set"),
            in_query("after", json!({ "type": "string" }), "branches behind this one"),
        ])
        .answer("200", json_answer("Branches in order", page))
        .build()
}

fn stats(schema: &SchemaDeclaration, scope: &Scope) -> Value {
    let index = json!({
        "type": "object",
        "required": ["name", "state", "entries"],
        "properties": {
            "name": { "type": "string" },
            "state": { "type": "string" },
            "reason": { "type": "string" },
            "entries": schema_named("Amount"),
        },
    });
    let collection = json!({
        "type": "object",
        "required": ["name", "records", "indexes"],
        "properties": {
            "name": { "type": "string" },
            "records": schema_named("Amount"),
            "indexes": { "type": "array", "items": index },
        },
    });
    let stats = json!({
        "type": "object",
        "required": ["engine", "is_persistent", "collections", "figures"],
        "properties": {
            "engine": { "type": "string" },
            "is_persistent": { "type": "boolean" },
            "collections": { "type": "array", "items": collection },
            "figures": { "type": "array", "items": { "type": "object", "additionalProperties": true } },
        },
    });
    let names = schema.collections.keys().cloned();
    Operation::new("admin.stats", "How much there is")
        .parameters([budget(scope)])
        .parameters(choice("collection", names, "of this collection alone"))
        .answer("200", json_answer("Collections and indexes", stats))
        .build()
}

fn rates() -> Value {
    let moments = json!({ "type": "object", "additionalProperties": true });
    let rates = list_of("moments", moments, [("step_s", json!({ "type": "integer" }))]);
    Operation::new("admin.rates", "Rates and latencies of the last minutes")
        .answer("200", json_answer("The oldest first", rates))
        .build()
}

fn distribution(name: &str, index: &str, template: &str, scope: &Scope) -> Value {
    let share = json!({
        "type": "object",
        "required": ["values", "entries"],
        "properties": { "values": { "type": "array", "items": {} }, "entries": schema_named("Amount") },
    });
    let mut shares = list_of("shares", share, [("is_exact", json!({ "type": "boolean" }))]);
    shares["properties"]["has_all_values"] = json!({ "type": "boolean" });
    let segments = keys::fields(template).len();
    Operation::new(format!("admin.distribution.{name}.{index}"), "How an index spreads")
        .parameters([
            budget(scope),
            number("segments", segments, "over how many of its first values; one unless set"),
        ])
        .answer("200", json_answer("Entries by their first values", shares))
        .build()
}

/// An operation that starts a job.
fn starts(id: &str, summary: &str) -> Operation {
    let started = json_answer("The job", schema_named("Job"));
    Operation::new(id, summary)
        .answer("202", with_header(started, "Location", "where to look at it"))
        .answers([("409", "Conflict")])
}

/// How fast a job goes, beside what else its body may say.
fn with_pace<const N: usize>(others: [(&str, Value); N]) -> Map<String, Value> {
    let whole = |most: u64, about: &str| json!({ "type": "integer", "minimum": 1, "maximum": most, "description": about });
    let mut properties = object(others);
    properties.extend(object([
        ("keys_per_second", whole(u64::from(u32::MAX), "go over at most about so many keys")),
        ("percent_of_time", whole(100, "work at most about so much of the time")),
    ]));
    properties
}

/// Both paces at once are refused.
fn one_pace() -> Value {
    json!({ "required": ["keys_per_second", "percent_of_time"] })
}

fn verify() -> Value {
    let body = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": with_pace([]),
        "not": one_pace(),
    });
    starts("admin.verify", "Compare every entry with its record")
        .optional_body("application/json", body)
        .build()
}

fn repair() -> Value {
    let body = json!({
        "type": "object",
        "required": ["dry_run"],
        "additionalProperties": false,
        "properties": with_pace([
            ("dry_run", json!({ "type": "boolean", "description": "write nothing" })),
        ]),
        "not": one_pace(),
    });
    starts("admin.repair", "Mend what a verification finds").body("application/json", body).build()
}

fn build(schema: &SchemaDeclaration) -> Value {
    let mut known = Vec::new();
    for (name, collection) in &schema.collections {
        let aggregates = collection.count.keys().chain(collection.sum.keys());
        let indexes: Vec<&String> =
            templates(collection).map(|(index, _)| index).chain(aggregates).collect();
        if !indexes.is_empty() {
            known.push(json!({
                "type": "object",
                "required": ["collection", "index"],
                "additionalProperties": false,
                "properties": with_pace([
                    ("collection", json!({ "const": name })),
                    ("index", json!({ "type": "string", "enum": indexes })),
                ]),
                "not": one_pace(),
            }));
        }
    }
    let body = if known.is_empty() { json!(false) } else { json!({ "anyOf": known }) };
    starts("admin.build", "Build an index anew").body("application/json", body).build()
}

fn jobs() -> Value {
    let jobs = json!({
        "type": "object",
        "required": ["jobs"],
        "properties": { "jobs": { "type": "array", "items": schema_named("Job") } },
    });
    Operation::new("admin.jobs", "The jobs of the space")
        .answer("200", json_answer("Those that run, and the last that are over", jobs))
        .build()
}

fn job_id() -> Value {
    in_path("id", json!({ "type": "string" }), "the job")
}

fn job_shown() -> Value {
    Operation::new("admin.job", "How far a job is")
        .parameters([job_id()])
        .answer("200", json_answer("The job", schema_named("Job")))
        .answers([("404", "NotFound")])
        .build()
}

fn job_stopped() -> Value {
    Operation::new("admin.job.stop", "Stop a job")
        .about("The job stays to be looked at.")
        .parameters([job_id()])
        .answer("200", json_answer("The job, which is over", schema_named("Job")))
        .answers([("404", "NotFound")])
        .build()
}

fn import(schema: &SchemaDeclaration) -> Value {
    let error = json!({
        "type": "object",
        "required": ["line", "problem"],
        "properties": { "line": { "type": "integer" }, "problem": schema_named("Problem") },
    });
    let report = json!({
        "type": "object",
        "required": ["lines", "written", "errors", "errors_count"],
        "properties": {
            "lines": { "type": "integer" },
            "written": { "type": "integer" },
            "errors": { "type": "array", "items": error },
            "errors_count": { "type": "integer" },
        },
    });
    let line = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    let names = schema.collections.keys().cloned();
    Operation::new("admin.import", "Records from JSON lines")
        .about(
            "A line that is refused is told by its number, and does not end the import. With \
             `batch=true` and an `Idempotency-Key` up to 1,000 lines happen once; `after=` the key \
             of an earlier batch, only if that is still known.",
        )
        .parameters(choice("collection", names, "the collection of all lines"))
        .parameters(choice("mode", ["insert", "put"], "`insert` unless set"))
        .parameters([in_query("from_line", line, "the first line to write, from 1")])
        .parameters([header_named("Idempotency-Key")])
        .optional_body("application/octet-stream", json!({ "type": "string", "format": "binary" }))
        .answer("200", json_answer("What was done", report))
        .answers([("409", "Conflict")])
        .build()
}

fn export(schema: &SchemaDeclaration) -> Value {
    let names = schema.collections.keys().cloned();
    let lines = answer("One record a line", "application/jsonl", json!({ "type": "string" }));
    let consistency = "`snapshot`: all of one moment; `walk`: each record as it was when read";
    let lines = with_header(lines, "Keyloom-Consistency", consistency);
    Operation::new("admin.export", "Records as JSON lines")
        .about(
            "With `collection`, which may come several times, `after=` a key of the first goes on \
             behind it. Where the space keeps a log, `Keyloom-Log-Position` is where `/changes` \
             goes on from this export.",
        )
        .parameters(choice("collection", names, "this collection alone"))
        .answer("200", lines)
        .build()
}

fn backup() -> Value {
    let file = json!({ "type": "string", "format": "binary" });
    let file = answer("The bytes of one file", "application/octet-stream", file);
    Operation::new("admin.backup", "The space as one file")
        .about(
            "All of one moment, while writers go on: schema, records with their versions, index \
             entries, counters, history and log, with checksums. Where the space keeps a log, \
             `Keyloom-Log-Position` is where `/changes` goes on from this backup.",
        )
        .answer("200", with_header(file, "Keyloom-Consistency", "`snapshot`"))
        .build()
}

fn restore() -> Value {
    let log = json!({
        "type": "object",
        "required": ["oldest", "next"],
        "properties": { "oldest": { "type": "string" }, "next": { "type": "string" } },
    });
    let told = json!({
        "type": "object",
        "required": [
            "id", "space", "taken_at", "release", "keys", "log_entries", "bytes", "sha256",
        ],
        "properties": {
            "id": { "type": "string" },
            "space": { "type": "string", "description": "the space that it was taken of" },
            "taken_at": { "type": "integer" },
            "release": { "type": "string" },
            "keys": { "type": "integer" },
            "log_entries": { "type": "integer" },
            "log": log,
            "bytes": { "type": "integer" },
            "sha256": { "type": "string" },
        },
    });
    Operation::new("admin.restore", "An empty space from a backup")
        .about(
            "Nobody can use the space before all of it is there. A restore that broke off goes on \
             when the same backup is sent again.",
        )
        .body("application/octet-stream", json!({ "type": "string", "format": "binary" }))
        .answer("200", json_answer("What was restored", told))
        .build()
}
