//! Turns a tree of values into a declaration. One reader serves TOML, JSON, the catalog and
//! `#[derive(Record)]`, so that all of them have the same spelling and the same messages.
//!
//! The reader continues after a problem: it leaves out what it cannot understand and reads the
//! rest. So a user sees all problems at once.

use std::collections::BTreeMap;

use serde_json::Value;

use super::declaration::{
    Access, AggregateDeclaration, CollectionDeclaration, Comparison, CounterDeclaration,
    FieldDeclaration, FieldType, HistoryDeclaration, IdempotencyDeclaration, Illegal,
    IndexDeclaration, LogDeclaration, PointOf, SchemaDeclaration, TestDeclaration,
};
use super::problem::Problems;
use super::table::{Table, type_name};
use crate::json;

/// The digits of an integer, unless declared otherwise: every 64-bit number fits.
pub(crate) const DIGITS_DEFAULT: u8 = 19;

/// Reads a whole schema, or reports everything that is wrong with its form.
pub(crate) fn schema(value: &Value) -> Result<SchemaDeclaration, Problems> {
    let mut problems = Problems::default();
    let declaration = schema_as_far_as_possible(value, &mut problems);
    if problems.is_empty() { Ok(declaration) } else { Err(problems) }
}

/// Reads as much of a schema as it can. Parts with problems are left out or get their defaults.
pub(crate) fn schema_as_far_as_possible(
    value: &Value,
    problems: &mut Problems,
) -> SchemaDeclaration {
    let mut declaration = SchemaDeclaration::default();
    let Some(mut root) = Table::new(value, Vec::new(), problems) else { return declaration };
    declaration.collections = root.tables("collection", problems, collection);
    declaration.log = log(&mut root, problems);
    declaration.idempotency = idempotency(&mut root, problems);
    root.finish("a schema", problems);
    declaration
}

/// `log = { days = 30, entries = 100000 }`.
fn log(root: &mut Table<'_>, problems: &mut Problems) -> Option<LogDeclaration> {
    let value = root.take("log")?;
    let mut table = Table::new(value, root.trail_of("log"), problems)?;
    let declaration = LogDeclaration {
        days: table.number("days", problems),
        entries: table.number("entries", problems),
    };
    table.finish("a log", problems);
    Some(declaration)
}

fn collection(mut table: Table<'_>, problems: &mut Problems) -> Option<CollectionDeclaration> {
    let declaration = CollectionDeclaration {
        key: table.required_text("key", problems).unwrap_or_default(),
        area: table.text("area", problems).unwrap_or_default(),
        access: access(&mut table, problems),
        owner: table.text("owner", problems),
        expires_at: table.text("expires_at", problems),
        fields: fields(&mut table, problems),
        index: table.tables("index", problems, index),
        unique: table.tables("unique", problems, index),
        geo: table.tables("geo", problems, index),
        count: table.tables("count", problems, count),
        sum: table.tables("sum", problems, sum),
        counters: table.tables("counters", problems, counter),
        body: body(&mut table, problems),
        history: history(&mut table, problems),
    };
    table.finish("a collection", problems);
    Some(declaration)
}

fn access(table: &mut Table<'_>, problems: &mut Problems) -> Option<Access> {
    const NAMES: [&str; 4] = ["shared", "read-only", "owned", "hybrid"];
    const SYNONYMS: [(&str, &str); 4] =
        [("public", "shared"), ("readonly", "read-only"), ("private", "owned"), ("own", "owned")];
    Some(match table.choice("access", &NAMES, &SYNONYMS, problems)? {
        "shared" => Access::Shared,
        "read-only" => Access::ReadOnly,
        "owned" => Access::Owned,
        _ => Access::Hybrid,
    })
}

/// `[idempotency] keep = "24 hours"`.
fn idempotency(root: &mut Table<'_>, problems: &mut Problems) -> Option<IdempotencyDeclaration> {
    let value = root.take("idempotency")?;
    let mut table = Table::new(value, root.trail_of("idempotency"), problems)?;
    let keep = table.required_text("keep", problems);
    table.finish("`idempotency`", problems);
    keep.map(|keep| IdempotencyDeclaration { keep })
}

/// `history = { versions = 20, days = 90 }`.
fn history(table: &mut Table<'_>, problems: &mut Problems) -> Option<HistoryDeclaration> {
    let value = table.take("history")?;
    let mut table = Table::new(value, table.trail_of("history"), problems)?;
    let declaration = HistoryDeclaration {
        versions: table.number("versions", problems),
        days: table.number("days", problems),
    };
    table.finish("a history", problems);
    Some(declaration)
}

