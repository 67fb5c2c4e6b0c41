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
            let equal = equalities(before);
            if equal.is_empty() { "near".to_owned() } else { format!("near where {equal}") }
        }
        IndexKind::Value => of_values(collection, index),
    }
}

fn of_values(collection: &Collection, index: &Index) -> String {
    let segments: Vec<&Segment> = index.key.segments().collect();
    if let Some(place) = segments.iter().position(|segment| is_quantity(segment)) {
        let (ordered, equal) = (segments[place], equalities(segments[..place].iter().copied()));
        let order = if ordered.desc { " descending" } else { "" };
        let order = format!("order by {}{order}", ordered.path);
        return match equal.is_empty() {
            true => format!("query {order}"),
            false => format!("query where {equal} {order}"),
        };
    }
    // The fields of the record's key at the end only tell entries apart.
    let is_of_key = |segment: &&&Segment| collection.key_paths.contains(&segment.path);
    let tail = segments.iter().rev().take_while(is_of_key).count();
    let asked = (segments.len() - tail).max(1).min(segments.len());
    match asked {
        0 => "query".to_owned(),
        asked => format!("query where {}", equalities(segments[..asked].iter().copied())),
    }
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

fn equalities<'s>(segments: impl Iterator<Item = &'s Segment>) -> String {
    let equal: Vec<String> = segments.map(|segment| format!("{} = …", segment.path)).collect();
    equal.join(" and ")
}
