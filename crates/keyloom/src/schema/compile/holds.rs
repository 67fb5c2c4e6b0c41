//! Compiles what the entries of an index hold, and checks that they lead back to their record.

use std::collections::BTreeSet;

use super::fields::Fields;
use super::templates::told_by;
use crate::key::{Path, Template};
use crate::schema::model::{Field, FieldKind, Holds};
use crate::schema::problem::{Problems, Trail};

/// Reads `holds`. Its default is the only field of the record's key, or else the whole key as text.
pub(super) fn compile(
    declared: Option<&str>,
    record_key: &Template,
    trail: &Trail,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<Holds> {
    let Some(text) = declared else { return Some(default(record_key)) };
    match parse(text.trim()) {
        Ok(holds) => check_paths(&holds, trail, fields, problems).then_some(holds),
        Err(reason) => {
            problems.add(trail.clone(), reason);
            None
        }
    }
}

fn default(record_key: &Template) -> Holds {
    let mut segments = record_key.segments();
    match (segments.next(), segments.next()) {
        (Some(only), None) => Holds::Field(only.path.clone()),
        _ => Holds::Key,
    }
}

fn parse(text: &str) -> Result<Holds, String> {
    match text {
        "key" => return Ok(Holds::Key),
        "record" => return Ok(Holds::Record),
        _ => {}
    }
    let Some(inside) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return Path::parse(text).map(Holds::Field);
    };
    let paths: Vec<Path> =
        inside.split(',').map(|path| Path::parse(path.trim())).collect::<Result<_, _>>()?;
    let distinct: BTreeSet<&Path> = paths.iter().collect();
    if distinct.len() < paths.len() {
        return Err(format!("`{text}` names a field twice"));
    }
    Ok(Holds::Object(paths))
}

fn check_paths(holds: &Holds, trail: &Trail, fields: &Fields, problems: &mut Problems) -> bool {
    let mut is_sound = true;
    for path in held_fields(holds) {
        let message = if path.star().is_some() {
            format!("`{path}` has many values; an entry holds fields without `*`")
        } else if let Some(Field { kind: FieldKind::RecordPoint { lat, lon }, .. }) =
            fields.compiled.get(path)
        {
            format!("`{path}` is made of members of the record; name `{lat}` and `{lon}`")
        } else {
            continue;
        };
        problems.add(trail.clone(), message);
        is_sound = false;
    }
    is_sound
}

/// The fields that an entry's value gives back by their names.
fn held_fields(holds: &Holds) -> &[Path] {
    match holds {
        Holds::Field(path) => std::slice::from_ref(path),
        Holds::Object(paths) => paths,
        Holds::Key | Holds::Record => &[],
    }
}

/// The fields of the record's key that neither the entry's key nor its value gives back.
pub(super) fn untold<'r>(
    holds: &Holds,
    index_key: &Template,
    record_key: &'r Template,
) -> Vec<&'r Path> {
    if matches!(holds, Holds::Key | Holds::Record) {
        return Vec::new();
    }
    let told = told_by(index_key);
    let held = held_fields(holds);
    record_key
        .segments()
        .map(|segment| &segment.path)
        .filter(|path| !told.contains(path) && !held.contains(path))
        .collect()
}
