//! The optional JSON Schema of a collection's records.

use std::fmt;

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// The most violations that are reported for one record.
const VIOLATIONS_MAX: usize = 8;

/// A compiled JSON Schema.
#[derive(Clone, Debug)]
pub(crate) struct BodySchema {
    validator: Validator,
}

/// One place where a record breaks its body schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// A JSON pointer into the record; empty for the record itself.
    pub(crate) at: String,
    /// What is wrong there.
    pub(crate) message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at.as_str() {
            "" => f.write_str(&self.message),
            at => write!(f, "{at}: {}", self.message),
        }
    }
}

impl BodySchema {
    /// Compiles a JSON Schema; the error is a sentence that says what is wrong with it. Nothing is
    /// ever fetched, so a reference to another document is an error.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        match jsonschema::options().offline().build(schema) {
            Ok(validator) => Ok(BodySchema { validator }),
            Err(error) => {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { String::new() } else { format!(" at {place}") };
                Err(format!("the body is not a JSON Schema{place}: {error}"))
            }
        }
    }

    /// The places where the record breaks the schema; at most eight. If an older version is given,
    /// places that it breaks in the same way are left out.
    pub(crate) fn violations(&self, old: Option<&Value>, record: &Value) -> Vec<Violation> {
        if self.validator.is_valid(record) {
            return Vec::new();
        }
        let mut known: Vec<ValidationError<'_>> =
            old.into_iter().flat_map(|old| self.validator.iter_errors(old)).collect();
        let mut is_new = |error: &ValidationError<'_>| {
            let place = known.iter().position(|known| is_same(known, error));
            place.map(|place| known.swap_remove(place)).is_none()
        };
        let new = self.validator.iter_errors(record).filter(|error| is_new(error));
        new.take(VIOLATIONS_MAX)
            .map(|error| Violation {
                at: error.instance_path().to_string(),
                message: error.to_string(),
            })
            .collect()
    }
}

/// Whether two violations are one and the same: the same value breaks the same rule, even if it has
/// moved. A rule of an object or an array, such as `required`, depends on more than the parts that
/// its message names. For such a rule, the place and the message without the value must be the
/// same.
fn is_same(old: &ValidationError<'_>, new: &ValidationError<'_>) -> bool {
    let is_container = |value: &Value| value.is_object() || value.is_array();
    let left_alone = || {
        old.instance_path() == new.instance_path()
            && is_container(old.instance())
            && is_container(new.instance())
            && old.masked().to_string() == new.masked().to_string()
    };
    old.schema_path() == new.schema_path() && (old.instance() == new.instance() || left_alone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn all_violations_are_told_with_their_places() {
        let body = BodySchema::new(&json!({
            "required": ["title"],
            "properties": { "stars": { "type": "integer", "maximum": 5 } },
        }))
        .unwrap();
        assert_eq!(body.violations(None, &json!({ "title": "x", "stars": 5 })), []);
        let violations = body.violations(None, &json!({ "stars": 6 }));
        let places: Vec<&str> = violations.iter().map(|violation| violation.at.as_str()).collect();
        assert_eq!(places, ["", "/stars"]);
        assert!(violations[0].message.contains("title"), "{violations:?}");
    }

    #[test]
    fn what_the_old_record_breaks_in_the_same_way_is_not_told() {
        let body = BodySchema::new(&json!({
            "required": ["title", "owner"],
            "additionalProperties": false,
            "properties": {
                "title": { "type": "string" }, "owner": {}, "stars": { "maximum": 5 },
                "list": { "items": { "type": "string" } },
            },
        }))
        .unwrap();
        let places = |old: Value, new: Value| {
            let violations = body.violations(Some(&old), &new);
            violations.into_iter().map(|violation| violation.at).collect::<Vec<_>>()
        };
        let old = json!({ "stars": 6, "list": ["a", 1], "odd": 1, "owner": 1 });
        // Other fields may change, elements may move, and a value that breaks a rule may disappear.
        for new in [
            json!({ "stars": 6, "list": ["a", 1], "odd": 1, "owner": 2 }),
            json!({ "stars": 6, "list": [1], "odd": 2, "owner": 1 }),
            json!({ "stars": 5, "list": ["b"], "owner": 1, "title": "x" }),
        ] {
            assert_eq!(places(old.clone(), new.clone()), [""; 0], "{new}");
        }
        // Changed values must fit, and no further rule may be broken.
        for (new, broken) in [
            (json!({ "stars": 7, "owner": 1 }), "/stars"),
            (json!({ "stars": 6, "list": [1, 1], "owner": 1 }), "/list/1"),
            (json!({ "stars": 6, "list": [2], "owner": 1 }), "/list/0"),
            (json!({ "stars": 6, "odd": 1, "more": 1, "owner": 1 }), ""),
            (json!({ "stars": 6 }), ""),
        ] {
            assert_eq!(places(old.clone(), new.clone()), [broken], "{new}");
        }
    }

    #[test]
    fn at_most_eight_violations_are_told() {
        let body = BodySchema::new(&json!({ "items": { "type": "string" } })).unwrap();
        assert_eq!(
            body.violations(None, &json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).len(),
            VIOLATIONS_MAX
        );
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        let refusal = BodySchema::new(&json!({ "type": "sting" })).unwrap_err();
        assert!(refusal.contains("at /type"), "{refusal}");
    }

    #[test]
    fn references_to_other_documents_are_never_fetched() {
        let elsewhere = json!({ "$ref": "https://example.com/schema.json" });
        assert!(BodySchema::new(&elsewhere).is_err());
    }
}