fn fields(table: &mut Table<'_>, problems: &mut Problems) -> BTreeMap<String, FieldDeclaration> {
    let Some(value) = table.take("fields") else { return BTreeMap::new() };
    let Some(fields) = Table::new(value, table.trail_of("fields"), problems) else {
        return BTreeMap::new();
    };
    fields
        .members()
        .filter_map(|(path, value)| {
            let trail = fields.trail_of(path);
            // `created_at = "timestamp"` is short for `created_at = { type = "timestamp" }`.
            let long_form;
            let value = match value {
                Value::String(name) => {
                    long_form = serde_json::json!({ "type": name });
                    &long_form
                }
                Value::Object(_) => value,
                other => {
                    let found = type_name(other);
                    problems.add(
                        trail,
                        format!(
                            "must be a type such as \"text\", or a table with `type`, not {found}"
                        ),
                    );
                    return None;
                }
            };
            if is_nested_path(value) {
                problems.add(trail, "lacks `type`; a path with dots is written in quotes");
                return None;
            }
            let table = Table::new(value, trail, problems)?;
            Some((path.clone(), field(table, problems)?))
        })
        .collect()
}

/// TOML reads `stats.running = "integer"` without quotes as a table in a table. Such a table has no
/// option of a field among its names.
fn is_nested_path(value: &Value) -> bool {
    const OPTIONS: [&str; 12] = [
        "type",
        "generate",
        "required",
        "digits",
        "values",
        "transitions",
        "illegal",
        "version",
        "pattern",
        "lat",
        "lon",
        "of",
    ];
    value.as_object().is_some_and(|members| {
        !members.is_empty()
            && members.iter().all(|(name, value)| {
                !OPTIONS.contains(&name.as_str()) && (value.is_string() || value.is_object())
            })
    })
}

fn field(mut table: Table<'_>, problems: &mut Problems) -> Option<FieldDeclaration> {
    /// The names of these types in other languages.
    const SYNONYMS: [(&str, &str); 11] = [
        ("string", "text"),
        ("str", "text"),
        ("int", "integer"),
        ("number", "float"),
        ("double", "float"),
        ("bool", "boolean"),
        ("date", "datetime"),
        ("time", "timestamp"),
        ("ulid", "id"),
        ("location", "point"),
        ("object", "map"),
    ];
    const TYPES: [&str; 12] = [
        "text",
        "integer",
        "float",
        "boolean",
        "enum",
        "timestamp",
        "datetime",
        "uuid",
        "id",
        "code",
        "point",
        "map",
    ];
    let name = table.required_choice("type", &TYPES, &SYNONYMS, problems)?;
    let field_type = match name {
        "text" => Some(FieldType::Text),
        "integer" => {
            let digits = table.small_number("digits", "a number from 1 to 19", problems);
            let digits = digits.unwrap_or(DIGITS_DEFAULT);
            Some(FieldType::Integer { digits })
        }
        "float" => Some(FieldType::Float),
        "boolean" => Some(FieldType::Boolean),
        "enum" => enumeration(&mut table, problems),
        "timestamp" => Some(FieldType::Timestamp),
        "datetime" => Some(FieldType::Datetime),
        "uuid" => {
            let version = table.small_number("version", "a number from 1 to 8", problems);
            Some(FieldType::Uuid { version })
        }
        "id" => Some(FieldType::Id),
        "code" => {
            let pattern = table.required_text("pattern", problems);
            pattern.map(|pattern| FieldType::Code { pattern })
        }
        "point" => {
            let lat = table.text("lat", problems).unwrap_or_else(|| "lat".to_owned());
            let lon = table.text("lon", problems).unwrap_or_else(|| "lon".to_owned());
            let of = match table.choice("of", &["field", "record"], &[], problems) {
                Some("record") => PointOf::Record,
                _ => PointOf::Field,
            };
            Some(FieldType::Point { lat, lon, of })
        }
        _ => Some(FieldType::Map),
    };
    let generate = table.boolean("generate", problems);
    let required = table.boolean("required", problems);
    table.finish(&format!("a field of type {name}"), problems);
    Some(FieldDeclaration { field_type: field_type?, generate, required })
}

fn enumeration(table: &mut Table<'_>, problems: &mut Problems) -> Option<FieldType> {
    let values = table.required_texts("values", problems);
    let transitions = table.lists("transitions", problems);
    let illegal = match table.choice("illegal", &["error", "ignore"], &[], problems) {
        Some("ignore") => Illegal::Ignore,
        _ => Illegal::Error,
    };
    Some(FieldType::Enum { values: values?, transitions, illegal })
}

