//! Changing a part of a record by merge patches (RFC 7386).

use serde_json::{Map, Value, json};

use super::check::check_depth;
use super::counters::refuse_counters;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Path, Step};
use crate::schema::{Collection, FieldKind};

/// Applies a merge patch: members of the patch replace those of the target, objects are merged
/// member by member, and a `null` removes.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, change) in changes {
        if change.is_null() {
            // The others keep their order.
            members.shift_remove(name);
        } else {
            merge(members.entry(name.as_str()).or_insert(Value::Null), change);
        }
    }
}

/// Refuses a patch that is not an object, and names with dots, which look like paths and would
/// make a member of that name. In a declared map names are data, and may have dots.
pub(crate) fn check_patch(collection: &Collection, patch: &Value) -> Result<()> {
    let Value::Object(changes) = patch else {
        let message = "a patch is a JSON object with the members that change";
        return Err(
            Error::new(ErrorKind::InvalidRecord, message).with("collection", &collection.name)
        );
    };
    check_depth(collection, patch)?;
    check_names(collection, &mut Vec::new(), changes)?;
    refuse_counters(collection, patch)
}

fn check_names(
    collection: &Collection,
    path: &mut Vec<Step>,
    changes: &Map<String, Value>,
) -> Result<()> {
    let here = Path(path.clone());
    let names_are_data =
        collection.fields.get(&here).is_some_and(|field| field.kind == FieldKind::Map);
    for (name, change) in changes {
        if name.contains('.') && !names_are_data {
            let message = "a name in a patch has a dot; write nested objects, or declare a map";
            let error = Error::new(ErrorKind::InvalidRecord, message)
                .with("collection", &collection.name)
                .with("name", name)
                .with("instead", nested(path, name, change));
            return Err(match refuse_counters(collection, &nested(path, name, change)) {
                Err(counter) => error.with("but", counter),
                Ok(()) => error,
            });
        }
        if let Value::Object(inner) = change {
            path.push(Step::Name(name.clone()));
            check_names(collection, path, inner)?;
            path.pop();
        }
    }
    Ok(())
}

/// The patch that was meant: a name with dots as nested objects.
fn nested(path: &[Step], name: &str, value: &Value) -> Value {
    let outer = path.iter().filter_map(|step| match step {
        Step::Name(name) => Some(name.as_str()),
        Step::Each | Step::EachKey => None,
    });
    let names: Vec<&str> = outer.chain(name.split('.')).collect();
    names.iter().rev().fold(value.clone(), |inner, name| json!({ *name: inner }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(mut target: Value, patch: Value) -> Value {
        merge(&mut target, &patch);
        target
    }

    /// The examples of RFC 7386, appendix A.
    #[test]
    fn the_examples_of_the_rfc() {
        for (target, patch, wanted) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merged(target, patch), wanted);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!([1, 2]))];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
        })
    }

    proptest! {
        #[test]
        fn merging_twice_is_merging_once(target in any_json(), patch in any_json()) {
            let once = merged(target, patch.clone());
            prop_assert_eq!(merged(once.clone(), patch), once);
        }
    }
}
