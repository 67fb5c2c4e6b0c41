//! The fields of a key template, and their values in a record.

use keyloom::same_value;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The paths of a template's fields, in order: `x:{a}:{b.c desc}` has `a` and `b.c`.
pub(super) fn fields_of(template: &str) -> Vec<&str> {
    let inside = template.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    inside.filter_map(|placeholder| placeholder.split_whitespace().next()).collect()
}

/// The value at a path of names.
pub(super) fn value_at<'r>(record: &'r Value, path: &str) -> Option<&'r Value> {
    path.split('.').try_fold(record, |value, name| value.get(name))
}

/// Fills the fields of the key into a record that was sent to that key. Fields with other values
/// are refused.
pub(super) fn take_key(
    record: &mut Value,
    template: &str,
    values: &[Value],
) -> Result<(), Problem> {
    if !record.is_object() {
        return Err(Problem::invalid_record("a record is a JSON object"));
    }
    for (path, value) in fields_of(template).into_iter().zip(values) {
        match value_at(record, path) {
            None => set(record, path, value.clone()),
            Some(sent) if same_value(sent, value) => {}
            Some(sent) => {
                let detail = format!(
                    "the body has another key than the path; field: {path}, in the body: {sent}, \
                     in the path: {value}; leave the field out, or send the record to its own path"
                );
                let problem = Problem::invalid_record(detail).with("field", path);
                return Err(problem.with("in_body", sent.clone()).with("in_path", value.clone()));
            }
        }
    }
    Ok(())
}

/// Sets a value at a path. A value on the way that is not an object stays, and the schema refuses
/// the record.
fn set(record: &mut Value, path: &str, value: Value) {
    let (parents, name) = match path.rsplit_once('.') {
        Some((parents, name)) => (Some(parents), name),
        None => (None, path),
    };
    let mut place = record;
    for parent in parents.iter().flat_map(|parents| parents.split('.')) {
        let Value::Object(members) = place else { return };
        place = members.entry(parent).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(members) = place {
        members.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_in_order_without_modifiers() {
        assert_eq!(fields_of("a:{x}:{b.c desc}:{p geohash 6}{arn raw}"), ["x", "b.c", "p", "arn"]);
        assert!(fields_of("settings").is_empty());
    }

    #[test]
    fn missing_fields_are_filled_in_and_different_ones_refused() {
        let (template, values) = ("t:{a}:{data.n}", [json!("x"), json!(3)]);
        let taken = |mut record: Value| take_key(&mut record, template, &values).map(|()| record);
        let filled = json!({ "v": 1, "a": "x", "data": { "n": 3 } });
        assert_eq!(taken(json!({ "v": 1 })).unwrap(), filled);
        assert_eq!(taken(filled.clone()).unwrap(), filled);
        assert!(taken(json!({ "data": { "n": 3.0 } })).is_ok());
        for different in [json!({ "a": "y" }), json!({ "a": null }), json!({ "data": { "n": 4 } })]
        {
            assert_eq!(taken(different).unwrap_err().status(), 422);
        }
        for other in [json!(null), json!([]), json!("x")] {
            assert_eq!(taken(other).unwrap_err().status(), 422);
        }
    }
}
