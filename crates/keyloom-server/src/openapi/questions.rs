//! Queries of many records: pages, counts, groups, places.

use keyloom::{CollectionDeclaration, FieldType};
use serde_json::{Value, json};

use super::parts::{Operation, choice, cursor, flag, in_query, json_answer, number, required};
use super::{Scope, fields, schema_named};

/// The bounds of a range, as parameters name them.
const BOUNDS: [&str; 4] = ["gt", "gte", "lt", "lte"];

/// The schema of a page.
pub(super) fn page(name: &str) -> Value {
    let record = json!({
        "type": "object",
        "required": ["key", "stored_at"],
        "properties": {
            "key": { "type": "string", "description": "its name in URLs" },
            "owner": { "type": "string", "description": "whose it is, if not the acting user's" },
            "stored_at": { "type": "string", "description": "its whole key in the store" },
            "version": { "type": "string" },
            "record": schema_named(&format!("{name}.stored")),
            "distance_m": { "type": "number" },
        },
    });
    json!({
        "type": "object",
        "required": ["records", "stopped", "read", "problems"],
        "properties": {
            "records": { "type": "array", "items": record },
            "next": { "type": "string" },
            "previous": { "type": "string" },
            "stopped": { "type": "string", "enum": ["take", "limit", "bytes", "end"] },
            "read": { "type": "integer" },
            "problems": { "type": "array", "items": schema_named("Trouble") },
            "swept_until": { "type": "integer" },
        },
    })
}

/// `GET /records`
pub(super) fn list(name: &str, collection: &CollectionDeclaration, scope: &Scope) -> Value {
    let key = json!({ "key": "$response.body#/records/0/key" });
    let link = json!({ "operationId": format!("{name}.get"), "parameters": key,
        "description": "the first record of the page" });
    let mut answer = json_answer("A page", schema_named(&format!("{name}.page")));
    // An answer is an object.
    answer["links"] = json!({ "first": link });
    asked_of_pages(Operation::new(format!("{name}.list"), "A page of records"), collection, scope)
        .answer("200", answer)
        .answers([("409", "Unanswerable")])
        .build()
}

/// `GET /explain`
pub(super) fn explain(name: &str, collection: &CollectionDeclaration, scope: &Scope) -> Value {
    let plan = json!({ "type": "object", "required": ["plan"],
        "properties": { "plan": { "type": "string" } } });
    let asked = Operation::new(format!("{name}.explain"), "How a page would be read");
    asked_of_pages(asked, collection, scope)
        .answer("200", json_answer("The plan, in words", plan))
        .answers([("409", "Unanswerable")])
        .build()
}

/// The parameters of a page.
fn asked_of_pages(
    operation: Operation,
    collection: &CollectionDeclaration,
    scope: &Scope,
) -> Operation {
    let orders = ordered(collection).flat_map(|field| [field.clone(), format!("-{field}")]);
    let limits = scope.limits;
    operation
        .about(
            "`any.FIELD=v`, twice or more: at least one of them. Fields that are not declared can \
             be asked in the same forms.",
        )
        .parameters(conditions(collection))
        .parameters(filters(collection))
        .parameters(choice("order", orders, "by this field; with `-` the highest first"))
        .parameters(choice("index", collection.index.keys().cloned(), "by this index"))
        .parameters([
            number("limit", limits.page_max, "records of the page; 20 unless set"),
            number("read", limits.read_max, "how many records may be read for it, with filters"),
            cursor(),
            flag("scan", "read the whole collection where no index serves"),
            flag("keys_only", "keys without records"),
        ])
}

/// `GET /count`
pub(super) fn count(name: &str, collection: &CollectionDeclaration) -> Value {
    Operation::new(format!("{name}.count"), "Count records")
        .about("`limit=`: how many entries may be read for it; 413 where there are more.")
        .parameters(conditions(collection))
        .parameters(filters(collection))
        .parameters(choice("index", collection.index.keys().cloned(), "by this index"))
        .parameters([
            flag("scan", "read the whole collection where no index serves"),
            flag("keys_only", "count entries without looking at the records"),
        ])
        .answer("200", json_answer("How many", schema_named("Counts")))
        .answers([("409", "Unanswerable")])
        .build()
}

