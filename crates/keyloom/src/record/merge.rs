//! Changes parts of a record by merge patches (RFC 7386).

use serde_json::{Map, Value, json};

use super::check::check_depth;
use super::counters::refuse_counters;
use crate::error::{Error, ErrorKind, Result};
use crate::json::DEPTH_MAX;
use crate::key::{Path, Step};
use crate::schema::{Collection, FieldKind};

/// Applies a merge patch: members of the patch replace those of the target, objects are merged
/// member by member, and `null` removes a member.
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
            // The other members keep their order.
            members.shift_remove(name);
        } else {
            merge(members.entry(name.as_str()).or_insert(Value::Null), change);
        }
    }
}

/// Refuses a patch that is not an object, and member names with dots: they look like paths, but
/// would create a member with that literal name. In a declared map, names are data and may have
/// dots.
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
    let names_are_data = is_map(collection, path);
    for (name, change) in changes {
        if name.contains('.') && !names_are_data {
            let message = "a name in a patch has a dot; write nested objects, or declare a map";
            let error = Error::new(ErrorKind::InvalidRecord, message)
                .with("collection", &collection.name)
                .with("name", name);
            if path.len() + nested_depth(name, change) > DEPTH_MAX {
                return Err(error);
            }
            let instead = within(path, nested(collection, path, name, change));
            return Err(match check_patch(collection, &instead) {
                Ok(()) => error.with("instead", instead),
                // No form of a patch can change a counter.
                Err(refusal) if refusal.context_value("counter").is_some() => refusal,
                Err(refusal) => error.with("instead", instead).with("but", refusal),
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

/// The patch that was probably meant by a member with dots in its name: nested objects, down to a
/// declared map, whose names may have dots. Names within the value are nested in the same way.
fn nested(collection: &Collection, path: &[Step], name: &str, value: &Value) -> Value {
    let below = |name: &str| [path, &[Step::Name(name.to_owned())]].concat();
    match (name.split_once('.'), value) {
        (Some((first, rest)), _) if !is_map(collection, path) => {
            json!({ first: nested(collection, &below(first), rest, value) })
        }
        (_, Value::Object(members)) => {
            let path = below(name);
            let members =
                members.iter().map(|(name, value)| nested(collection, &path, name, value));
            json!({ name: members.fold(json!({}), joined) })
        }
        _ => json!({ name: value }),
    }
}

/// Joins two objects member by member. Unlike in a merge, `null` is a value.
fn joined(one: Value, other: Value) -> Value {
    let (Value::Object(mut members), Value::Object(more)) = (one, other.clone()) else {
        return other;
    };
    for (name, value) in more {
        let together = match members.shift_remove(&name) {
            Some(there) => joined(there, value),
            None => value,
        };
        members.insert(name, together);
    }
    Value::Object(members)
}

/// The depth of a member if all names with dots were nested.
fn nested_depth(name: &str, value: &Value) -> usize {
    let inner = value.as_object().into_iter().flatten();
    let deepest = inner.map(|(name, value)| nested_depth(name, value)).max().unwrap_or(0);
    1 + name.matches('.').count() + deepest
}

/// The value, nested in objects along a path.
fn within(path: &[Step], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, step| match step {
        Step::Name(name) => json!({ name: inner }),
        Step::Each | Step::EachKey => inner,
    })
}

/// Whether the object at this path is a declared map, whose names are data.
fn is_map(collection: &Collection, path: &[Step]) -> bool {
    let field = collection.fields.get(&Path(path.to_vec()));
    field.is_some_and(|field| field.kind == FieldKind::Map)
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
