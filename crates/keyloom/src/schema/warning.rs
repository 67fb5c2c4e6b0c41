//! Warnings about schemas and records that are allowed but probably not meant: numbers that look
//! like counters but are not declared as such. Writers that count by reading and writing lose each
//! other's counts, or fail on conflicts.

use std::fmt;

use serde_json::Value;

use super::model::{Collection, FieldKind, Schema};
use super::problem::ShowTrail;
use crate::key::{Kind, Path, Step, Template};

/// A warning about something that is allowed but probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The collection.
    pub collection: String,
    /// The path of the field in a record.
    pub field: String,
    /// The reason for the warning, and what to do.
    pub reason: &'static str,
}

impl Warning {
    fn uncounted(collection: &Collection, field: String) -> Self {
        Warning {
            collection: collection.name.clone(),
            field,
            reason: "looks like a counter; declare it under `counters`, and `increment` changes \
                     it without conflicts",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trail = ["collection", &self.collection, &self.field].map(str::to_owned);
        write!(f, "{}: {}", ShowTrail(&trail), self.reason)
    }
}

impl Schema {
    /// Warnings about things that the schema allows but probably does not mean: numbers that look
    /// like counters (named `count` or `total`, or under `stats`), and are declared as fields or by
    /// a body schema.
    pub fn warnings(&self) -> Vec<Warning> {
        let warnings = self.collections.values().flat_map(|collection| {
            let mut fields: Vec<String> = numeric_fields(collection);
            if let Some(body) = &collection.declaration.body {
                numbers_of_body(collection, body, &mut Vec::new(), &mut fields);
            }
            fields.sort();
            fields.dedup();
            fields.into_iter().map(|field| Warning::uncounted(collection, field))
        });
        warnings.collect()
    }
}

/// The declared numbers that could be counters. Fields in keys cannot.
fn numeric_fields(collection: &Collection) -> Vec<String> {
    let templates = collection.indexes.values().map(|index| &index.key).chain([&collection.key]);
    let in_keys: Vec<&Path> =
        templates.flat_map(Template::segments).map(|segment| &segment.path).collect();
    let is_number =
        |kind: &FieldKind| matches!(kind, FieldKind::Key(Kind::Integer { .. } | Kind::Float));
    let fields = collection.fields.values().filter(|field| {
        is_number(&field.kind)
            && !in_keys.contains(&&field.path)
            && field.path.star().is_none()
            && looks_like_counter(&names(&field.path))
    });
    fields.map(|field| field.path.to_string()).collect()
}

fn names(path: &Path) -> Vec<&str> {
    let mut names = Vec::new();
    for step in &path.0 {
        if let Step::Name(name) = step {
            names.push(name.as_str());
        }
    }
    names
}

/// The numbers that a JSON Schema declares.
fn numbers_of_body<'b>(
    collection: &Collection,
    body: &'b Value,
    path: &mut Vec<&'b str>,
    found: &mut Vec<String>,
) {
    let is_number = body["type"] == "integer" || body["type"] == "number";
    if is_number && looks_like_counter(path) && !is_declared(collection, &path.join(".")) {
        found.push(path.join("."));
    }
    for (name, inner) in body["properties"].as_object().into_iter().flatten() {
        path.push(name);
        numbers_of_body(collection, inner, path, found);
        path.pop();
    }
}

/// The numbers of a record that look like counters and are not declared.
pub(crate) fn lookalikes(collection: &Collection, record: &Value) -> Vec<Warning> {
    let mut found = Vec::new();
    numbers_of_record(collection, record, &mut Vec::new(), &mut found);
    found.into_iter().map(|field| Warning::uncounted(collection, field)).collect()
}

fn numbers_of_record<'r>(
    collection: &Collection,
    value: &'r Value,
    path: &mut Vec<&'r str>,
    found: &mut Vec<String>,
) {
    match value {
        Value::Number(_) if looks_like_counter(path) => {
            let field = path.join(".");
            if !is_declared(collection, &field) {
                found.push(field);
            }
        }
        // The names in a declared map are data.
        Value::Object(_) if is_declared(collection, &path.join(".")) => {}
        Value::Object(members) => {
            for (name, inner) in members {
                path.push(name);
                numbers_of_record(collection, inner, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn is_declared(collection: &Collection, field: &str) -> bool {
    collection.counters.has(field)
        || Path::parse(field).is_ok_and(|path| collection.fields.contains_key(&path))
}

fn looks_like_counter(path: &[&str]) -> bool {
    const NAMES: [&str; 2] = ["count", "total"];
    let Some((last, above)) = path.split_last() else { return false };
    let lower = last.to_lowercase();
    let ends = |name: &&str| {
        let before = lower.strip_suffix(*name).map(str::len);
        // `retry_count` and `retryCount`, but not `account` or `discount`.
        before.is_some_and(|before| {
            let joint = last.get(before..).and_then(|rest| rest.chars().next());
            before == 0
                || last[..before].ends_with(['_', '-'])
                || joint.is_some_and(char::is_uppercase)
        })
    };
    NAMES.iter().any(ends) || above.contains(&"stats")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_by_their_names() {
        for path in [
            &["count"][..],
            &["total"],
            &["a", "Total"],
            &["retry_count"],
            &["retryCount"],
            &["stats", "running"],
            &["a", "stats", "steps", "ok"],
        ] {
            assert!(looks_like_counter(path), "{path:?}");
        }
        for path in [&[][..], &["account"], &["discount"], &["stats"], &["subtotal"], &["totals"]] {
            assert!(!looks_like_counter(path), "{path:?}");
        }
    }
}