fn index(mut table: Table<'_>, problems: &mut Problems) -> Option<IndexDeclaration> {
    let declaration = IndexDeclaration {
        key: table.required_text("key", problems).unwrap_or_default(),
        area: table.text("area", problems),
        holds: table.text("holds", problems),
        condition: condition(&mut table, problems),
        max: table.number("max", problems),
        claims: table.boolean("claims", problems),
        sparse: table.boolean("sparse", problems),
    };
    table.finish("an index", problems);
    Some(declaration)
}

fn counter(mut table: Table<'_>, problems: &mut Problems) -> Option<CounterDeclaration> {
    let counter = CounterDeclaration {
        min: table.integer("min", problems),
        max: table.integer("max", problems),
    };
    // TOML reads `stats.running = {}` without quotes as a table in a table.
    if !table.is_empty() && table.members().all(|(_, value)| value.is_object()) {
        let trail = table.trail().clone();
        problems.add(trail, "is no counter; a path with dots is written in quotes");
        return None;
    }
    table.finish("a counter", problems);
    Some(counter)
}

fn count(mut table: Table<'_>, problems: &mut Problems) -> Option<AggregateDeclaration> {
    let group = table.required_texts("group", problems).unwrap_or_default();
    let condition = condition(&mut table, problems);
    table.finish("a count", problems);
    Some(AggregateDeclaration { field: None, group, condition })
}

fn sum(mut table: Table<'_>, problems: &mut Problems) -> Option<AggregateDeclaration> {
    let field = table.required_text("field", problems);
    let group = table.required_texts("group", problems).unwrap_or_default();
    let condition = condition(&mut table, problems);
    table.finish("a sum", problems);
    Some(AggregateDeclaration { field, group, condition })
}

fn condition(table: &mut Table<'_>, problems: &mut Problems) -> BTreeMap<String, TestDeclaration> {
    let Some(value) = table.take("where") else { return BTreeMap::new() };
    let Some(tests) = Table::new(value, table.trail_of("where"), problems) else {
        return BTreeMap::new();
    };
    tests
        .members()
        .filter_map(|(path, value)| {
            let test = test(value, tests.trail_of(path), problems)?;
            Some((path.clone(), test))
        })
        .collect()
}

fn test(value: &Value, trail: Vec<String>, problems: &mut Problems) -> Option<TestDeclaration> {
    match value {
        Value::Null => {
            problems.add(trail, "cannot be compared with null; use { present = false }");
            None
        }
        Value::Array(values) => {
            if values.is_empty() || values.iter().any(|value| !is_scalar(value)) {
                problems.add(trail, "must list one or more strings, numbers or booleans");
                return None;
            }
            Some(TestDeclaration::OneOf(values.clone()))
        }
        Value::Object(_) => {
            let mut table = Table::new(value, trail, problems)?;
            let comparison = Comparison {
                present: table.boolean("present", problems),
                gt: table.scalar("gt", problems),
                gte: table.scalar("gte", problems),
                lt: table.scalar("lt", problems),
                lte: table.scalar("lte", problems),
            };
            if table.is_empty() {
                let trail = table.trail().clone();
                problems.add(trail, "needs at least one of `present`, `gt`, `gte`, `lt`, `lte`");
                return None;
            }
            table.finish("a comparison", problems);
            Some(TestDeclaration::Compare(Box::new(comparison)))
        }
        scalar => Some(TestDeclaration::Equals(scalar.clone())),
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

/// A JSON Schema as a table, or as a string with its JSON.
fn body(table: &mut Table<'_>, problems: &mut Problems) -> Option<Value> {
    let value = table.take("body")?;
    let trail = table.trail_of("body");
    match value {
        Value::Object(_) => Some(sorted(value)),
        Value::String(text) => match json::parse(text.as_bytes()) {
            Ok(schema @ Value::Object(_)) => Some(sorted(&schema)),
            Ok(other) => {
                let found = type_name(&other);
                problems.add(trail, format!("must hold a JSON object, not {found}"));
                None
            }
            Err(fault) => {
                problems.add(trail, format!("is not JSON: {fault}"));
                None
            }
        },
        other => {
            let found = type_name(other);
            problems
                .add(trail, format!("must be a table, or a string that holds JSON, not {found}"));
            None
        }
    }
}

/// The same value with the names of every object sorted, so that equal schemas serialise to equal
/// bytes. The order of names has no meaning in a JSON Schema.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let ordered: BTreeMap<&String, &Value> = members.iter().collect();
            let members = ordered.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(members.collect())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(sorted).collect()),
        scalar => scalar.clone(),
    }
}
