//! Compiles and checks the indexes of a collection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fields::Fields;
use super::templates::{is_geohash, told_by};
use super::{INDEXES_RESERVED, check_name, conditions, holds, templates, under};
use crate::engine::Area;
use crate::key::{Path, Segment, Template};
use crate::schema::declaration::{CollectionDeclaration, IndexDeclaration};
use crate::schema::model::{Index, IndexKind, MAX_DEFAULT};
use crate::schema::problem::{Problems, ShowTrail, Trail};

/// A compiled index and the place of its declaration.
pub(super) struct Found {
    pub(super) trail: Trail,
    pub(super) index: Arc<Index>,
}

/// The parts that all indexes of a collection share. A part with a problem of its own is `None`,
/// and checks that depend on it are skipped.
pub(super) struct Surroundings<'a> {
    pub(super) fields: &'a Fields,
    pub(super) record_key: Option<&'a Template>,
    pub(super) area: Option<&'a Area>,
}

/// Compiles the indexes of all kinds.
pub(super) fn compile(
    declaration: &CollectionDeclaration,
    trail: &Trail,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Vec<Found> {
    let sections = [
        ("index", IndexKind::Value, &declaration.index),
        ("unique", IndexKind::Unique, &declaration.unique),
        ("geo", IndexKind::Geo, &declaration.geo),
    ];
    let mut first_of: BTreeMap<&str, Trail> = BTreeMap::new();
    let mut found = Vec::new();
    for (section, kind, declarations) in sections {
        for (name, declaration) in declarations {
            let trail = under(&under(trail, section), name);
            check_name("an index", name, &INDEXES_RESERVED, &trail, problems);
            if let Some(first) = first_of.get(name.as_str()) {
                let first = ShowTrail(first);
                problems.add_to_name(trail.clone(), format!("has the same name as {first}"));
            } else {
                first_of.insert(name, trail.clone());
            }
            if let Some(index) = index(name, kind, declaration, &trail, surroundings, problems) {
                found.push(Found { trail, index: Arc::new(index) });
            }
        }
    }
    found
}

/// The index, if further checks can use it.
pub(super) fn index(
    name: &str,
    kind: IndexKind,
    declaration: &IndexDeclaration,
    trail: &Trail,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Index> {
    let fields = surroundings.fields;
    let condition =
        conditions::compile(&declaration.condition, &under(trail, "where"), fields, problems);
    let area = match &declaration.area {
        Some(name) => super::area(name, &under(trail, "area"), problems),
        None => surroundings.area.cloned(),
    };
    let key_trail = under(trail, "key");
    let key = key(declaration, trail, fields, problems);
    if let Some(key) = &key {
        check_geohash(kind, key, &key_trail, problems);
    }
    let star = key.as_ref().and_then(|key| star(key, &key_trail, problems));
    let is_walk = key.as_ref().map(|_| star.is_some());
    let max = max(declaration.max, is_walk, &under(trail, "max"), problems);
    let holds_trail = under(trail, "holds");
    let holds =
        surroundings.record_key.filter(|_| !problems.touch(&holds_trail)).and_then(|record_key| {
            let declared = declaration.holds.as_deref();
            holds::compile(declared, record_key, &holds_trail, fields, problems)
        });
    let key = key?;
    let record_key = surroundings.record_key?;
    check_reach(kind, declaration, &key, record_key, &key_trail, problems);
    let holds = holds?;
    let untold = holds::untold(&holds, &key, record_key);
    // For a plain index, `check_reach` has already reported a missing field.
    if !untold.is_empty() && may_lack_key(kind, declaration) {
        let names = list(&untold);
        problems.add(
            holds_trail,
            format!(
                "an entry's key and value together must tell its record, but neither has {names}; \
                 hold {names} too, or use holds = \"key\""
            ),
        );
    }
    Some(Index {
        name: name.to_owned(),
        kind,
        area: area?,
        key,
        holds,
        condition,
        star,
        max,
        claims: may_lack_key(kind, declaration),
        sparse: declaration.sparse.unwrap_or(true),
        recipe: None,
        interleaved: true,
    })
}

/// The template of the entries, if it is valid.
fn key(
    declaration: &IndexDeclaration,
    trail: &Trail,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<Template> {
    let key_trail = under(trail, "key");
    let is_missing = declaration.key.is_empty() && problems.touch_exactly(trail);
    if is_missing || problems.touch(&key_trail) {
        return None;
    }
    templates::compile(&declaration.key, &key_trail, fields, problems)
}

fn check_geohash(kind: IndexKind, key: &Template, trail: &Trail, problems: &mut Problems) {
    let places: Vec<&Segment> = key.segments().filter(|segment| is_geohash(segment)).collect();
    if let Some(place) = places.iter().find(|segment| segment.path.star().is_some()) {
        problems.add(
            trail.clone(),
            format!("a record has one place in a geo index; `{}` has a `*`", place.path),
        );
    }
    match (kind, places.len()) {
        (IndexKind::Geo, 1) | (IndexKind::Value | IndexKind::Unique, 0) => {}
        (IndexKind::Geo, 0) => problems.add(
            trail.clone(),
            "a geo index needs a geohash of a point, such as `{position geohash 6}`",
        ),
        (IndexKind::Geo, _) => problems.add(trail.clone(), "a geo index has one geohash only"),
        (IndexKind::Unique, _) => problems.add(
            trail.clone(),
            "a geohash is shared by all places of a cell, so it cannot be unique; \
             use a geo index",
        ),
        (IndexKind::Value, _) => problems.add(
            trail.clone(),
            "a geohash serves nearby searches; declare this under `geo` instead of `index`",
        ),
    }
}

/// The array or map that the template walks over. There can be only one, since the entries of two
/// would multiply.
fn star(key: &Template, trail: &Trail, problems: &mut Problems) -> Option<Path> {
    let stars: BTreeSet<Path> = key.segments().filter_map(|segment| segment.path.star()).collect();
    if stars.len() > 1 {
        let names = list(&stars.iter().collect::<Vec<_>>());
        problems.add(
            trail.clone(),
            format!("an index walks over one array or map; this one walks over {names}"),
        );
    }
    stars.into_iter().next()
}

/// The most entries of one record. `is_walk` is unknown if the index's key has a problem.
fn max(
    declared: Option<usize>,
    is_walk: Option<bool>,
    trail: &Trail,
    problems: &mut Problems,
) -> usize {
    match (declared, is_walk) {
        (Some(_), Some(false)) => {
            problems.add(
                trail.clone(),
                "only an index that walks over an array or a map (`*`) has a `max`",
            );
            1
        }
        (Some(0), _) => {
            problems.add(trail.clone(), "must be at least 1");
            1
        }
        (Some(max), _) => max,
        (None, Some(true)) => MAX_DEFAULT,
        (None, _) => 1,
    }
}

/// Whether entries of two records may share a key, because an entry is put only if its key is
/// absent.
fn may_lack_key(kind: IndexKind, declaration: &IndexDeclaration) -> bool {
    kind == IndexKind::Unique || declaration.claims == Some(true)
}

/// Two records must never write the same entry unless one of them is meant to be refused.
fn check_reach(
    kind: IndexKind,
    declaration: &IndexDeclaration,
    key: &Template,
    record_key: &Template,
    trail: &Trail,
    problems: &mut Problems,
) {
    let told = told_by(key);
    let missing: Vec<&Path> = record_key
        .segments()
        .map(|segment| &segment.path)
        .filter(|path| !told.contains(path))
        .collect();
    let names = list(&missing);
    if !missing.is_empty() && !may_lack_key(kind, declaration) {
        problems.add(
            trail.clone(),
            format!(
                "lacks {names} of the record's key, so two records could overwrite each other's \
                 entry; add what is missing, make the index unique, or say claims = true"
            ),
        );
    }
    if missing.is_empty() && kind == IndexKind::Unique {
        problems.add(
            trail.clone(),
            "contains the record's whole key, so it forbids nothing; take a field of the key \
             out, or declare this under `index`",
        );
    }
}

fn list(paths: &[&Path]) -> String {
    let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    names.join(", ")
}
