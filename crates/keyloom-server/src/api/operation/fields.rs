//! The fields of a record by their paths, and those that make its key.

use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::refusal;

/// The paths of the fields of a key, in order: `user:{userId}:notes:{noteId}` has `userId` and
/// `noteId`.
pub(crate) fn key_fields(template: &str) -> Vec<String> {
    let segments = template.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    segments.filter_map(|segment| segment.split_whitespace().next()).map(str::to_owned).collect()
}

/// The value at a path of names.
pub(crate) fn member<'r>(record: &'r Value, path: &str) -> Option<&'r Value> {
    path.split('.').try_fold(record, |value, name| value.as_object()?.get(name))
}

/// Removes the value at a path, with the objects around it that are empty then.
pub(crate) fn remove_member(record: &mut Value, path: &str) -> Option<Value> {
    let members = record.as_object_mut()?;
    let Some((first, rest)) = path.split_once('.') else { return members.shift_remove(path) };
    let inner = members.get_mut(first)?;
    let removed = remove_member(inner, rest)?;
    if inner.as_object().is_some_and(Map::is_empty) {
        members.shift_remove(first);
    }
    Some(removed)
}

/// A record with the values that its key has in the fields where it has none. Others than those
/// of the key are refused.
pub(crate) fn with_key_fields(
    mut record: Value,
    fields: &[String],
    key: &[Value],
) -> Result<Value, Problem> {
    for (path, value) in fields.iter().zip(key) {
        match member(&record, path) {
            Some(found) if found == value => {}
            Some(found) => {
                let detail = format!("the record has another {path} than its key");
                return Err(refusal::invalid_record(detail)
                    .with("context", serde_json::json!({"field": path, "value": found})));
            }
            None => put_member(&mut record, path, value.clone()),
        }
    }
    Ok(record)
}

fn put_member(record: &mut Value, path: &str, value: Value) {
    let Some(members) = record.as_object_mut() else { return };
    match path.split_once('.') {
        None => drop(members.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let inner = members.entry(first).or_insert_with(|| Value::Object(Map::new()));
            put_member(inner, rest, value);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_keys_are_named_by_their_templates() {
        assert_eq!(key_fields("user:{userId}:notes:{noteId}"), ["userId", "noteId"]);
        assert_eq!(key_fields("log:{at desc}:{by.id}"), ["at", "by.id"]);
        assert!(key_fields("settings").is_empty());
    }

    #[test]
    fn key_fields_are_filled_in_and_others_refused() {
        let fields = ["a".to_owned(), "b.c".to_owned()];
        let key = [json!("x"), json!(1)];
        let filled = with_key_fields(json!({"d": true}), &fields, &key).unwrap();
        assert_eq!(filled, json!({"d": true, "a": "x", "b": {"c": 1}}));
        assert_eq!(with_key_fields(filled.clone(), &fields, &key).unwrap(), filled);
        assert!(with_key_fields(json!({"a": "y"}), &fields, &key).is_err());
    }

    #[test]
    fn removed_members_leave_no_empty_objects() {
        let mut record = json!({"stats": {"running": 1}, "id": "f"});
        assert_eq!(remove_member(&mut record, "stats.running"), Some(json!(1)));
        assert_eq!(record, json!({"id": "f"}));
        assert_eq!(remove_member(&mut record, "stats.running"), None);
    }
}
