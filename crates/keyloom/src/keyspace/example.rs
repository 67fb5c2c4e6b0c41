//! A made-up record of a collection: plausible values of the declared types, the same each time.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::key::{CODE_ALPHABET, Kind, Path, Step};
use crate::record::{record_key, set};
use crate::schema::{Collection, Condition, Field, FieldKind, Index, Test};
use crate::side::EXAMPLE_MS;
use crate::write::{Image, entry_keys_of, entry_value};

/// The name of the one member of a map, and what stands for a value that cannot be made up.
const MEMBER: &str = "first";

/// A record, as text and at its key.
pub(super) struct Example {
    pub(super) key: Bytes,
    pub(super) value: Value,
    pub(super) text: Bytes,
}

impl Example {
    pub(super) fn of(collection: &Collection) -> Self {
        let mut value = Value::Object(Map::new());
        let of_key = collection.key_paths.iter().filter_map(|path| collection.fields.get(path));
        let others = collection.fields.values();
        let others = others.filter(|field| !collection.key_paths.contains(&field.path));
        for field in of_key.chain(others) {
            put_field(collection, &mut value, field);
        }
        Example::at(collection, value)
    }

    fn at(collection: &Collection, value: Value) -> Self {
        // The template itself says what no record could be made up for.
        let key = record_key(collection, &value);
        let key = key.unwrap_or_else(|_| collection.key.source.clone().into());
        Example { key, text: value.to_string().into(), value }
    }

    /// The first key that an index has for the record, and what lies there.
    pub(super) fn entry(&self, collection: &Collection, index: &Index) -> (Bytes, Bytes) {
        let mut value = self.value.clone();
        index.condition.iter().for_each(|condition| meet(&mut value, condition));
        let met = Example::at(collection, value);
        // Where the condition cannot be met by guessing, the key shows what it looks like.
        let index = &Index { condition: None, ..index.clone() };
        let keys = entry_keys_of(collection, index, &met.value).unwrap_or_default();
        let key = keys.into_iter().next().unwrap_or_else(|| index.key.source.clone().into());
        let image = Image { key: &met.key, value: &met.value, text: &met.text };
        (key, entry_value(index, image))
    }
}

fn put_field(collection: &Collection, record: &mut Value, field: &Field) {
    match &field.kind {
        FieldKind::Map => set(record, &field.path, json!({})),
        FieldKind::RecordPoint { lat, lon } => {
            let Value::Object(members) = place(lat, lon) else { return };
            members.into_iter().for_each(|(name, value)| record[name] = value);
        }
        FieldKind::Key(kind) => {
            let is_map = |path: &Path| {
                let holder = collection.fields.get(path);
                holder.is_some_and(|holder| holder.kind == FieldKind::Map)
            };
            let star_is_map = field.path.star().is_some_and(|star| is_map(&star));
            put(record, &field.path.0, star_is_map, of_kind(kind, &field.path));
        }
    }
}

/// Puts a value at a path; an array or a map on the way gets one element.
fn put(target: &mut Value, steps: &[Step], star_is_map: bool, value: Value) {
    let name = match steps.split_first() {
        None => {
            *target = value;
            return;
        }
        // The names of a map come with its members.
        Some((Step::EachKey, _)) => return,
        Some((Step::Each, rest)) if !star_is_map => {
            if !target.is_array() {
                *target = json!([null]);
            }
            if let Some(element) = target.get_mut(0) {
                put(element, rest, star_is_map, value);
            }
            return;
        }
        Some((Step::Each, _)) => MEMBER,
        Some((Step::Name(name), _)) => name,
    };
    if !target.is_object() {
        *target = json!({});
    }
    put(&mut target[name], &steps[1..], star_is_map, value);
}

/// A value of a type, for a field of that name.
fn of_kind(kind: &Kind, path: &Path) -> Value {
    match kind {
        Kind::Text => Value::from(word(path)),
        Kind::Integer { digits } => {
            // One digit does not hold 42.
            Value::from(if *digits == 1 { 4 } else { 42 })
        }
        Kind::Float => json!(1.5),
        Kind::Boolean => json!(true),
        Kind::Enum { values } => values.first().cloned().unwrap_or_default().into(),
        Kind::Timestamp => json!(EXAMPLE_MS),
        Kind::DateTime => json!("2023-11-14T22:13:20.000Z"),
        Kind::Uuid { version } => json!(uuid(path, version.unwrap_or(4))),
        Kind::Id => json!("7BqXk2mN9pRt4vWz0aLc6dYe8f"),
        Kind::Code(pattern) => {
            let mut letters = CODE_ALPHABET.iter().rev().step_by(5).cycle();
            let code = pattern.0.chars().map(|letter| match letter {
                '*' => letters.next().map_or('2', |letter| char::from(*letter)),
                letter => letter,
            });
            code.collect::<String>().into()
        }
        Kind::Point { lat, lon } => place(lat, lon),
    }
}

/// A UUID that begins with the bytes of the field's name, so that those of two fields differ.
fn uuid(path: &Path, version: u8) -> String {
    let name: String = path.to_string().bytes().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{name:0<8}d9cb{:x}69fa16570867728950e", version & 15)
}

fn place(lat: &str, lon: &str) -> Value {
    let members = [(lat.to_owned(), json!(52.52)), (lon.to_owned(), json!(13.405))];
    Value::Object(members.into_iter().collect())
}

/// A text that tells which field it is of: `user1` for `userId`, an address for an email.
fn word(path: &Path) -> String {
    let names = path.0.iter().rev().filter_map(|step| match step {
        Step::Name(name) => Some(name.as_str()),
        Step::Each | Step::EachKey => None,
    });
    let name = names.into_iter().next().unwrap_or(MEMBER);
    if name.to_ascii_lowercase().contains("email") {
        return "ana@example.org".to_owned();
    }
    let stem = ["_id", "-id", "Id", "ID"].iter().find_map(|end| name.strip_suffix(end));
    let stem = stem.filter(|stem| !stem.is_empty()).unwrap_or(name);
    format!("{stem}1")
}

/// Makes a record meet a condition, as far as one can tell.
fn meet(record: &mut Value, condition: &Condition) {
    for (path, test) in &condition.tests {
        let wanted = match test {
            Test::Equals(value) | Test::AtLeast(value) | Test::AtMost(value) => Some(value.clone()),
            Test::OneOf(values) => values.first().cloned(),
            Test::Missing => Some(Value::Null),
            Test::Greater(value) => beside(value, 1),
            Test::Less(value) => beside(value, -1),
            Test::Present => None,
        };
        if let Some(wanted) = wanted {
            set(record, path, wanted);
        }
    }
}

fn beside(value: &Value, step: i64) -> Option<Value> {
    Some(Value::from(value.as_i64()?.checked_add(step)?))
}
