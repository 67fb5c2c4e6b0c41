//! The optional JSON Schema of a collection's records.

use jsonschema::Validator;
use serde_json::Value;

/// How many violations of one record are told.
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

impl BodySchema {
    /// Compiles a JSON Schema; the error is a sentence that says what is wrong with it. Nothing
    /// is ever fetched: a reference to another document is an error.
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

    /// Where the record breaks the schema; at most eight places.
    pub(crate) fn violations(&self, record: &Value) -> Vec<Violation> {
        if self.validator.is_valid(record) {
            return Vec::new();
        }
        self.validator
            .iter_errors(record)
            .take(VIOLATIONS_MAX)
            .map(|error| Violation {
                at: error.instance_path().to_string(),
                message: error.to_string(),
            })
            .collect()
    }
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
        assert_eq!(body.violations(&json!({ "title": "x", "stars": 5 })), []);
        let violations = body.violations(&json!({ "stars": 6 }));
        let places: Vec<&str> = violations.iter().map(|violation| violation.at.as_str()).collect();
        assert_eq!(places, ["", "/stars"]);
        assert!(violations[0].message.contains("title"), "{violations:?}");
    }

    #[test]
    fn at_most_eight_violations_are_told() {
        let body = BodySchema::new(&json!({ "items": { "type": "string" } })).unwrap();
        assert_eq!(body.violations(&json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).len(), VIOLATIONS_MAX);
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
