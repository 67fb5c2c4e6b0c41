//! Finds numbers that JSON cannot hold.
//!
//! JSON has neither NaN nor infinities, and `serde_json` writes `null` in their place. The record
//! would silently lose the number, and its type could not read the record back. So a record whose
//! JSON has a `null` is walked over once more, to look for such a number.

use std::fmt;

use serde::ser::{self, Serialize, Serializer};
use serde_json::Value;

/// The first number of a record that is not finite, and its path; `json` is what `serde_json` made
/// of the record.
pub(super) fn not_finite<T: Serialize>(record: &T, json: &Value) -> Option<(String, f64)> {
    if !has_null(json) {
        return None;
    }
    match record.serialize(Probe { variant: None }) {
        Err(Found::Number { mut path, number }) => {
            path.reverse();
            Some((path.join("."), number))
        }
        Ok(()) | Err(Found::Other) => None,
    }
}

fn has_null(json: &Value) -> bool {
    match json {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Why the walk ended.
#[derive(Debug)]
enum Found {
    /// A number that is not finite. The innermost step of its path comes first.
    Number { path: Vec<String>, number: f64 },
    /// An error of the record itself, which `serde_json` did not meet.
    Other,
}

impl Found {
    fn inside(self, step: &str) -> Self {
        match self {
            Found::Number { mut path, number } => {
                path.push(step.to_owned());
                Found::Number { path, number }
            }
            Found::Other => Found::Other,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the walk over a record ended early")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Found::Other
    }
}

type Walked = Result<(), Found>;

/// A step of a path that stands for every element, as it does in templates.
const EACH: &str = "*";

/// Visits every value of a record, and keeps none.
struct Probe {
    /// The variant of an enum that the walk is in; in JSON it is a member.
    variant: Option<&'static str>,
}

impl Probe {
    fn step<T: Serialize + ?Sized>(&self, step: &str, value: &T) -> Walked {
        value.serialize(Probe { variant: None }).map_err(|found| {
            let found = found.inside(step);
            match self.variant {
                Some(variant) => found.inside(variant),
                None => found,
            }
        })
    }
}

macro_rules! harmless {
    ($($method:ident($kind:ty)),*) => {$(
        fn $method(self, _: $kind) -> Walked {
            Ok(())
        }
    )*};
}

impl Serializer for Probe {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    harmless!(serialize_bool(bool), serialize_char(char), serialize_str(&str));
    harmless!(serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64));
    harmless!(serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64));
    harmless!(serialize_i128(i128), serialize_u128(u128), serialize_bytes(&[u8]));
    harmless!(serialize_unit_struct(&'static str));

    fn serialize_f32(self, number: f32) -> Walked {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Walked {
        if number.is_finite() { Ok(()) } else { Err(Found::Number { path: Vec::new(), number }) }
    }

    fn serialize_none(self) -> Walked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Walked {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Walked {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Walked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Walked {
        self.step(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(Probe { variant: Some(variant) })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(Probe { variant: Some(variant) })
    }
}

macro_rules! elements {
    ($($compound:ident::$method:ident),*) => {$(
        impl ser::$compound for Probe {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self, element: &T) -> Walked {
                self.step(EACH, element)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )*};
}

elements!(SerializeSeq::serialize_element, SerializeTuple::serialize_element);
elements!(SerializeTupleStruct::serialize_field, SerializeTupleVariant::serialize_field);

macro_rules! members {
    ($($compound:ident),*) => {$(
        impl ser::$compound for Probe {
            type Ok = ();
            type Error = Found;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Walked {
                self.step(name, value)
            }

            fn end(self) -> Walked {
                Ok(())
            }
        }
    )*};
}

members!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Probe {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Walked {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Walked {
        self.step(EACH, value)
    }

    fn end(self) -> Walked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use std::collections::BTreeMap;

    use super::*;

    #[derive(serde::Serialize)]
    enum Shape {
        Dot,
        Circle(f64),
        Line(f64, f64),
        Box { width: f64 },
    }

    #[derive(serde::Serialize)]
    struct Drawing {
        note: Option<f32>,
        shape: Shape,
        points: Vec<(f64, f64)>,
        weights: BTreeMap<String, f64>,
    }

    fn plain() -> Drawing {
        Drawing {
            note: None,
            shape: Shape::Dot,
            points: vec![(0.5, -0.0)],
            weights: BTreeMap::new(),
        }
    }

    fn path_in(drawing: &Drawing) -> Option<String> {
        let json = serde_json::to_value(drawing).unwrap();
        not_finite(drawing, &json).map(|(path, _)| path)
    }

    #[test]
    fn what_is_finite_or_missing_is_let_pass() {
        assert_eq!(path_in(&plain()), None);
        assert_eq!(path_in(&Drawing { note: Some(f32::MAX), ..plain() }), None);
    }

    #[test]
    fn a_number_that_is_not_finite_is_found_wherever_it_is() {
        let weights = BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), f64::NAN)]);
        for (drawing, path) in [
            (Drawing { note: Some(f32::NAN), ..plain() }, "note"),
            (Drawing { shape: Shape::Circle(f64::INFINITY), ..plain() }, "shape.Circle"),
            (Drawing { shape: Shape::Line(1.0, f64::NAN), ..plain() }, "shape.Line.*"),
            (Drawing { shape: Shape::Box { width: f64::NAN }, ..plain() }, "shape.Box.width"),
            (Drawing { points: vec![(1.0, f64::NEG_INFINITY)], ..plain() }, "points.*.*"),
            (Drawing { weights, ..plain() }, "weights.*"),
        ] {
            assert_eq!(path_in(&drawing).as_deref(), Some(path));
        }
    }
}
