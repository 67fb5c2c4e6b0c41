//! Generates values: ids, UUIDs, short codes and creation times.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::random::random_bytes;
use super::version::now_ms;
use crate::key::{CODE_ALPHABET, CodePattern, Kind, Path, Step};
use crate::schema::{Collection, FieldKind};

/// Crockford's alphabet in lower case: 32 characters without i, l, o and u.
const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Fills every declared field that is to be generated and that the record lacks. Gives the paths of
/// generated codes, since such a code may be taken already.
pub(crate) fn fill_generated(collection: &Collection, record: &mut Cow<'_, Value>) -> Vec<Path> {
    let mut codes = Vec::new();
    for field in collection.fields.values().filter(|field| field.generate) {
        if !matches!(field.path.get(record), None | Some(Value::Null)) {
            continue;
        }
        if let FieldKind::Key(kind) = &field.kind
            && let Some(value) = generate(kind)
        {
            set(record.to_mut(), &field.path, value);
            if matches!(kind, Kind::Code(_)) {
                codes.push(field.path.clone());
            }
        }
    }
    codes
}

/// Whether a generated part of the record's key is random enough to be unique.
pub(crate) fn draws_key(collection: &Collection, record: &Value) -> bool {
    collection.key_paths.iter().any(|path| {
        let declared = collection.fields.get(path).filter(|field| field.generate);
        let is_lacking = matches!(path.get(record), None | Some(Value::Null));
        is_lacking
            && declared.is_some_and(|field| {
                matches!(field.kind, FieldKind::Key(Kind::Id | Kind::Uuid { .. }))
            })
    })
}

/// Removes generated values, so that they are generated anew.
pub(crate) fn forget_generated(record: &mut Value, paths: &[Path]) {
    paths.iter().for_each(|path| set(record, path, Value::Null));
}

fn generate(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Id => Some(Value::String(new_id())),
        Kind::Uuid { .. } => Some(Value::String(new_uuid())),
        Kind::Code(pattern) => Some(Value::String(new_code(pattern))),
        Kind::Timestamp => Some(Value::from(now_ms())),
        _ => None,
    }
}

/// 26 characters: 10 from the time in milliseconds, 16 random. So ids sort by creation.
pub(crate) fn new_id() -> String {
    let random = u128::from_be_bytes(random_bytes()) & ((1 << 80) - 1);
    let bits = u128::from(now_ms() & ((1 << 48) - 1)) << 80 | random;
    (0..26)
        .rev()
        .map(|place| char::from(ID_ALPHABET[(bits >> (5 * place)) as usize & 31]))
        .collect()
}

/// A version 4 UUID in simple form.
pub(crate) fn new_uuid() -> String {
    let mut bytes = random_bytes::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn new_code(pattern: &CodePattern) -> String {
    let draw = || char::from(CODE_ALPHABET[usize::from(random_bytes::<1>()[0] & 31)]);
    pattern.0.chars().map(|c| if c == '*' { draw() } else { c }).collect()
}

/// Sets a value at a path of names, and creates the objects on the way. A path with `*`, or one
/// that leads through something other than an object, changes nothing.
pub(crate) fn set(record: &mut Value, path: &Path, value: Value) {
    let mut at = record;
    for step in &path.0 {
        let Step::Name(name) = step else { return };
        let Value::Object(members) = at else { return };
        let empty = || Value::Object(Map::new());
        at = members.entry(name.as_str()).or_insert_with(empty);
        if at.is_null() {
            *at = empty();
        }
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_26_characters_and_sort_by_time() {
        let earlier = new_id();
        assert_eq!(earlier.len(), 26);
        let started = now_ms();
        while now_ms() == started {
            std::hint::spin_loop();
        }
        assert!(earlier < new_id());
    }

    #[test]
    fn uuids_are_version_4() {
        let uuid = new_uuid();
        assert_eq!(uuid.len(), 32);
        assert_eq!(&uuid[12..13], "4");
        assert!(matches!(&uuid[16..17], "8" | "9" | "a" | "b"));
    }

    #[test]
    fn codes_follow_their_pattern() {
        let code = new_code(&CodePattern("A-******".into()));
        assert_eq!(code.len(), 8);
        assert!(code.starts_with("A-"));
        assert!(code[2..].bytes().all(|byte| CODE_ALPHABET.contains(&byte)));
    }
}
