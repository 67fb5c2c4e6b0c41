//! JSON text as the tree of values that the reader understands.
//!
//! `serde_json` keeps the last of two members with one name. In a schema that would silently
//! drop an index, so this reader refuses them.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::problem::{Place, Places, Problems, Trail};

/// Parses a text. `None` when it is not JSON, with the reason among the problems.
pub(crate) fn parse(
    text: &str,
    source: &Arc<str>,
    problems: &mut Problems,
) -> Option<(Value, Places)> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = Strict.deserialize(&mut deserializer).and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    match parsed {
        Ok(value) => {
            let mut places = Places::default();
            places.insert(Trail::new(), source, None);
            Some((value, places))
        }
        Err(error) => {
            let place = Place { line: error.line(), column: error.column() };
            // The place stands before the message; `serde_json` repeats it at the end.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            problems.add_to_text(source, Some(place), format!("not JSON: {message}"));
            None
        }
    }
}

/// Any JSON value whose objects have no name twice.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(Strict)? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("duplicate key {name:?}")));
            }
            let value = members.next_value_seed(Strict)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
