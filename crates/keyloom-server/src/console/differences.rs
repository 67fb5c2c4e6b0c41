//! Shows the differences between two records as a table, and applies them to another record.

use keyloom::Difference;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::draw::{json_line, visible};

/// The most characters of a value in a table.
const VALUE_CHARS_MAX: usize = 200;

/// The record after these changes.
pub(super) fn apply(changes: &[Difference], mut record: Value) -> Value {
    for change in changes {
        set(&mut record, &change.path, change.after.as_ref());
    }
    record
}

fn set(at: &mut Value, path: &[String], value: Option<&Value>) {
    match (path, value) {
        ([], Some(value)) => *at = value.clone(),
        ([], None) => {}
        ([name, rest @ ..], value) => {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(members) = at else { return };
            match (rest, value) {
                ([], None) => {
                    members.shift_remove(name);
                }
                _ => set(members.entry(name.as_str()).or_insert(Value::Null), rest, value),
            }
        }
    }
}

/// Differences as a table, under these headings.
pub(super) fn table(changes: &[Difference], headings: [&str; 2]) -> Markup {
    html! {
        div.scroll {
            table.difference {
                thead { tr { th scope="col" { "Field" } @for it in headings { th scope="col" { (it) } } } }
                tbody {
                    @for change in changes {
                        tr {
                            th.mono scope="row" { (visible(&change.path.join("."))) }
                            td.mono.removed { (side(change.before.as_ref(), "−")) }
                            td.mono.added { (side(change.after.as_ref(), "+")) }
                        }
                    }
                }
            }
        }
    }
}

/// One side. Its sign distinguishes it without its colour.
fn side(value: Option<&Value>, sign: &str) -> Markup {
    html! {
        @match value {
            None => span.muted { "nothing" },
            Some(value) => { span.sign aria-hidden="true" { (sign) } " " (json_line(value, VALUE_CHARS_MAX)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_made_to_what_they_came_from_give_where_they_led() {
        let pairs = [
            (json!({ "a": 1, "b": { "c": 2 } }), json!({ "a": 1, "b": { "c": 3, "d": null } })),
            (json!({ "a": { "b": 1 } }), json!({ "a": [1] })),
            (json!({ "a": [1] }), json!({ "a": { "b": { "c": 1 } } })),
            (json!({ "a": 1 }), json!({})),
        ];
        for (before, after) in pairs {
            assert_eq!(apply(&Difference::between(&before, &after), before.clone()), after);
            assert!(Difference::between(&after, &after).is_empty());
        }
    }

    #[test]
    fn changes_of_other_fields_survive() {
        let (base, mine) = (json!({ "a": 1, "b": 1 }), json!({ "a": 2, "b": 1 }));
        let theirs = json!({ "a": 1, "b": 5, "c": 6 });
        let merged = apply(&Difference::between(&base, &mine), theirs);
        assert_eq!(merged, json!({ "a": 2, "b": 5, "c": 6 }));
    }
}