/// The conditions on declared fields.
fn conditions(collection: &CollectionDeclaration) -> Vec<Value> {
    let mut parameters = Vec::new();
    for (path, kind) in comparable(collection) {
        parameters.push(in_query(&format!("where.{path}"), fields::field(kind), "equal"));
        if is_ordered(kind) {
            parameters.extend(BOUNDS.map(|bound| {
                let name = format!("where.{path}.{bound}");
                in_query(&name, fields::field(kind), "a bound of the range")
            }));
        }
        if matches!(kind, FieldType::Text) {
            let name = format!("where.{path}.prefix");
            parameters.push(in_query(&name, json!({ "type": "string" }), "what it begins with"));
        }
    }
    parameters
}

/// The filters on declared fields.
fn filters(collection: &CollectionDeclaration) -> Vec<Value> {
    let about = "leaves records out after they were read; also `.gt`, `.gte`, `.lt`, `.lte` and \
                 `.present`";
    let filter = |(path, kind): (&String, &FieldType)| {
        in_query(&format!("filter.{path}"), fields::field(kind), about)
    };
    comparable(collection).map(filter).collect()
}

/// The fields that have values to compare.
fn comparable(collection: &CollectionDeclaration) -> impl Iterator<Item = (&String, &FieldType)> {
    let fields = collection.fields.iter().map(|(path, field)| (path, &field.field_type));
    fields.filter(|(_, kind)| !matches!(kind, FieldType::Map | FieldType::Point { .. }))
}

/// The fields that a page can be ordered by.
fn ordered(collection: &CollectionDeclaration) -> impl Iterator<Item = &String> {
    comparable(collection).filter(|(_, kind)| is_ordered(kind)).map(|(path, _)| path)
}

fn is_ordered(kind: &FieldType) -> bool {
    matches!(
        kind,
        FieldType::Integer { .. } | FieldType::Float | FieldType::Timestamp | FieldType::Datetime
    )
}

/// `GET /groups/{aggregate}`
pub(super) fn groups(
    name: &str,
    aggregate: &str,
    grouped: &[String],
    collection: &CollectionDeclaration,
    scope: &Scope,
) -> Value {
    let group = json!({
        "type": "object",
        "required": ["values", "count"],
        "properties": {
            "values": { "type": "array", "items": {}, "description": "of the fields of the group, in order" },
            "count": { "type": "integer", "minimum": 0 },
            "sum": { "type": "number" },
        },
    });
    let page = json!({
        "type": "object",
        "required": ["groups"],
        "properties": {
            "groups": { "type": "array", "items": group },
            "next": { "type": "string" },
            "swept_until": { "type": "integer" },
        },
    });
    let within = grouped.iter().map(|field| {
        let kind = collection.fields.get(field).map(|declared| &declared.field_type);
        let schema = kind.map_or(json!({ "type": "string" }), fields::field);
        in_query(&format!("within.{field}"), schema, "groups of this value alone")
    });
    let page_max = scope.limits.page_max;
    let id = format!("{name}.groups.{aggregate}");
    Operation::new(id, "The groups of a declared aggregate")
        .about("`top=n` gives the n largest groups, without `limit` and `cursor`.")
        .parameters(within)
        .parameters([number("limit", page_max, "groups of the page; 20 unless set"), cursor()])
        .answer("200", json_answer("The groups", page))
        .answers([("409", "Unanswerable")])
        .build()
}

/// `GET /near`
pub(super) fn near(name: &str, collection: &CollectionDeclaration, scope: &Scope) -> Value {
    let radius = json!({ "type": "number", "exclusiveMinimum": 0, "maximum": f64::MAX });
    let index = choice("index", collection.geo.keys().cloned(), "by this index");
    let index = index.map(|one| if collection.geo.len() > 1 { required(one) } else { one });
    Operation::new(format!("{name}.near"), "Records around a place")
        .about("413 where `read` entries do not even tell what is nearest.")
        .parameters([
            required(in_query("lat", fields::latitude(), "latitude in degrees")),
            required(in_query("lon", fields::longitude(), "longitude in degrees")),
            in_query("radius_m", radius, "how far away at most, in metres"),
            number("limit", scope.limits.page_max, "records of the page; 20 unless set"),
            number("read", scope.limits.read_max, "how many entries may be read for it"),
            cursor(),
        ])
        .parameters(index)
        .answer("200", json_answer("Nearest first", schema_named(&format!("{name}.page"))))
        .answers([("409", "Unanswerable")])
        .build()
}
