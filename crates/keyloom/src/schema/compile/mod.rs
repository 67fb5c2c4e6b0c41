//! Compiles a declaration into a checked schema.
//!
//! Checking continues after a problem. Later checks skip whatever has a problem, so that one
//! mistake gives one message and not a cascade.

mod access;
mod aggregates;
mod clashes;
mod conditions;
mod counters;
mod expiry;
mod fields;
mod history;
mod holds;
mod idempotency;
mod indexes;
mod templates;

pub(crate) use idempotency::KEEP_MS_DEFAULT;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::BodySchema;
use super::declaration::{CollectionDeclaration, LogDeclaration, SchemaDeclaration};
use super::model::{Collection, FieldKind, Schema};
use super::problem::{Problems, Trail};
use super::target::recipe_of;
use crate::engine::Area;
use crate::key::{Path, Template};

/// The longest name of a collection or an index, in characters.
const NAME_CHARACTERS_MAX: usize = 64;

/// A hundred years.
const DAYS_MAX: usize = 36_500;

/// Reserved for descriptions of the store itself.
const COLLECTIONS_RESERVED: [&str; 1] = ["keyloom"];

/// In `holds` and in queries these words mean the record itself, so an index of that name would be
/// ambiguous.
const INDEXES_RESERVED: [&str; 2] = ["key", "record"];

/// Compiles as much as possible. The schema is complete only if `problems` is empty afterwards.
pub(crate) fn compile(declaration: &SchemaDeclaration, problems: &mut Problems) -> Schema {
    let mut collections = BTreeMap::new();
    let mut inventory = clashes::Inventory::default();
    for (name, declaration) in &declaration.collections {
        let trail = vec!["collection".to_owned(), name.clone()];
        check_name("a collection", name, &COLLECTIONS_RESERVED, &trail, problems);
        if let Some(collection) = collection(name, declaration, &trail, &mut inventory, problems) {
            collections.insert(name.clone(), collection);
        }
    }
    inventory.check(problems);
    let collections = collections
        .into_iter()
        .map(|(name, collection)| (name, Arc::new(prepared(collection, &inventory))))
        .collect();
    if let Some(log) = &declaration.log {
        check_log(log, problems);
    }
    let idempotency_keep_ms = idempotency::compile(declaration.idempotency.as_ref(), problems);
    let idempotency = declaration.idempotency.clone();
    Schema { collections, log: declaration.log, idempotency, idempotency_keep_ms }
}

fn check_log(log: &LogDeclaration, problems: &mut Problems) {
    let trail = |name: &str| vec!["log".to_owned(), name.to_owned()];
    if log.days.is_some_and(|days| !(1..=DAYS_MAX).contains(&days)) {
        problems.add(trail("days"), "must be 1 to 36500; leave it out to keep changes for ever");
    }
    if log.entries == Some(0) {
        problems.add(trail("entries"), "must be at least 1; leave it out to keep all changes");
    }
}

/// Computes, once for all queries, what reads need to know about the collection's templates.
fn prepared(mut collection: Collection, inventory: &clashes::Inventory) -> Collection {
    let indexes = std::mem::take(&mut collection.indexes);
    for (name, index) in indexes {
        let mut index = Arc::unwrap_or_clone(index);
        index.recipe = recipe_of(&collection, &index);
        index.interleaved = inventory.is_interleaved(&index.area, &index.key);
        collection.indexes.insert(name, Arc::new(index));
    }
    collection
}

