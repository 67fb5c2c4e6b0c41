//! The natural order of values, to compare with the order of their bytes.

use std::cmp::Ordering;

use serde_json::Value;

use crate::key::Codec;

impl Codec {
    /// The order of two values of this codec. Values that the codec would refuse come first, and
    /// count as equal.
    pub(crate) fn compare(&self, a: &Value, b: &Value) -> Ordering {
        match (self, a, b) {
            (_, Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Codec::Integer { .. } | Codec::Timestamp, ..) => a.as_i64().cmp(&b.as_i64()),
            (Codec::Float, ..) => {
                let (a, b) = (a.as_f64(), b.as_f64());
                // JSON has no NaN, so any two numbers can be compared.
                a.partial_cmp(&b).unwrap_or(Ordering::Equal)
            }
            (Codec::Boolean, ..) => a.as_bool().cmp(&b.as_bool()),
            // A place has no natural order: it is ordered by its geohash.
            _ => self.ascending(a).cmp(&self.ascending(b)),
        }
    }

    fn ascending(&self, value: &Value) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.write(value, false, None, &mut out).ok().map(|()| out)
    }
}
