//! The counters of a record: stored beside it, shown in it, and never stored in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::document::Document;
use crate::engine::{Integers, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::key::shortened;
use crate::schema::{Collection, Counters};

/// All counters that a record shows: those with a value, and zero for the others that every record
/// has.
pub(crate) fn shown_counters(counters: &Counters, counted: Option<&Integers>) -> Integers {
    let mut shown: Integers = counters.exact_names().map(|name| (name.to_owned(), 0)).collect();
    let declared = counted.into_iter().flatten().filter(|(name, _)| counters.has(name));
    shown.extend(declared.map(|(name, value)| (name.clone(), *value)));
    shown
}

/// Puts the counters of a record in their places, and replaces whatever the record has there.
pub(crate) fn show(counters: &Counters, record: &mut Value, counted: Option<&Integers>) {
    if counters.is_empty() {
        return;
    }
    take(counters, record);
    for (name, value) in shown_counters(counters, counted) {
        place(record, counters.path_of(&name), value);
    }
}

/// A stored record with its counters in place.
pub(crate) fn shown(
    counters: &Counters,
    document: Document,
    counted: Option<&Integers>,
) -> Document {
    if counters.is_empty() {
        return document;
    }
    // A record that cannot be decoded has no place for counters; its reader gets the error.
    let Ok(mut record @ Value::Object(_)) = document.json() else { return document };
    show(counters, &mut record, counted);
    document.with_text(Bytes::from(record.to_string()))
}

fn place<'p>(record: &mut Value, path: impl Iterator<Item = &'p str>, value: i64) {
    let mut at = record;
    for step in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(members) = at else { return };
        at = members.entry(step).or_insert(Value::Null);
    }
    *at = value.into();
}

/// Takes the counters out of a record that is to be written, and gives their values. Any other
/// value in the place of a counter is refused.
pub(crate) fn set_aside(collection: &Collection, record: &mut Cow<'_, Value>) -> Result<Integers> {
    let mut aside = Integers::new();
    if !may_show(&collection.counters, record) {
        return Ok(aside);
    }
    for (name, value) in take(&collection.counters, record.to_mut()) {
        match value.as_i64() {
            Some(value) if collection.counters.has(&name) => {
                aside.insert(name, value);
            }
            _ if value.is_null() => {}
            _ if collection.counters.has(&name) => {
                return Err(refused(collection, &name).with("value", shortened(&value)));
            }
            _ => return Err(refused_place(collection, name, &value)),
        }
    }
    Ok(aside)
}

/// Refuses counters in a payload that differ from those of the record.
pub(crate) fn check_aside(
    collection: &Collection,
    key: &[u8],
    aside: &Integers,
    counted: Option<&Integers>,
) -> Result<()> {
    let now = |name: &str| counted.and_then(|counted| counted.get(name)).copied().unwrap_or(0);
    match aside.iter().find(|(name, value)| now(name) != **value) {
        None => Ok(()),
        Some((name, value)) => Err(refused(collection, name)
            .with("key", ShowKey(key))
            .with("value given", value)
            .with("value", now(name))),
    }
}

/// Refuses a merge patch that changes a counter, or an object of counters as a whole.
pub(crate) fn refuse_counters(collection: &Collection, patch: &Value) -> Result<()> {
    if collection.counters.is_empty() {
        return Ok(());
    }
    let mut rest = patch.clone();
    match take(&collection.counters, &mut rest).into_iter().next() {
        None => Ok(()),
        Some((name, value)) if collection.counters.has(&name) => {
            Err(refused(collection, &name).with("value given", shortened(&value)))
        }
        Some((name, value)) => Err(refused_place(collection, name, &value)),
    }
}

/// The error for a value in the place of a counter that is not a counter.
fn refused_place(collection: &Collection, name: String, value: &Value) -> Error {
    let message =
        "the record shows its counters here, which `increment` alone changes; leave it out";
    Error::new(ErrorKind::InvalidRecord, message)
        .with("collection", &collection.name)
        .with("counters", collection.counters.names_at(&name).join(", "))
        .with("field", name)
        .with("value", shortened(value))
}

fn refused(collection: &Collection, name: &str) -> Error {
    let message = "a counter is changed by `increment` only; leave it out, or as it is";
    Error::new(ErrorKind::InvalidRecord, message)
        .with("collection", &collection.name)
        .with("counter", name)
        .with("instead", format_args!("increment(key, [({name:?}, delta)])"))
}

/// Whether the record may have something in a counter's place, judged by its outermost members.
fn may_show(counters: &Counters, record: &Value) -> bool {
    let is_one = |name: &String| counters.has(name) || counters.is_holder(name);
    record.as_object().is_some_and(|members| {
        !counters.is_empty() && (counters.is_family("") || members.keys().any(is_one))
    })
}

/// Removes everything in the places of counters, and objects that are empty afterwards.
fn take(counters: &Counters, record: &mut Value) -> BTreeMap<String, Value> {
    let mut taken = BTreeMap::new();
    if let Value::Object(members) = record {
        take_from(counters, members, "", &mut taken);
    }
    taken
}

fn take_from(
    counters: &Counters,
    members: &mut Map<String, Value>,
    prefix: &str,
    taken: &mut BTreeMap<String, Value>,
) {
    let is_family = counters.is_family(prefix);
    members.retain(|name, value| {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            _ if is_family || counters.has(&path) => {}
            Value::Object(inner) if counters.is_holder(&path) => {
                take_from(counters, inner, &path, taken);
                return !inner.is_empty();
            }
            _ if counters.is_holder(&path) => {}
            _ => return true,
        }
        taken.insert(path, value.take());
        false
    });
}
