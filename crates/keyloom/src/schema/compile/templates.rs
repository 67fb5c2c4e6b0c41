//! Compiles key templates with the types of their fields.

use std::collections::BTreeSet;

use super::fields::Fields;
use crate::key::{Codec, Path, Pattern, Segment, Template};
use crate::schema::model::{Field, FieldKind};
use crate::schema::problem::{Problems, Trail};

/// Adds the types to a template. `None` if the template has a problem, or names a field that has
/// one.
pub(super) fn compile(
    source: &str,
    trail: &Trail,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<Template> {
    let pattern = match Pattern::parse(source) {
        Ok(pattern) => pattern,
        Err(reason) => {
            problems.add(trail.clone(), reason);
            return None;
        }
    };
    if !check_paths(&pattern, trail, fields, problems) {
        return None;
    }
    match Template::new(&pattern, |path| fields.compiled.get(path).and_then(Field::key_kind)) {
        Ok(template) => Some(template),
        Err(reasons) => {
            for reason in reasons {
                problems.add(trail.clone(), reason);
            }
            None
        }
    }
}

/// Whether every placeholder names a field that can be part of a key.
fn check_paths(pattern: &Pattern, trail: &Trail, fields: &Fields, problems: &mut Problems) -> bool {
    let mut is_sound = true;
    for path in pattern.paths() {
        if let Some(reason) = unusable(path, fields) {
            problems.add(trail.clone(), reason);
            is_sound = false;
        }
        is_sound &= !fields.broken.contains(path);
    }
    is_sound
}

fn unusable(path: &Path, fields: &Fields) -> Option<String> {
    match fields.compiled.get(path) {
        Some(Field { kind: FieldKind::Map, .. }) => {
            Some(format!("`{{{path}}}` is a map; `{{{path}.*key}}` stands for each of its names"))
        }
        Some(_) => None,
        None if fields.broken.contains(path) => None,
        None => {
            let hint = match fields.hint(path) {
                hint if hint.is_empty() => "; declare its type under `fields`".to_owned(),
                hint => hint,
            };
            Some(format!("`{{{path}}}` is not a declared field{hint}"))
        }
    }
}

/// Whether the segment stands for all places in a cell, so that its value cannot be decoded.
pub(super) fn is_geohash(segment: &Segment) -> bool {
    matches!(segment.codec, Codec::Geohash { .. })
}

/// The fields whose values a key of this template gives back. A geohash does not give a point back,
/// but no record's key has a point.
pub(super) fn told_by(template: &Template) -> BTreeSet<&Path> {
    template.segments().map(|segment| &segment.path).collect()
}
