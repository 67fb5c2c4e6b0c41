//! Merges the schema that a process declares into the stored one.
//!
//! Every process obeys the stored schema, and a process may be older than the store. So whatever a
//! process does not declare stays, additions are added, and a contradiction to the layout of stored
//! keys is refused. One walk gives both the list of changes and the resulting schema, so the two
//! cannot disagree.

mod collection;
mod fields;
mod indexes;

use std::fmt;

use super::declaration::{LogDeclaration, SchemaDeclaration};
use super::model::Schema;
use super::problem::ShowTrail;
use collection::Walk;

/// What a change requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Only the store has it. It stays, and is maintained.
    Kept,
    /// It takes effect at once, whatever the store holds.
    Safe,
    /// It is a new index. The index is ready at once if the collection is empty; otherwise it must
    /// be built.
    NeedsBuild,
    /// It is refused: stored keys or values would change their meaning.
    Incompatible,
}

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub(crate) subject: Subject,
    /// What the change requires.
    pub class: Class,
    /// What differs, and what to do about it if that is not obvious.
    pub sentence: String,
}

/// The part of a schema that a change is about. Shown as its path in a schema file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Collection { collection: String },
    Key { collection: String },
    Area { collection: String },
    Access { collection: String },
    Body { collection: String },
    ExpiresAt { collection: String },
    History { collection: String },
    Field { collection: String, field: String },
    Counter { collection: String, counter: String },
    Index { collection: String, section: &'static str, index: String },
    Log,
    Idempotency,
}

/// The result of comparing a stored schema with a declared one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evolution {
    pub(crate) changes: Vec<Change>,
    /// The stored schema with every compatible change. It is valid only if it compiles, since new
    /// parts may clash with kept ones.
    pub(crate) merged: SchemaDeclaration,
}

impl Change {
    /// The collection whose records may not fit after this change.
    pub(crate) fn asks_more_of(&self) -> Option<&str> {
        match &self.subject {
            _ if self.class != Class::Safe => None,
            Subject::Collection { collection }
            | Subject::Body { collection }
            | Subject::Field { collection, .. } => Some(collection),
            _ => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.sentence)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = match self {
            Subject::Idempotency => return f.write_str("idempotency"),
            Subject::Collection { collection } => vec![collection],
            Subject::Key { collection } => vec![collection, "key"],
            Subject::Area { collection } => vec![collection, "area"],
            Subject::Access { collection } => vec![collection, "access"],
            Subject::Body { collection } => vec![collection, "body"],
            Subject::ExpiresAt { collection } => vec![collection, "expires_at"],
            Subject::History { collection } => vec![collection, "history"],
            Subject::Field { collection, field } => vec![collection, "fields", field],
            Subject::Counter { collection, counter } => vec![collection, "counters", counter],
            Subject::Index { collection, section, index } => vec![collection, section, index],
            Subject::Log => return f.write_str("log"),
        };
        let trail: Vec<String> =
            std::iter::once("collection").chain(names).map(str::to_owned).collect();
        ShowTrail(&trail).fmt(f)
    }
}

/// Compares the schema in the store with the one that a process declares.
pub(crate) fn evolve(stored: &Schema, declared: &Schema) -> Evolution {
    let mut changes = Vec::new();
    let mut merged = stored.declaration();
    for (name, collection) in &declared.collections {
        match stored.collections.get(name) {
            None => {
                changes.push(Change {
                    subject: Subject::Collection { collection: name.clone() },
                    class: Class::Safe,
                    sentence: "is new".to_owned(),
                });
                merged.collections.insert(name.clone(), (*collection.declaration).clone());
            }
            Some(stored) => {
                let mut walk = Walk { stored, declared: collection, changes: &mut changes };
                merged.collections.insert(name.clone(), walk.collection());
            }
        }
    }
    if stored.idempotency != declared.idempotency {
        let (class, sentence) = match &declared.idempotency {
            None => (Class::Kept, "is in the store only; it stays".to_owned()),
            Some(idempotency) => (Class::Safe, format!("`keep` is now {}", idempotency.keep)),
        };
        changes.push(Change { subject: Subject::Idempotency, class, sentence });
        merged.idempotency = declared.idempotency.clone().or(merged.idempotency);
    }
    for name in stored.collections.keys().filter(|name| !declared.collections.contains_key(*name)) {
        changes.push(Change {
            subject: Subject::Collection { collection: name.clone() },
            class: Class::Kept,
            sentence: "is in the store only; it stays".to_owned(),
        });
    }
    merged.log = evolve_log(stored.log, declared.log, &mut changes);
    Evolution { changes, merged }
}

/// Once one process has declared a log, it is kept for all. The latest declaration decides how much
/// of it is kept.
fn evolve_log(
    stored: Option<LogDeclaration>,
    declared: Option<LogDeclaration>,
    changes: &mut Vec<Change>,
) -> Option<LogDeclaration> {
    let (class, sentence) = match (stored, declared) {
        _ if stored == declared => return stored,
        (_, None) => (Class::Kept, "is in the store only; it stays"),
        (None, Some(_)) => (Class::Safe, "is new; it tells of changes from now on"),
        (Some(_), Some(_)) => (Class::Safe, "keeps another part of the changes"),
    };
    changes.push(Change { subject: Subject::Log, class, sentence: sentence.to_owned() });
    declared.or(stored)
}
