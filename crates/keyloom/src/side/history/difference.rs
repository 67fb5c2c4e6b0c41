//! What changed between two states of a record.

use serde::Serialize;
use serde_json::{Map, Value};

/// One path at which two states of a record differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The names on the way to the value, outermost first. Arrays are compared as a whole.
    pub path: Vec<String>,
    /// What was there; `None` when nothing was.
    pub before: Option<Value>,
    /// What is there; `None` when nothing is.
    pub after: Option<Value>,
}

impl Difference {
    /// Where two records differ, as deep as both are objects, in the order of the one before.
    pub fn between(before: &Value, after: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        compare(&mut Vec::new(), Some(before), Some(after), &mut found);
        found
    }
}

fn compare(
    path: &mut Vec<String>,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for name in names(before, after) {
                path.push(name.clone());
                compare(path, before.get(name), after.get(name), found);
                path.pop();
            }
        }
        (before, after) => found.push(Difference {
            path: path.clone(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn names<'v>(
    before: &'v Map<String, Value>,
    after: &'v Map<String, Value>,
) -> impl Iterator<Item = &'v String> {
    before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_told_and_where() {
        let before = json!({ "a": 1, "b": { "c": 2, "d": 3, "same": 0 }, "list": [1] });
        let after = json!({ "a": 1, "b": { "d": 4, "same": 0, "e": null }, "list": [1, 2] });
        let told: Vec<_> = Difference::between(&before, &after)
            .into_iter()
            .map(|Difference { path, before, after }| (path.join("."), before, after))
            .collect();
        assert_eq!(
            told,
            [
                ("b.c".to_owned(), Some(json!(2)), None),
                ("b.d".to_owned(), Some(json!(3)), Some(json!(4))),
                ("b.e".to_owned(), None, Some(json!(null))),
                ("list".to_owned(), Some(json!([1])), Some(json!([1, 2]))),
            ]
        );
        assert!(Difference::between(&before, &before).is_empty());
    }
}
