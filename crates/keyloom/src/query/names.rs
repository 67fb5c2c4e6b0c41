//! Decides which fields the names in a query can mean.

use serde_json::Value;

use crate::key::{Path, Step};
use crate::schema::{Collection, FieldKind, Holds, is_slip};
use crate::space::Session;

/// Whether the schema, or the program's own type, mentions a path: as a field, inside or above a
/// field, or anywhere else. The error says why nothing can lie at the path.
pub(super) fn is_known(
    session: &Session,
    collection: &Collection,
    path: &Path,
) -> Result<bool, String> {
    if collection.fields.contains_key(path) || is_inside(collection, path)? {
        return Ok(true);
    }
    let is_above = |other: &Path| other.0.starts_with(&path.0);
    let is_declared =
        collection.fields.values().any(|field| is_above(&field.path) || field.path.covers(path));
    let Some(Step::Name(first)) = path.0.first() else { return Ok(is_declared) };
    Ok(is_declared
        || collection.counters.is_holder(&path.to_string())
        || session.has_member(first)
        || is_mentioned(collection, path)
        || collection.declaration.body.as_ref().is_some_and(|body| names(body, path)))
}

/// Whether a path leads into a declared field that can have members.
fn is_inside(collection: &Collection, path: &Path) -> Result<bool, String> {
    for length in 1..path.0.len() {
        let above = Path(path.0[..length].to_vec());
        let Some(field) = collection.fields.get(&above) else { continue };
        return match (&field.kind, &path.0[length]) {
            (FieldKind::Map, _) => Ok(true),
            (FieldKind::Key(kind), Step::Name(_)) if kind.has_members() => Ok(true),
            (FieldKind::RecordPoint { lat, lon }, _) => Err(format!(
                "`{above}` is made of members of the record; ask for `{lat}` or `{lon}`"
            )),
            (_, Step::Each | Step::EachKey) => Err(format!(
                "`{above}` is declared as one value, not as an array; ask for `{above}`"
            )),
            (_, Step::Name(_)) => {
                Err(format!("`{above}` is declared as one value, with nothing inside"))
            }
        };
    }
    Ok(false)
}

/// Whether a condition or another part of the schema names the path.
fn is_mentioned(collection: &Collection, path: &Path) -> bool {
    let indexes = collection.indexes.values();
    let in_conditions = indexes.clone().filter_map(|index| index.condition.as_ref());
    let of_aggregates = collection.aggregates.values().filter_map(|it| it.condition.as_ref());
    let tested = |path: &Path| {
        in_conditions
            .clone()
            .chain(of_aggregates.clone())
            .any(|it| it.tests_of(path).next().is_some())
    };
    let mut held = indexes.map(|index| &index.holds);
    tested(path)
        || held.any(|holds| match holds {
            Holds::Field(held) => held == path,
            Holds::Object(held) => held.contains(path),
            Holds::Key | Holds::Record => false,
        })
        || collection.fields.values().any(|field| match (&field.kind, &path.0[..]) {
            (FieldKind::RecordPoint { lat, lon }, [Step::Name(name)]) => name == lat || name == lon,
            _ => false,
        })
}

/// Whether a JSON Schema has a property with the path's last name, at any depth.
fn names(body: &Value, path: &Path) -> bool {
    let last = path.0.iter().rev().find_map(|step| match step {
        Step::Name(name) => Some(name),
        Step::Each | Step::EachKey => None,
    });
    last.is_some_and(|last| has_property(body, last))
}

fn has_property(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(members) => {
            schema["properties"].get(name).is_some()
                || members.values().any(|inner| has_property(inner, name))
        }
        Value::Array(items) => items.iter().any(|inner| has_property(inner, name)),
        _ => false,
    }
}

/// The declared path that a misspelt path probably means.
pub(super) fn meant_by<'c>(collection: &'c Collection, path: &Path) -> Option<&'c Path> {
    let slips = |declared: &&Path| is_slip_of(path, declared) || is_slip_of(path, &plain(declared));
    collection.fields.values().map(|field| &field.path).find(slips)
}

/// Whether two paths differ in only one name, and that looks like a slip.
fn is_slip_of(path: &Path, declared: &Path) -> bool {
    if path.0.len() != declared.0.len() {
        return false;
    }
    let mut different = path.0.iter().zip(&declared.0).filter(|(a, b)| a != b);
    match (different.next(), different.next()) {
        (Some((Step::Name(name), Step::Name(declared))), None) => is_slip(name, declared),
        _ => false,
    }
}

/// The declared path over elements that a path without its `*` probably means.
pub(super) fn with_star<'c>(collection: &'c Collection, path: &Path) -> Option<&'c Path> {
    starred(collection).find(|declared| plain(declared) == *path)
}

/// The declared path over elements that a path with the number of an element probably means.
/// Members of a map may have numbers as names, so maps do not count.
pub(super) fn numbered<'c>(collection: &'c Collection, path: &Path) -> Option<&'c Path> {
    let is_number = |step: &Step| matches!(step, Step::Name(name) if name.bytes().all(|byte| byte.is_ascii_digit()));
    let is_map =
        |path: &Path| collection.fields.get(path).is_some_and(|field| field.kind == FieldKind::Map);
    let place = path.0.iter().position(is_number)?;
    let mut elements = path.clone();
    elements.0[place] = Step::Each;
    let is_array = !is_map(&Path(path.0[..place].to_vec()));
    starred(collection).find(|declared| is_array && **declared == elements)
}

fn starred(collection: &Collection) -> impl Iterator<Item = &Path> {
    let paths = collection.fields.values().map(|field| &field.path);
    paths.filter(|path| path.star().is_some())
}

/// A path without its `*`.
fn plain(path: &Path) -> Path {
    Path(path.0.iter().filter(|step| matches!(step, Step::Name(_))).cloned().collect())
}
