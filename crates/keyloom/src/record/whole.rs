//! Normalises whole numbers that were written with a zero fraction.
//!
//! In JSON `5.0` and `5` are the same number, and programs whose numbers are all doubles may write
//! either. A field that is declared as an integer or a timestamp stores `5` for both, so that keys
//! and comparisons deal with one form. Other fields stay as written.

use std::borrow::Cow;

use serde_json::Value;

use crate::key::{Kind, Step, whole_of};
use crate::schema::{Collection, FieldKind};

/// Rewrites whole numbers in the fields that hold only such numbers.
pub(crate) fn write_whole_numbers(collection: &Collection, record: &mut Cow<'_, Value>) {
    for field in collection.fields.values() {
        if matches!(field.kind, FieldKind::Key(Kind::Integer { .. } | Kind::Timestamp))
            && field.path.all(record).any(|value| is_to_be_whole(&value))
        {
            at_each(&field.path.0, record.to_mut(), &mut write_whole);
        }
    }
}

/// Calls a function for every value at a path.
fn at_each(steps: &[Step], value: &mut Value, call: &mut impl FnMut(&mut Value)) {
    match (steps, value) {
        ([], value) => call(value),
        ([Step::Name(name), rest @ ..], Value::Object(members)) => {
            if let Some(member) = members.get_mut(name) {
                at_each(rest, member, call);
            }
        }
        ([Step::Each, rest @ ..], Value::Object(members)) => {
            members.values_mut().for_each(|member| at_each(rest, member, call));
        }
        ([Step::Each, rest @ ..], Value::Array(elements)) => {
            elements.iter_mut().for_each(|element| at_each(rest, element, call));
        }
        _ => {}
    }
}

fn is_to_be_whole(value: &Value) -> bool {
    value.is_f64() && whole_of(value).is_some()
}

fn write_whole(value: &mut Value) {
    if let Some(number) = whole_of(value) {
        *value = Value::from(number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    #[test]
    fn whole_numbers_are_written_as_such_where_they_are_declared() {
        let schema = Schema::from_toml(
            r#"
            [collection.x]
            key = "x:{id}"
            fields = { id = "text", at = "timestamp", "n.m" = { type = "integer", digits = 4 }, "steps.*.at" = "timestamp", f = "float" }
            "#,
        )
        .unwrap();
        let given = json!({ "id": "a", "at": 5.0, "n": { "m": -3e0 }, "f": 2.0, "free": 7.0,
            "steps": { "a": { "at": 1e3 }, "b": 2.0, "c": { "at": null } } });
        let mut record = Cow::Borrowed(&given);
        write_whole_numbers(schema.collection("x").unwrap(), &mut record);
        assert_eq!(
            record.to_string(),
            json!({ "id": "a", "at": 5, "n": { "m": -3 }, "f": 2.0, "free": 7.0,
                "steps": { "a": { "at": 1000 }, "b": 2.0, "c": { "at": null } } })
            .to_string()
        );
        for at in [json!(5), json!(5.5), json!(1e19), json!(-1e300), json!("5.0"), json!([5.0])] {
            let given = json!({ "at": at });
            let mut record = Cow::Borrowed(&given);
            write_whole_numbers(schema.collection("x").unwrap(), &mut record);
            assert!(matches!(record, Cow::Borrowed(_)), "{at} was copied");
        }
    }
}
