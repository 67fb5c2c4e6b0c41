//! The schema as the reference sees it: lists of fields. Nothing of it comes from the library's
//! own templates and codecs, so that the two can disagree.

use std::cmp::Ordering;

use keyloom::{IndexDeclaration, Schema, TestDeclaration};
use serde_json::Value;

use super::counters::TALLY;
use super::shared::SHARED;

const SCHEMA: &str = include_str!("schema.toml");
const SCHEMA_LATER: &str = include_str!("schema_later.toml");

/// The schema that a store starts with.
pub fn schema() -> Schema {
    Schema::from_toml(SCHEMA).unwrap()
}

/// The schema of a newer program.
pub fn schema_later() -> Schema {
    Schema::from_toml(&format!("{SCHEMA}\n{SCHEMA_LATER}")).unwrap()
}

/// The name that every index of the newer schema has.
pub const LATER: &str = "later";

/// One collection.
pub struct Shape {
    pub name: String,
    pub key: Vec<Segment>,
    pub indexes: Vec<IndexShape>,
}

/// One field of a key.
#[derive(Clone, Debug)]
pub struct Segment {
    pub path: String,
    pub desc: bool,
    /// Plain text has no order that a caller may rely on.
    pub ordered: bool,
    pub text: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Value,
    Unique,
    Geo,
}

/// One index.
pub struct IndexShape {
    pub name: String,
    pub kind: Kind,
    pub segments: Vec<Segment>,
    pub claims: bool,
    declaration: IndexDeclaration,
}

/// Every collection of the newer schema whose records have one owner. Indexes that only it has are named [`LATER`].
pub fn shapes() -> Vec<Shape> {
    let declaration = schema_later().declaration();
    let own =
        declaration.collections.into_iter().filter(|(name, _)| name != SHARED && name != TALLY);
    let shapes = own.map(|(name, collection)| {
        let is_text = |path: &str| {
            // The names of a map are text unless declared otherwise.
            collection
                .fields
                .get(path)
                .is_none_or(|field| matches!(field.field_type, keyloom::FieldType::Text))
        };
        let sections = [
            (Kind::Value, &collection.index),
            (Kind::Unique, &collection.unique),
            (Kind::Geo, &collection.geo),
        ];
        let indexes = sections.into_iter().flat_map(|(kind, declared)| {
            declared.iter().map(move |(name, declaration)| IndexShape {
                name: name.clone(),
                kind,
                segments: segments(&declaration.key, is_text),
                claims: declaration.claims == Some(true) || kind == Kind::Unique,
                declaration: declaration.clone(),
            })
        });
        let indexes = indexes.collect();
        Shape { key: segments(&collection.key, is_text), indexes, name }
    });
    shapes.collect()
}

/// The fields that a template names, by looking for braces.
fn segments(template: &str, is_text: impl Fn(&str) -> bool) -> Vec<Segment> {
    let placeholders = template.split('{').skip(1).map(|rest| rest.split('}').next().unwrap());
    placeholders
        .map(|placeholder| {
            let words: Vec<&str> = placeholder.split(' ').collect();
            let has = |word| words[1..].contains(&word);
            let text = is_text(words[0]);
            let ordered = !text || has("sorted") || has("raw");
            Segment { path: words[0].to_owned(), desc: has("desc"), ordered, text }
        })
        .collect()
}

impl Shape {
    pub fn index(&self, name: &str) -> &IndexShape {
        self.indexes.iter().find(|index| index.name == name).unwrap()
    }

    /// Whether the newer schema adds an index.
    pub fn has_later(&self) -> bool {
        self.indexes.iter().any(|index| index.name == LATER)
    }

    /// The values that name a record.
    pub fn key_values(&self, record: &Value) -> Vec<Value> {
        self.key.iter().map(|segment| record[&segment.path].clone()).collect()
    }

    /// Every exclusive key of a record: the index's name and the values.
    pub fn claims(&self, record: &Value) -> Vec<(String, String)> {
        let exclusive = self.indexes.iter().filter(|index| index.claims);
        exclusive
            .flat_map(|index| {
                let entries = index.entries(record).into_iter();
                entries.map(|values| (index.name.clone(), Value::Array(values).to_string()))
            })
            .collect()
    }
}

impl IndexShape {
    /// The entries of a record: one value for each segment.
    pub fn entries(&self, record: &Value) -> Vec<Vec<Value>> {
        if !self.declaration.condition.iter().all(|(path, test)| meets(field(record, path), test)) {
            return Vec::new();
        }
        let starred = self.segments.iter().find_map(|segment| segment.path.split_once(".*"));
        let elements: Vec<(Value, Value)> = match starred.map(|(list, _)| &record[list]) {
            None => vec![(Value::Null, Value::Null)],
            Some(Value::Array(items)) => {
                items.iter().map(|item| (Value::Null, item.clone())).collect()
            }
            Some(Value::Object(members)) => {
                members.iter().map(|(name, item)| (name.as_str().into(), item.clone())).collect()
            }
            Some(_) => Vec::new(),
        };
        let mut all: Vec<Vec<Value>> = Vec::new();
        for (name, item) in elements {
            let value = |segment: &Segment| match segment.path.split_once(".*") {
                None => field(record, &segment.path).cloned(),
                Some((_, "key")) => Some(name.clone()),
                Some((_, "")) => Some(item.clone()).filter(|item| !item.is_null()),
                Some((_, rest)) => field(&item, &rest[1..]).cloned(),
            };
            let entry: Option<Vec<Value>> = self.segments.iter().map(value).collect();
            all.extend(entry.filter(|entry| !all.contains(entry)));
        }
        all
    }

    pub fn is_partial(&self) -> bool {
        !self.declaration.condition.is_empty()
    }
}

/// A member of a record, unless it is missing or null.
fn field<'r>(record: &'r Value, name: &str) -> Option<&'r Value> {
    record.get(name).filter(|value| !value.is_null())
}

fn meets(value: Option<&Value>, test: &TestDeclaration) -> bool {
    match (value, test) {
        (Some(value), TestDeclaration::Equals(wanted)) => compare(value, wanted).is_eq(),
        (Some(value), TestDeclaration::OneOf(wanted)) => {
            wanted.iter().any(|wanted| compare(value, wanted).is_eq())
        }
        (_, TestDeclaration::Compare(comparison)) => {
            comparison.present.is_none_or(|present| present == value.is_some())
                && comparison
                    .gte
                    .as_ref()
                    .is_none_or(|bound| value.is_some_and(|value| compare(value, bound).is_ge()))
        }
        (None, _) => false,
    }
}

/// The order of two values of one type.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().unwrap().partial_cmp(&b.as_f64().unwrap()).unwrap(),
        },
        _ => panic!("{a} and {b} are of different types"),
    }
}
