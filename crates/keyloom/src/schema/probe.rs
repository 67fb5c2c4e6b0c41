//! Reads one value of a record's text without building a tree of all the others. Lists of expiring
//! records look at the end of each record, and parsing the whole record would cost more than the
//! list itself.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use crate::key::{Path, Step};

/// The value at a path without `*`, as parsing the whole text would give it; `None` if there is
/// none, or if the text is not JSON.
pub(super) fn value_at(text: &[u8], path: &Path) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = Probe(&path.0).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    value
}

/// The remaining steps of the path.
struct Probe<'p>(&'p [Step]);

impl<'de> DeserializeSeed<'de> for Probe<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<Value>, D::Error> {
        match self.0 {
            [] => Value::deserialize(reader).map(Some),
            [Step::Name(name), rest @ ..] => reader.deserialize_any(Members { name, rest }),
            [Step::Each | Step::EachKey, ..] => IgnoredAny::deserialize(reader).map(|_| None),
        }
    }
}

/// Looks for one member of an object, and skips all others.
struct Members<'p> {
    name: &'p str,
    rest: &'p [Step],
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Option<Value>, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<std::borrow::Cow<'_, str>>()? {
            // If several members have the same name, the last one counts.
            if name == self.name {
                found = members.next_value_seed(Probe(self.rest))?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Option<Value>, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            Just("1.5".to_owned()),
            "\"[a-c\\u{e9}]{0,3}\"",
            Just(r#""\n\u0061""#.to_owned()),
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            let member = (prop_oneof!["\"[a-b]\"", Just(r#""\u0061""#.to_owned())], inner.clone());
            prop_oneof![
                proptest::collection::vec(inner, 0..3)
                    .prop_map(|elements| format!("[{}]", elements.join(", "))),
                proptest::collection::vec(member, 0..4).prop_map(|members| {
                    let members: Vec<String> =
                        members.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_reading_the_whole_text_gives(text in json(), path in "[a-b](\\.[a-b]){0,2}") {
            let path = Path::parse(&path).unwrap();
            let whole: Value = serde_json::from_str(&text).unwrap();
            let probed = value_at(text.as_bytes(), &path);
            prop_assert_eq!(probed.as_ref(), path.get(&whole));
            let cut = &text.as_bytes()[..text.len() - 1];
            if serde_json::from_slice::<Value>(cut).is_err() {
                prop_assert_eq!(value_at(cut, &path), None);
            }
        }
    }
}
