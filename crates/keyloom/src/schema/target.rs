//! Finds the record of an index entry: the entry's key and value together determine its key.

use bytes::Bytes;
use serde_json::Value;

use super::model::{Collection, Holds, Index};
use crate::engine::{Part, Recipe};
use crate::key::{Codec, Segment, TemplatePart, recipe};

/// The key of the record that an entry leads to; `None` if the entry does not fit its index.
pub(crate) fn record_key_of(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    value: &[u8],
) -> Option<Bytes> {
    let held: Value = serde_json::from_slice(value).ok()?;
    if index.holds == Holds::Key {
        let key = held.as_str()?;
        return collection
            .key
            .decode(key.as_bytes())
            .map(|_| Bytes::copy_from_slice(key.as_bytes()));
    }
    let in_key = index.key.decode(key)?;
    let values = collection.key.segments().map(|wanted| {
        let in_key = index
            .key
            .segments()
            .zip(&in_key)
            .find(|(segment, _)| segment.path == wanted.path)
            .map(|(_, value)| value);
        in_key.or_else(|| held_value(&index.holds, &held, wanted))
    });
    collection.key.encode(&values.collect::<Option<Vec<_>>>()?).ok()
}

fn held_value<'v>(holds: &Holds, held: &'v Value, wanted: &Segment) -> Option<&'v Value> {
    match holds {
        Holds::Field(path) => (*path == wanted.path).then_some(held),
        Holds::Object(_) => held.get(wanted.path.to_string()),
        Holds::Record => wanted.path.get(held),
        Holds::Key => None,
    }
}

/// As [`record_key_of`], with the index's recipe if it has one. That is faster, but does not prove
/// that the entry belongs to this index. The caller must look up the record in any case.
pub(crate) fn followed_key_of(
    collection: &Collection,
    index: &Index,
    key: &[u8],
    value: &[u8],
) -> Option<Bytes> {
    match &index.recipe {
        Some(recipe) => Some(recipe.target(key, value)?.key),
        None => record_key_of(collection, index, key, value),
    }
}

/// How an engine itself gets from an entry to its record; `None` if the bytes alone do not
/// determine the record's key, and the entry must be decoded.
pub(crate) fn recipe_of(collection: &Collection, index: &Index) -> Option<Recipe> {
    recipe(&index.key, &collection.key, collection.area.clone())
        .or_else(|| recipe_from_value(collection, &index.holds))
}

fn recipe_from_value(collection: &Collection, holds: &Holds) -> Option<Recipe> {
    let parts = match holds {
        Holds::Key => vec![Part::Member { path: Vec::new(), escape: None }],
        Holds::Record => return None,
        Holds::Field(_) | Holds::Object(_) => collection
            .key
            .parts
            .iter()
            .map(|part| match part {
                TemplatePart::Literal(text) => Some(Part::Literal(text.clone().into())),
                TemplatePart::Segment(segment) => member(holds, segment),
            })
            .collect::<Option<Vec<_>>>()?,
    };
    Some(Recipe { area: collection.area.clone(), cuts: Vec::new(), parts })
}

fn member(holds: &Holds, segment: &Segment) -> Option<Part> {
    let path = match holds {
        Holds::Field(path) if *path == segment.path => Vec::new(),
        Holds::Object(paths) if paths.contains(&segment.path) => vec![segment.path.to_string()],
        _ => return None,
    };
    let escape = match (&segment.codec, segment.desc) {
        (Codec::Text, _) => Some(segment.separator),
        (Codec::Uuid { .. } | Codec::Id | Codec::Code(_) | Codec::DateTime | Codec::Raw, false) => {
            None
        }
        _ => return None,
    };
    Some(Part::Member { path, escape })
}
