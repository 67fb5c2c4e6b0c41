//! Estimates the memory of parsed JSON before it is parsed.
//!
//! Texts of the same length need very different amounts of memory: a long string little more than
//! itself, `[[0],[0],…` a hundred times as much. The estimate is a sum, where `V` is the size of
//! one value:
//!
//! | part | bytes |
//! | --- | --- |
//! | the text of strings | their length plus a quarter of it, and 16 for each string |
//! | an array of n elements | `V` for each place; the places double as it grows, from 4 on |
//! | an object of n members | name, value and hash for each place, and a table of places |
//! | the largest of these | half of it again, since its old places are copied to the new ones |

use serde_json::Value;

/// One value in its place.
const VALUE_BYTES: usize = size_of::<Value>();

/// One member of an object: its hash, its name, its value.
const MEMBER_BYTES: usize = size_of::<usize>() + size_of::<String>() + VALUE_BYTES;

/// The overhead of an allocation.
const ALLOCATION_BYTES: usize = 16;

/// The parser refuses JSON that nests deeper.
const DEPTH_MAX: usize = 101;

/// An array or an object that has not ended yet.
#[derive(Clone, Copy)]
struct Open {
    is_object: bool,
    commas: usize,
}

/// The most bytes, approximately, that the parsed values need; the text itself is not counted.
pub(crate) fn weight(text: &[u8]) -> usize {
    let (mut total, mut largest) = (VALUE_BYTES + text.len() + text.len() / 4, 0);
    let mut open: Vec<Open> = Vec::new();
    let mut is_begun = false;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'"' => {
                skip_string(&mut bytes);
                total += ALLOCATION_BYTES;
            }
            b'[' | b'{' => {
                if open.len() == DEPTH_MAX {
                    break;
                }
                open.push(Open { is_object: *byte == b'{', commas: 0 });
                is_begun = true;
                continue;
            }
            b']' | b'}' => {
                // An empty array or object has no places.
                if let Some(closed) = open.pop().filter(|_| !is_begun) {
                    let bytes = closed.bytes();
                    total += bytes;
                    largest = largest.max(bytes);
                }
            }
            b',' => {
                if let Some(innermost) = open.last_mut() {
                    innermost.commas += 1;
                }
            }
            _ => {}
        }
        is_begun = false;
    }
    // Containers that never end are refused at the end of the text, and need their memory until
    // then.
    for unfinished in open {
        total += unfinished.bytes();
        largest = largest.max(unfinished.bytes());
    }
    total + largest / 2
}

/// Skips to the end of a string.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

impl Open {
    /// Its size with as many elements as its commas show.
    fn bytes(self) -> usize {
        let elements = self.commas + 1;
        if !self.is_object {
            return ALLOCATION_BYTES + elements.next_power_of_two().max(4) * VALUE_BYTES;
        }
        let places = match elements {
            0..4 => 4,
            4..8 => 8,
            _ => (elements * 8 / 7 + 1).next_power_of_two(),
        };
        let table = places * (size_of::<usize>() + 1) + ALLOCATION_BYTES;
        2 * ALLOCATION_BYTES + table + places * MEMBER_BYTES
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The heap size of a value; for maps, which do not report it, at least what they need.
    fn heap(value: &Value) -> usize {
        match value {
            Value::String(text) => text.capacity(),
            Value::Array(elements) => {
                elements.capacity() * VALUE_BYTES + elements.iter().map(heap).sum::<usize>()
            }
            Value::Object(members) => {
                let own = |(name, value): (&String, &Value)| {
                    MEMBER_BYTES + size_of::<usize>() + name.capacity() + heap(value)
                };
                members.iter().map(own).sum()
            }
            _ => 0,
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\,\\[{é ]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 200, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
                prop::collection::btree_map("[a-z\",]{0,9}", inner, 0..20)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_weight_is_no_less_than_what_is_read(value in values(), is_pretty: bool) {
            let text = match is_pretty {
                true => serde_json::to_string_pretty(&value),
                false => serde_json::to_string(&value),
            };
            let text = text.map_err(|error| TestCaseError::fail(error.to_string()))?;
            let read: Value = keyloom::read_json(&text)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(weight(text.as_bytes()) >= VALUE_BYTES + heap(&read));
        }
    }

    #[test]
    fn a_weight_is_not_far_from_what_is_read() {
        let embeddings = json!([vec![0.125_f64; 1536], vec![0.125_f64; 1536]]);
        let records = json!(vec![json!({"id": "a1b2c3", "state": "open", "at": 17}); 100]);
        let text = json!(["x".repeat(100_000)]);
        for value in [embeddings, records, text] {
            let text = value.to_string();
            let read: Value = serde_json::from_str(&text).unwrap_or_default();
            let (weight, heap) = (weight(text.as_bytes()), heap(&read));
            assert!(heap <= weight && weight <= 3 * heap, "{heap} bytes, {weight} expected");
        }
    }

    #[test]
    fn small_text_that_becomes_large_is_heavy() {
        let nested = format!("[{}", "[0],".repeat(10_000));
        assert!(weight(nested.as_bytes()) > 90 * nested.len(), "{}", weight(nested.as_bytes()));
        assert!(weight("[".repeat(1_000_000).as_bytes()) < 2 << 20);
        assert!(weight(format!("{:?}", "[0],".repeat(10_000)).as_bytes()) < 60_000);
    }
}
