//! Which calls read a key, in a phrase.

use crate::key::{Codec, Segment};
use crate::schema::{Collection, Index, IndexKind};

/// What reads records at their own keys.
pub(super) fn of_records(collection: &Collection) -> String {
    let fields: Vec<String> =
        collection.key_paths.iter().map(|path| format!("{path} = …")).collect();
    match fields.split_last() {
        Some((_, [])) | None => "get".to_owned(),
        Some((_, first)) => format!("get; query where {}", first.join(" and ")),
    }
}

/// What reads the entries of an index.
pub(super) fn of_entries(collection: &Collection, index: &Index) -> String {
    if index.is_own() {
        return "sweep".to_owned();
    }
    match index.kind {
        IndexKind::Unique => format!("get_by {}", index.name),
        IndexKind::Geo => {
            let is_place = |segment: &Segment| matches!(segment.codec, Codec::Geohash { .. });
            let before = index.key.segments().take_while(|segment| !is_place(segment));
            asking("near", index, before)
        }
        IndexKind::Value => of_values(collection, index),
    }
}

fn of_values(collection: &Collection, index: &Index) -> String {
    let segments: Vec<&Segment> = index.key.segments().collect();
    if let Some(place) = segments.iter().position(|segment| is_quantity(segment)) {
        let ordered = segments[place];
        let order = if ordered.desc { " descending" } else { "" };
        let query = asking("query", index, segments[..place].iter().copied());
        return format!("{query} order by {}{order}", ordered.path);
    }
    // The fields of the record's key at the end only tell entries apart.
    let is_of_key = |segment: &&&Segment| collection.key_paths.contains(&segment.path);
    let tail = segments.iter().rev().take_while(is_of_key).count();
    let asked = (segments.len() - tail).max(1).min(segments.len());
    asking("query", index, segments[..asked].iter().copied())
}

/// Whether a segment is of a type whose order people ask for.
fn is_quantity(segment: &Segment) -> bool {
    matches!(
        segment.codec,
        Codec::Timestamp
            | Codec::DateTime
            | Codec::Integer { .. }
            | Codec::Float
            | Codec::SortedText
    )
}

/// A call with what it fixes, and with what the index asks of its records.
fn asking<'s>(call: &str, index: &Index, fixed: impl Iterator<Item = &'s Segment>) -> String {
    let fixed = fixed.map(|segment| format!("{} = …", segment.path));
    let condition = index.condition.as_ref().map(ToString::to_string);
    let asked: Vec<String> = fixed.chain(condition).collect();
    match asked.is_empty() {
        true => call.to_owned(),
        false => format!("{call} where {}", asked.join(" and ")),
    }
}