/// The collection, if its key is valid. Its templates join the inventory in any case.
fn collection(
    name: &str,
    declaration: &CollectionDeclaration,
    trail: &Trail,
    inventory: &mut clashes::Inventory,
    problems: &mut Problems,
) -> Option<Collection> {
    let area = area(&declaration.area, &under(trail, "area"), problems);
    let body = body(declaration, trail, problems);
    let history = history::compile(declaration.history, &under(trail, "history"), problems);
    if fields_are_unreadable(declaration, trail, problems) {
        return None;
    }
    let mut fields = fields::compile(&declaration.fields, &under(trail, "fields"), problems);
    let key = record_key(declaration, trail, &fields, problems);
    if let Some(key) = &key {
        fields.require(key.segments().map(|segment| &segment.path));
    }
    let (access, owner) = access::compile(declaration, trail, key.as_ref(), &fields, problems);
    let surroundings =
        indexes::Surroundings { fields: &fields, record_key: key.as_ref(), area: area.as_ref() };
    let mut indexes = indexes::compile(declaration, trail, &surroundings, problems);
    let counters = counters::compile(
        &declaration.counters,
        &under(trail, "counters"),
        &fields,
        &indexes,
        problems,
    );
    let aggregates = aggregates::compile(name, declaration, trail, &fields, &counters, problems);
    let expiry =
        expiry::compile(name, declaration, trail, &fields, key.as_ref(), &mut indexes, problems);
    inventory.add_all(area.as_ref(), trail, key.as_ref(), &indexes);
    let key = key?;
    Some(Collection {
        name: name.to_owned(),
        area: area?,
        key_paths: paths_of(&key),
        access,
        owner,
        key,
        has_record_points: fields
            .compiled
            .values()
            .any(|field| matches!(field.kind, FieldKind::RecordPoint { .. })),
        fields: fields.compiled,
        indexes: indexes.into_iter().map(|found| (found.index.name.clone(), found.index)).collect(),
        aggregates,
        counters,
        expiry,
        body,
        history,
        declaration: Arc::new(declaration.clone()),
    })
}

fn area(name: &str, trail: &Trail, problems: &mut Problems) -> Option<Area> {
    if problems.touch(trail) {
        return None;
    }
    match Area::new(name) {
        Ok(area) => Some(area),
        Err(_) if name == Area::own().name() => {
            problems.add(trail.clone(), "the area `~` is Keyloom's own");
            None
        }
        Err(error) => {
            problems.add(trail.clone(), error.message());
            None
        }
    }
}

fn body(
    declaration: &CollectionDeclaration,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<BodySchema> {
    let schema = declaration.body.as_ref()?;
    match BodySchema::new(schema) {
        Ok(body) => Some(body),
        Err(reason) => {
            problems.add(under(trail, "body"), reason);
            None
        }
    }
}

/// Whether the fields could not be read, so that every template would seem full of undeclared
/// names. That is so if the table has the wrong type, or if its name may be misspelt.
fn fields_are_unreadable(
    declaration: &CollectionDeclaration,
    trail: &Trail,
    problems: &Problems,
) -> bool {
    const OTHERS: [&str; 13] = [
        "key",
        "area",
        "access",
        "owner",
        "expires_at",
        "index",
        "unique",
        "geo",
        "count",
        "sum",
        "counters",
        "body",
        "history",
    ];
    let may_hide_fields = |name: &str| !OTHERS.contains(&name);
    declaration.fields.is_empty() && problems.names_under(trail).any(may_hide_fields)
}

fn record_key(
    declaration: &CollectionDeclaration,
    trail: &Trail,
    fields: &fields::Fields,
    problems: &mut Problems,
) -> Option<Template> {
    let key_trail = under(trail, "key");
    let is_missing = declaration.key.is_empty() && problems.touch_exactly(trail);
    if is_missing || problems.touch(&key_trail) {
        return None;
    }
    let key = templates::compile(&declaration.key, &key_trail, fields, problems)?;
    let mut is_sound = true;
    for segment in key.segments() {
        let path = &segment.path;
        if path.star().is_some() {
            problems.add(
                key_trail.clone(),
                format!("`{{{path}}}` has many values, but a record has one key"),
            );
            is_sound = false;
        }
        if templates::is_geohash(segment) {
            problems.add(
                key_trail.clone(),
                format!(
                    "a geohash of `{path}` does not tell the place apart from its neighbours; \
                     use it in a geo index"
                ),
            );
            is_sound = false;
        }
    }
    is_sound.then_some(key)
}

fn paths_of(template: &Template) -> Vec<Path> {
    template.segments().map(|segment| segment.path.clone()).collect()
}

/// The trail of a member.
fn under(trail: &Trail, name: &str) -> Trail {
    let mut longer = trail.clone();
    longer.push(name.to_owned());
    longer
}

/// Checks a name, since names appear in messages, in cursors, in web addresses and as Rust methods.
fn check_name(what: &str, name: &str, reserved: &[&str], trail: &Trail, problems: &mut Problems) {
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let goes_on_well = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if !begins_well || !goes_on_well || name.len() > NAME_CHARACTERS_MAX {
        problems.add_to_name(
            trail.clone(),
            format!("the name of {what} is a letter, then up to 63 letters, digits, '_' or '-'"),
        );
    } else if reserved.contains(&name) {
        problems.add_to_name(trail.clone(), format!("the name `{name}` is reserved"));
    }
}
