//! The order that values have by themselves, to hold the order of their bytes against.

use std::cmp::Ordering;

use serde_json::Value;

use crate::key::Codec;

impl Codec {
    /// The order of two values of this codec. Values that the codec would refuse come first and
    /// are equal to one another.
    pub(crate) fn compare(&self, a: &Value, b: &Value) -> Ordering {
        match (self, a, b) {
            (_, Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Codec::Integer { .. } | Codec::Timestamp, ..) => a.as_i64().cmp(&b.as_i64()),
            (Codec::Float, ..) => {
                let (a, b) = (a.as_f64(), b.as_f64());
                // JSON has no NaN, so that any two numbers compare.
                a.partial_cmp(&b).unwrap_or(Ordering::Equal)
            }
            (Codec::Boolean, ..) => a.as_bool().cmp(&b.as_bool()),
            // A place has no order of its own: it is that of its geohash.
            _ => self.ascending(a).cmp(&self.ascending(b)),
        }
    }

    fn ascending(&self, value: &Value) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.write(value, false, None, &mut out).ok().map(|()| out)
    }
}
