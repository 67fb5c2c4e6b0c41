//! Conditions on the fields of a record.

use keyloom::same_value;
use serde_json::Value;

use super::Guard;
use crate::api::template::value_at;

/// The first field that does not have the required value, with that value. `null` also matches a
/// missing field, and numbers are compared by value.
pub(super) fn broken<'g>(guard: &'g Guard, record: &Value) -> Option<(&'g str, &'g Value)> {
    let holds = |path: &str, wanted: &Value| {
        let found = value_at(record, path).unwrap_or(&Value::Null);
        same_value(found, wanted)
    };
    guard
        .iter()
        .find(|(path, wanted)| !holds(path, wanted))
        .map(|(path, wanted)| (path.as_str(), wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_broken(guard: Value, record: Value) -> bool {
        let members = guard.as_object().into_iter().flatten();
        let guard: Guard = members.map(|(path, value)| (path.clone(), value.clone())).collect();
        broken(&guard, &record).is_some()
    }

    #[test]
    fn fields_are_compared_by_path_and_worth() {
        assert!(!is_broken(json!({"a.b": 1}), json!({"a": {"b": 1}})));
        assert!(!is_broken(json!({"a": 1.0}), json!({"a": 1})));
        assert!(!is_broken(json!({"a": null}), json!({})));
        assert!(is_broken(
            json!({"a": 9_007_199_254_740_993_i64}),
            json!({"a": 9_007_199_254_740_992_i64})
        ));
        assert!(is_broken(
            json!({"a": 9_007_199_254_740_993_i64}),
            json!({"a": 9_007_199_254_740_992.0})
        ));
        assert!(is_broken(json!({"a": "1"}), json!({"a": 1})));
        assert!(is_broken(json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3})));
    }
}
