//! A record's counters: kept beside it, shown in place, and never stored in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::document::Document;
use crate::engine::{Integers, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::key::shortened;
use crate::schema::{Collection, Counters};

/// All counters that a record shows: what was counted, and zero for those that every record has.
pub(crate) fn shown_counters(counters: &Counters, counted: Option<&Integers>) -> Integers {
    let mut shown: Integers = counters.exact_names().map(|name| (name.to_owned(), 0)).collect();
    let declared = counted.into_iter().flatten().filter(|(name, _)| counters.has(name));
    shown.extend(declared.map(|(name, value)| (name.clone(), *value)));
    shown
}

/// Puts the counters of a record in their places, whatever the record may hold there.
pub(crate) fn show(counters: &Counters, record: &mut Value, counted: Option<&Integers>) {
    if counters.is_empty() {
        return;
    }
    take(counters, record);
    for (name, value) in shown_counters(counters, counted) {
        place(record, counters.path_of(&name), value);
    }
}

/// A record as it lies in the store, with its counters in place.
pub(crate) fn shown(
    counters: &Counters,
    document: Document,
    counted: Option<&Integers>,
) -> Document {
    if counters.is_empty() {
        return document;
    }
    // What cannot be read has no places; the reader will hear of it.
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

/// Takes the counters out of a record that is to be written, and gives their values. What else
/// stands in the place of a counter is refused.
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

/// Refuses counters of a payload that differ from what the record has.
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

/// Refuses a merge patch that names a counter, or what holds counters as a whole.
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

/// The refusal of what stands where counters are shown, and is none.
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

/// Whether anything can stand where counters are shown, by the names of the outermost members.
fn may_show(counters: &Counters, record: &Value) -> bool {
    let is_one = |name: &String| counters.has(name) || counters.is_holder(name);
    record.as_object().is_some_and(|members| {
        !counters.is_empty() && (counters.is_family("") || members.keys().any(is_one))
    })
}

/// Removes everything that stands where counters are shown, and the objects that are empty then.
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
