//! What a record must fulfil before it is written.

use serde_json::Value;

use crate::engine::VALUE_BYTES_MAX;
use crate::error::{Error, ErrorKind, Result};
use crate::json::DEPTH_MAX;
use crate::key::{Kind, Template, shortened};
use crate::schema::{Collection, Field, FieldKind, Verdict};

/// What the history writes about a version besides the record: two keys and a user, escaped.
const HISTORY_BYTES: usize = 16 * 1024;

/// What declared transitions say of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The change may be made.
    Allowed,
    /// The change is out of date, and is declared to be dropped without an error.
    Ignored,
}

/// Refuses a record that is not an object, lacks a required field, has a declared field of
/// another type, breaks the body schema, or is too deep.
pub(crate) fn check_new(collection: &Collection, record: &Value) -> Result<()> {
    let refuse = |message| {
        Error::new(ErrorKind::InvalidRecord, message).with("collection", &collection.name)
    };
    if !record.is_object() {
        return Err(refuse("a record is a JSON object"));
    }
    check_depth(collection, record)?;
    let faults = collection.fields.values().filter_map(|field| {
        let error = check_field(field, record).err()?;
        Some((field, error))
    });
    if let Some(error) = all_told(collection, faults) {
        return Err(error);
    }
    let violations =
        collection.body.as_ref().map(|body| body.violations(record)).unwrap_or_default();
    if violations.is_empty() {
        return Ok(());
    }
    Err(violations.into_iter().fold(
        refuse("the record breaks its body schema"),
        |error, violation| {
            error.with("problem", format_args!("{}: {}", violation.at, violation.message))
        },
    ))
}

/// How many further fields an error tells, so that it stays readable.
const ALSO_MAX: usize = 20;

/// The first fault of a record as an error, which tells the others as well.
fn all_told<'f>(
    collection: &Collection,
    mut faults: impl Iterator<Item = (&'f Field, Error)>,
) -> Option<Error> {
    let (field, first) = faults.next()?;
    let first = locate(first, collection, field);
    Some(faults.take(ALSO_MAX).fold(first, |error, (field, also)| {
        let reason = also.context_value("reason").unwrap_or(also.message());
        match also.context_value("value") {
            Some(value) => {
                error.with("also", format_args!("{}: {reason}; it is {value}", field.path))
            }
            None => error.with("also", format_args!("{}: {reason}", field.path)),
        }
    }))
}

/// Adds where a refused value would have gone.
fn locate(error: Error, collection: &Collection, field: &Field) -> Error {
    with_indexes_of(error.with("collection", &collection.name), collection, &field.path.to_string())
}

/// Adds the indexes that a field is part of.
pub(crate) fn with_indexes_of(error: Error, collection: &Collection, field: &str) -> Error {
    let uses =
        |template: &Template| template.segments().any(|segment| segment.path.to_string() == field);
    let users = collection.indexes.values().filter(|index| uses(&index.key));
    users.fold(error, |error, index| error.with("index", &index.name))
}

fn check_field(field: &Field, record: &Value) -> Result<()> {
    let missing = || {
        Error::new(ErrorKind::InvalidRecord, "a required field is missing")
            .with("field", &field.path)
    };
    if field.path.star().is_none() {
        return match field.value(record) {
            Some(value) => check_value(field, value),
            None if field.required => Err(missing()),
            None => Ok(()),
        };
    }
    let mut present = field.path.all(record).filter(|value| !value.is_null()).peekable();
    if field.required && present.peek().is_none() {
        return Err(missing());
    }
    present.try_for_each(|value| check_value(field, &value))
}

fn check_value(field: &Field, value: &Value) -> Result<()> {
    let checked = match &field.kind {
        FieldKind::Key(kind) => kind.check(value),
        FieldKind::RecordPoint { lat, lon } => {
            Kind::Point { lat: lat.clone(), lon: lon.clone() }.check(value)
        }
        FieldKind::Map if value.is_object() => Ok(()),
        FieldKind::Map => Err("a map is a JSON object".to_owned()),
    };
    checked.map_err(|reason| {
        Error::new(ErrorKind::InvalidRecord, "a field does not have its declared type")
            .with("field", &field.path)
            .with("value", shortened(value))
            .with("reason", reason)
    })
}

/// Refuses JSON text that is too large for a cell, or for a cell of its history.
pub(crate) fn check_size(collection: &Collection, text: &[u8]) -> Result<()> {
    if collection.history.is_some() && text.len() > VALUE_BYTES_MAX - HISTORY_BYTES {
        let message = "a record with a history has at most 372736 bytes (364 KiB) of JSON";
        return Err(Error::new(ErrorKind::LimitExceeded, message)
            .with("collection", &collection.name)
            .with("bytes", text.len()));
    }
    if text.len() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(ErrorKind::LimitExceeded, "a record has at most 389120 bytes (380 KiB) of JSON")
        .with("collection", &collection.name)
        .with("bytes", text.len()))
}

/// Holds a change of a record against the declared transitions. A field that was absent before
/// may take any value; one that has a value cannot lose it, which would be a way around them.
pub(crate) fn check_transitions(
    collection: &Collection,
    old: &Value,
    new: &Value,
) -> Result<Passage> {
    let mut passage = Passage::Allowed;
    for field in collection.fields.values() {
        let Some(transitions) = &field.transitions else { continue };
        let Some(from) = text_at(field, old) else { continue };
        let to = text_at(field, new);
        match transitions.check(from, to) {
            Verdict::Allowed => {}
            Verdict::Ignored => passage = Passage::Ignored,
            Verdict::Illegal => {
                let message = "this transition is not declared";
                return Err(Error::new(ErrorKind::IllegalTransition, message)
                    .with("collection", &collection.name)
                    .with("field", &field.path)
                    .with("from", from)
                    .with("to", to.unwrap_or("nothing"))
                    .with("allowed", allowed(transitions.after(from))));
            }
        }
    }
    Ok(passage)
}

fn text_at<'v>(field: &Field, record: &'v Value) -> Option<&'v str> {
    field.path.get(record)?.as_str()
}

/// Refuses JSON that is deeper than a record may be, without going deeper itself.
pub(super) fn check_depth(collection: &Collection, value: &Value) -> Result<()> {
    if fits(value, DEPTH_MAX) {
        return Ok(());
    }
    let message = "a record nests at most 100 levels deep";
    Err(Error::new(ErrorKind::InvalidRecord, message).with("collection", &collection.name))
}

fn fits(value: &Value, levels: usize) -> bool {
    let within = |inner: &Value| fits(inner, levels - 1);
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => false,
        Value::Array(items) => items.iter().all(within),
        Value::Object(members) => members.values().all(within),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// What a value may change to, in words.
fn allowed(values: &[String]) -> String {
    if values.is_empty() { "nothing, it is final".to_owned() } else { values.join(", ") }
}
