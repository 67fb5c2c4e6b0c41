//! Helpers for declarations: the parts of templates, the fields of a key, counters.

use std::collections::BTreeMap;

use keyloom::{CollectionDeclaration, CounterDeclaration};
use serde_json::{Map, Value};

use crate::problem::Problem;

/// One part of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Literal(&'t str),
    Field { path: &'t str, modifiers: &'t str },
}

/// The parts of a valid template.
pub(super) fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for piece in template.split_inclusive('}') {
        let Some((literal, field)) = piece.strip_suffix('}').and_then(|it| it.split_once('{'))
        else {
            parts.push(Part::Literal(piece));
            continue;
        };
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        let (path, modifiers) = field.split_once(' ').unwrap_or((field, ""));
        parts.push(Part::Field { path, modifiers });
    }
    parts
}

/// The fields of a template: each path with its modifiers.
pub(super) fn fields(template: &str) -> impl Iterator<Item = (&str, &str)> {
    parts(template).into_iter().filter_map(|part| match part {
        Part::Literal(_) => None,
        Part::Field { path, modifiers } => Some((path, modifiers)),
    })
}

/// Sets the fields of a record's key. A field that already has another value is refused, since the
/// record would be another one.
pub(super) fn with_key(record: Value, template: &str, values: &[Value]) -> Result<Value, Problem> {
    let Value::Object(mut members) = record else {
        return Err(Problem::invalid_request("a record is a JSON object: { … }"));
    };
    for ((path, _), value) in fields(template).zip(values) {
        put(&mut members, path, value)?;
    }
    Ok(Value::Object(members))
}

fn put(members: &mut Map<String, Value>, path: &str, value: &Value) -> Result<(), Problem> {
    let (name, rest) = match path.split_once('.') {
        None => (path, None),
        Some((name, rest)) => (name, Some(rest)),
    };
    let there = members.entry(name);
    match rest {
        Some(rest) => match there.or_insert_with(|| Value::Object(Map::new())) {
            Value::Object(inner) => put(inner, rest, value),
            _ => Err(Problem::invalid_request(format!("{name} holds a part of the key"))),
        },
        None => match there.or_insert_with(|| value.clone()) {
            found if found == value => Ok(()),
            _ => {
                let detail = format!(
                    "{path} is part of the record's key and stays {value}; \
                     for another key make a new record"
                );
                Err(Problem::invalid_request(detail))
            }
        },
    }
}

/// The counters that a record shows, by their names.
pub(super) fn counters(declared: &CollectionDeclaration, record: &Value) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for name in declared.counters.keys() {
        match name.strip_suffix(".*") {
            None => {
                found.extend(at(record, name).and_then(Value::as_i64).map(|it| (name.clone(), it)))
            }
            Some(family) => {
                let members = at(record, family).and_then(Value::as_object);
                found.extend(members.into_iter().flatten().filter_map(|(member, value)| {
                    Some((format!("{family}.{member}"), value.as_i64()?))
                }));
            }
        }
    }
    found
}

/// The families of counters, whose members are created by incrementing them: `stats.*`.
pub(super) fn counter_families(declared: &CollectionDeclaration) -> Vec<&str> {
    declared.counters.keys().filter_map(|name| name.strip_suffix('*')).collect()
}

/// The record without its counters, which are incremented and not edited.
pub(super) fn without_counters(
    counters: &BTreeMap<String, CounterDeclaration>,
    mut record: Value,
) -> Value {
    for name in counters.keys() {
        let path: Vec<&str> = name.strip_suffix(".*").unwrap_or(name).split('.').collect();
        if let Value::Object(members) = &mut record {
            remove(members, &path, name.ends_with(".*"));
        }
    }
    record
}

fn remove(members: &mut Map<String, Value>, path: &[&str], is_family: bool) {
    match path {
        [] => {}
        [last] if !is_family => {
            members.shift_remove(*last);
        }
        [last] => {
            if let Some(Value::Object(family)) = members.get_mut(*last) {
                family.retain(|_, value| !value.is_i64());
            }
            drop_if_empty(members, last);
        }
        [first, rest @ ..] => {
            if let Some(Value::Object(inner)) = members.get_mut(*first) {
                remove(inner, rest, is_family);
            }
            drop_if_empty(members, first);
        }
    }
}

/// Removes an object that is empty without its counters.
fn drop_if_empty(members: &mut Map<String, Value>, name: &str) {
    if members.get(name).and_then(Value::as_object).is_some_and(Map::is_empty) {
        members.shift_remove(name);
    }
}

/// The value at a dotted path.
pub(super) fn at<'v>(record: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(record, |value, step| value.get(step))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_fall_into_their_parts() {
        let found = parts("a:{x}:{t desc}:{loc geohash 6}");
        let field = |path, modifiers| Part::Field { path, modifiers };
        assert_eq!(
            found,
            [
                Part::Literal("a:"),
                field("x", ""),
                Part::Literal(":"),
                field("t", "desc"),
                Part::Literal(":"),
                field("loc", "geohash 6"),
            ]
        );
        assert_eq!(parts("plain"), [Part::Literal("plain")]);
    }

    #[test]
    fn key_fields_are_filled_in_and_never_changed() {
        let values = [json!("ana"), json!(7)];
        let filled = with_key(json!({ "x": 1 }), "u:{owner}:{at.n}", &values);
        assert_eq!(filled.ok(), Some(json!({ "x": 1, "owner": "ana", "at": { "n": 7 } })));
        let same = json!({ "owner": "ana", "at": { "n": 7 } });
        assert_eq!(with_key(same.clone(), "u:{owner}:{at.n}", &values).ok(), Some(same));
        for wrong in [json!({ "owner": "bob" }), json!({ "at": 1 }), json!([])] {
            assert!(with_key(wrong, "u:{owner}:{at.n}", &values).is_err());
        }
    }

    #[test]
    fn counters_are_found_and_taken_out() {
        let mut declared = CollectionDeclaration::new("a:{id}");
        for name in ["visits", "stats.*", "deep.er.n"] {
            declared = declared.counter(name, CounterDeclaration::default());
        }
        let record = json!({ "id": "1", "visits": 2, "stats": { "a": 1, "b": 3 }, "deep": { "er": { "n": 0 }, "own": 1 } });
        let names: Vec<_> = counters(&declared, &record).into_iter().collect();
        let told = [("deep.er.n", 0), ("stats.a", 1), ("stats.b", 3), ("visits", 2)];
        assert_eq!(names, told.map(|(name, value)| (name.to_owned(), value)));
        let left = without_counters(&declared.counters, record);
        assert_eq!(left, json!({ "id": "1", "deep": { "own": 1 } }));
    }
}
