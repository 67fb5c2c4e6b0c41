//! Maps Rust types to the types of fields.
//!
//! | Rust | field | compared with |
//! | --- | --- | --- |
//! | `String`, `Box<str>`, `Arc<str>`, `Cow<str>` | text | `&str`, `String` |
//! | `i8` … `i64`, `u8` … `u64`, `isize`, `usize` | integer | whole numbers of any type, ranges |
//! | `f32`, `f64` | float | numbers, ranges |
//! | `bool` | boolean | `bool` |
//! | [`Timestamp`] | timestamp | [`Timestamp`], `i64`, ranges |
//! | [`DateTime`] | datetime | [`DateTime`], texts, ranges |
//! | [`Id`] | id | [`Id`], texts, ranges |
//! | [`Uuid`] | uuid | [`Uuid`], texts |
//! | [`Point`] | point | – |
//! | an enum that derives `Choice` | enum | itself |
//! | `Option<F>` | as `F` | as `F` |
//! | `Vec<F>`, sets of `F`: `{tags.*}` | as `F`, one entry for each element | as `F` |
//! | maps from strings to `F` | map; `{steps.*}` as `F` | as `F` |

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::select::Integer;
use super::values::{DateTime, Id, Point, Timestamp, Uuid};
use crate::schema::{CollectionDeclaration, FieldType, PointOf};

/// The digits of an integer, unless declared otherwise: every signed 64-bit number fits. The upper
/// half of `u64` and `usize` does not, and is refused where it would become part of a key.
pub const DIGITS: u8 = 19;

/// A Rust type that a declared field can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the type of a field that keys can be made of",
    note = "whole numbers are `i8` to `i64`, `u8` to `u64`, `isize` and `usize`; an enum derives \
            `Choice`; the guide lists all types",
    note = "for another type say what it is in JSON: #[field(type = \"text\")]"
)]
pub trait Field {
    /// The type that queries compare the field with.
    type Segment;

    /// The type of the field in a schema.
    fn field_type() -> FieldType;
}

/// A Rust type whose elements share one type, which `{name.*}` stands for.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no elements that a `*` in a template could stand for"
)]
pub trait Each {
    /// The type of each element, or of each value of a map.
    type Element;
    /// Whether the elements have names that are data.
    const IS_MAP: bool = false;
}

/// The type that queries compare a field of type `F` with.
pub type Segment<F> = <F as Field>::Segment;

/// The type that queries compare an element of a field of type `F` with.
pub type ElementSegment<F> = Segment<<F as Each>::Element>;

/// Declares the elements of a field, and the field itself if it is a map.
pub fn declare_elements<F: Each<Element: Field>>(
    collection: &mut CollectionDeclaration,
    path: &str,
) {
    if let Some(map) = path.strip_suffix(".*") {
        declare_map::<F>(collection, map);
    }
    collection.fields.insert(path.to_owned(), F::Element::field_type().into());
}

/// Declares a field as a map if it is one.
pub fn declare_map<F: Each>(collection: &mut CollectionDeclaration, path: &str) {
    if F::IS_MAP {
        collection.fields.insert(path.to_owned(), FieldType::Map.into());
    }
}

macro_rules! fields {
    ($($rust:ty => $segment:ty, $field_type:expr;)*) => {$(
        impl Field for $rust {
            type Segment = $segment;

            fn field_type() -> FieldType {
                $field_type
            }
        }
    )*};
}

fields! {
    String => String, FieldType::Text;
    Box<str> => String, FieldType::Text;
    Arc<str> => String, FieldType::Text;
    Cow<'_, str> => String, FieldType::Text;
    i8 => Integer, FieldType::Integer { digits: DIGITS };
    i16 => Integer, FieldType::Integer { digits: DIGITS };
    i32 => Integer, FieldType::Integer { digits: DIGITS };
    i64 => Integer, FieldType::Integer { digits: DIGITS };
    isize => Integer, FieldType::Integer { digits: DIGITS };
    u8 => Integer, FieldType::Integer { digits: DIGITS };
    u16 => Integer, FieldType::Integer { digits: DIGITS };
    u32 => Integer, FieldType::Integer { digits: DIGITS };
    u64 => Integer, FieldType::Integer { digits: DIGITS };
    usize => Integer, FieldType::Integer { digits: DIGITS };
    f32 => f64, FieldType::Float;
    f64 => f64, FieldType::Float;
    bool => bool, FieldType::Boolean;
    Timestamp => Timestamp, FieldType::Timestamp;
    DateTime => DateTime, FieldType::Datetime;
    Id => Id, FieldType::Id;
    Uuid => Uuid, FieldType::Uuid { version: None };
    Point => Point, FieldType::Point {
        lat: "lat".to_owned(),
        lon: "lon".to_owned(),
        of: PointOf::Field,
    };
}

impl<F: Field> Field for Option<F> {
    type Segment = F::Segment;

    fn field_type() -> FieldType {
        F::field_type()
    }
}

impl<F: Field> Field for Box<F> {
    type Segment = F::Segment;

    fn field_type() -> FieldType {
        F::field_type()
    }
}

impl<F, S> Field for HashMap<String, F, S> {
    type Segment = String;

    fn field_type() -> FieldType {
        FieldType::Map
    }
}

impl<F> Field for BTreeMap<String, F> {
    type Segment = String;

    fn field_type() -> FieldType {
        FieldType::Map
    }
}

impl<F> Each for Vec<F> {
    type Element = F;
}

impl<F> Each for Box<[F]> {
    type Element = F;
}

impl<F, const N: usize> Each for [F; N] {
    type Element = F;
}

impl<F> Each for BTreeSet<F> {
    type Element = F;
}

impl<F, S> Each for HashSet<F, S> {
    type Element = F;
}

impl<F, S> Each for HashMap<String, F, S> {
    type Element = F;
    const IS_MAP: bool = true;
}

impl<F> Each for BTreeMap<String, F> {
    type Element = F;
    const IS_MAP: bool = true;
}

impl<F: Each> Each for Option<F> {
    type Element = F::Element;
    const IS_MAP: bool = F::IS_MAP;
}
