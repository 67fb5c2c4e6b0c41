//! What is asked of a store, as a fingerprint that tells two requests apart.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// One write, as far as it is data. What a function does to a record cannot be compared.
pub(crate) struct Request<'r> {
    operation: &'static str,
    collection: &'r str,
    payload: Value,
}

impl<'r> Request<'r> {
    /// An operation on a collection, with everything else that the caller gave.
    pub(crate) fn new(operation: &'static str, collection: &'r str, payload: Value) -> Self {
        Request { operation, collection, payload }
    }

    /// Whether the write itself reads nothing first.
    pub(super) fn is_blind(&self) -> bool {
        matches!(self.operation, "insert" | "increment")
    }

    /// The SHA-256, in hex, of the request in its canonical form: JSON without blanks, the names
    /// of every object in order.
    pub(super) fn fingerprint(&self) -> String {
        let whole = json!([self.operation, self.collection, sorted(&self.payload)]);
        let hash = Sha256::digest(whole.to_string().as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let ordered: BTreeMap<&String, &Value> = members.iter().collect();
            let members = ordered.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(members.collect())
        }
        Value::Array(elements) => Value::Array(elements.iter().map(sorted).collect()),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_names_does_not_matter_and_all_else_does() {
        let fingerprint = |operation, collection, payload| {
            Request::new(operation, collection, payload).fingerprint()
        };
        let one = fingerprint("insert", "note", json!({ "a": { "x": 1, "y": 2 }, "b": [1, 2] }));
        assert_eq!(
            one,
            fingerprint("insert", "note", json!({ "b": [1, 2], "a": { "y": 2, "x": 1 } }))
        );
        for other in [
            fingerprint("upsert", "note", json!({ "a": { "x": 1, "y": 2 }, "b": [1, 2] })),
            fingerprint("insert", "post", json!({ "a": { "x": 1, "y": 2 }, "b": [1, 2] })),
            fingerprint("insert", "note", json!({ "a": { "x": 1, "y": 2 }, "b": [2, 1] })),
            fingerprint("insert", "note", json!({ "a": { "x": 1 }, "b": [1, 2] })),
        ] {
            assert_ne!(one, other);
        }
    }
}
