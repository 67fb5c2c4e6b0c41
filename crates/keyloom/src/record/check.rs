//! Checks records before they are written.

use std::borrow::Cow;

use serde_json::Value;

use crate::engine::VALUE_BYTES_MAX;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{DEPTH_MAX, same_value};
use crate::key::{Kind, Path, Template, shortened};
use crate::schema::{Collection, Field, FieldKind, Verdict, Violation};

/// The space that the history needs for a version besides the record: two keys and a user, escaped.
const HISTORY_BYTES: usize = 16 * 1024;

/// What declared transitions say about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The change is allowed.
    Allowed,
    /// The change is outdated, and the schema says to drop it without an error.
    Ignored,
}

/// Refuses a record that is not an object, lacks a required field, has a declared field of the
/// wrong type, breaks the body schema, or is too deep.
pub(crate) fn check_new(collection: &Collection, record: &Value) -> Result<()> {
    check(collection, None, record)
}

/// As [`check_new`], for a record that replaces another one. If a schema was declared over records
/// that do not fit it, these records must stay changeable in other places. So a fault that the old
/// record has in the same way is allowed. See decision 49.
pub(crate) fn check_over(collection: &Collection, old: &Value, record: &Value) -> Result<()> {
    check(collection, Some(old), record)
}

fn check(collection: &Collection, old: Option<&Value>, record: &Value) -> Result<()> {
    let refuse = |message| {
        Error::new(ErrorKind::InvalidRecord, message).with("collection", &collection.name)
    };
    if !record.is_object() {
        return Err(refuse("a record is a JSON object"));
    }
    check_depth(collection, record)?;
    if let Some(error) = all_told(collection, faults(collection, old, record)) {
        return Err(error);
    }
    let violations = violations(collection, old, record);
    if violations.is_empty() {
        return Ok(());
    }
    Err(violations.iter().fold(refuse("the record breaks its body schema"), |error, violation| {
        error.with("problem", violation)
    }))
}

/// Everything in a stored record that its declaration does not allow, in words.
pub(crate) fn misfits(collection: &Collection, record: &Value) -> Vec<String> {
    let fields = faults(collection, None, record).map(|(field, fault)| told(field, &fault));
    let broken = violations(collection, None, record);
    fields.chain(broken.iter().map(Violation::to_string)).collect()
}

/// The fields of a record with a fault, except faults that the old record has in the same way.
fn faults<'f>(
    collection: &'f Collection,
    old: Option<&'f Value>,
    record: &'f Value,
) -> impl Iterator<Item = (&'f Field, Error)> {
    collection.fields.values().filter_map(move |field| {
        let fault = check_field(field, old, record).err()?;
        Some((field, fault))
    })
}

fn violations(collection: &Collection, old: Option<&Value>, record: &Value) -> Vec<Violation> {
    collection.body.as_ref().map(|body| body.violations(old, record)).unwrap_or_default()
}

/// How many further fields an error lists, so that it stays readable.
const ALSO_MAX: usize = 20;

/// The first fault of a record as an error, which also lists the others.
fn all_told<'f>(
    collection: &Collection,
    mut faults: impl Iterator<Item = (&'f Field, Error)>,
) -> Option<Error> {
    let (field, first) = faults.next()?;
    let first = locate(first, collection, field);
    let also = faults.take(ALSO_MAX);
    Some(also.fold(first, |error, (field, also)| error.with("also", told(field, &also))))
}

/// A fault of a field in a few words.
fn told(field: &Field, fault: &Error) -> String {
    let reason = fault.context_value("reason").unwrap_or(fault.message());
    match fault.context_value("value") {
        Some(value) => format!("{}: {reason}; it is {value}", field.path),
        None => format!("{}: {reason}", field.path),
    }
}

/// Adds the collection and the indexes that a refused value belongs to.
fn locate(error: Error, collection: &Collection, field: &Field) -> Error {
    with_indexes_of(error.with("collection", &collection.name), collection, &field.path.to_string())
}

/// Adds the indexes that use a field.
pub(crate) fn with_indexes_of(error: Error, collection: &Collection, field: &str) -> Error {
    let uses =
        |template: &Template| template.segments().any(|segment| segment.path.to_string() == field);
    let users = collection.indexes.values().filter(|index| uses(&index.key));
    users.fold(error, |error, index| error.with("index", &index.name))
}

fn check_field(field: &Field, old: Option<&Value>, record: &Value) -> Result<()> {
    if field.path.star().is_some() {
        return check_elements(field, old, record);
    }
    let fault = match field.value(record) {
        Some(value) => check_value(field, value).err(),
        None if field.required => Some(
            Error::new(ErrorKind::InvalidRecord, "a required field is missing")
                .with("field", &field.path),
        ),
        None => None,
    };
    match fault {
        Some(fault) if !old.is_some_and(|old| has_same(field, old, record)) => Err(fault),
        _ => Ok(()),
    }
}

/// Whether the field that a refusal is about has the same value in both records.
pub(crate) fn is_about_what_stays(
    collection: &Collection,
    refusal: &Error,
    old: &Value,
    new: &Value,
) -> bool {
    let field = refusal.context_value("field").and_then(|field| Path::parse(field).ok());
    field.is_some_and(|field| leaves_alone(collection, &field, old, new))
}

/// Whether a change leaves the value at a path alone; the whole array or map where the path leads
/// into one.
fn leaves_alone(collection: &Collection, path: &Path, old: &Value, new: &Value) -> bool {
    let path = path.star().unwrap_or_else(|| path.clone());
    match collection.fields.get(&path) {
        Some(field) => has_same(field, old, new),
        None => path.get(old) == path.get(new),
    }
}

/// Whether two records have the same value in a field, or both have none.
fn has_same(field: &Field, old: &Value, new: &Value) -> bool {
    if let FieldKind::RecordPoint { lat, lon } = &field.kind {
        return [lat, lon].into_iter().all(|name| old.get(name) == new.get(name));
    }
    match (field.value(old), field.value(new)) {
        (Some(old), Some(new)) => same_value(old, new),
        (old, new) => old.is_none() && new.is_none(),
    }
}

/// Checks the elements of an array or a map. An element that does not fit must be in the old record
/// too.
fn check_elements(field: &Field, old: Option<&Value>, record: &Value) -> Result<()> {
    let elements = |record| field.path.all(record).filter(|value| !value.is_null());
    let mut known: Option<Vec<Cow<'_, Value>>> = None;
    for value in elements(record) {
        let Err(fault) = check_value(field, &value) else { continue };
        let known = known.get_or_insert_with(|| old.into_iter().flat_map(elements).collect());
        match known.iter().position(|known| same_value(known, &value)) {
            Some(place) => drop(known.swap_remove(place)),
            None => return Err(fault),
        }
    }
    Ok(())
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
            .with("value", shortened(&what_is_meant(field, value)))
            .with("reason", reason)
    })
}

/// The value of a field for messages: for a point of the record itself, only the members of the
/// point.
fn what_is_meant<'v>(field: &Field, value: &'v Value) -> Cow<'v, Value> {
    let FieldKind::RecordPoint { lat, lon } = &field.kind else { return Cow::Borrowed(value) };
    let member = |name: &String| Some((name.clone(), value.get(name)?.clone()));
    Cow::Owned(Value::Object([lat, lon].into_iter().filter_map(member).collect()))
}

/// Refuses JSON text that is too large for a cell, or for a cell of the history.
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

/// Checks a change of a record against the declared transitions. A field that was absent, or had an
/// undeclared value, may take any value. A field with a declared value cannot lose it, since that
/// would bypass the transitions.
pub(crate) fn check_transitions(
    collection: &Collection,
    old: &Value,
    new: &Value,
) -> Result<Passage> {
    let mut passage = Passage::Allowed;
    for field in collection.fields.values() {
        let Some(transitions) = &field.transitions else { continue };
        let from = text_at(field, old).filter(|from| is_declared(field, from));
        let Some(from) = from else { continue };
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

/// Whether the field declares this value.
fn is_declared(field: &Field, value: &str) -> bool {
    match &field.kind {
        FieldKind::Key(Kind::Enum { values }) => values.iter().any(|declared| declared == value),
        _ => true,
    }
}

/// Refuses JSON that is too deep for a record. The check itself does not recurse deeper than that.
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

/// The values that a change may lead to, in words.
fn allowed(values: &[String]) -> String {
    if values.is_empty() { "nothing, it is final".to_owned() } else { values.join(", ") }
}
