//! A schema after compilation: typed, checked, ready for writes and queries.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::aggregate::Aggregate;
use super::body::BodySchema;
use super::compile::KEEP_MS_DEFAULT;
use super::condition::Condition;
use super::counters::Counters;
use super::declaration::{
    Access, CollectionDeclaration, HistoryDeclaration, IdempotencyDeclaration, LogDeclaration,
    SchemaDeclaration,
};
use super::expiry::Expiry;
use super::suggest::nearest;
use super::transitions::Transitions;
use crate::engine::{Area, Capabilities, Range, Recipe};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Kind, Path, Template};

/// The most entries of one record in an index over an array or a map, unless declared otherwise.
pub(crate) const MAX_DEFAULT: usize = 16;

/// A checked schema. Two schemas are equal when their declarations are.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) collections: BTreeMap<String, Arc<Collection>>,
    /// How much of the change log is kept, if the space keeps one.
    pub(crate) log: Option<LogDeclaration>,
    pub(crate) idempotency: Option<IdempotencyDeclaration>,
    /// For how long the answers to idempotency keys are kept.
    pub(crate) idempotency_keep_ms: u64,
}

impl Default for Schema {
    /// A schema without collections.
    fn default() -> Self {
        Schema {
            collections: BTreeMap::new(),
            log: None,
            idempotency: None,
            idempotency_keep_ms: KEEP_MS_DEFAULT,
        }
    }
}

/// One collection.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    pub(crate) name: String,
    /// The area of the records.
    pub(crate) area: Area,
    /// The template of the records' keys. It has no `*` and loses nothing: a key decodes to its
    /// fields.
    pub(crate) key: Template,
    /// The fields of the record's key, in the order of the template's segments.
    pub(crate) key_paths: Vec<Path>,
    /// What an acting user may do with the records.
    pub(crate) access: Access,
    /// The field that names a record's owner: the first field of the key, and a text. Owned and
    /// hybrid collections always have it.
    pub(crate) owner: Option<Path>,
    /// Every declared field, and the names (`x.*key`) of every declared map.
    pub(crate) fields: BTreeMap<Path, Field>,
    /// Whether a field is a point made of members of the record itself. Without such a field, every
    /// value lies directly at its path.
    pub(crate) has_record_points: bool,
    /// Indexes of all kinds, and Keyloom's own index over the ends of records, if they expire.
    pub(crate) indexes: BTreeMap<String, Arc<Index>>,
    /// Counts and sums. No index has the same name as one of them.
    pub(crate) aggregates: BTreeMap<String, Arc<Aggregate>>,
    /// The counters beside each record.
    pub(crate) counters: Counters,
    /// When its records expire, if they do. Keyloom keeps an index over that field in its own area.
    pub(crate) expiry: Option<Expiry>,
    pub(crate) body: Option<BodySchema>,
    /// How much of each record's past is kept, if any.
    pub(crate) history: Option<HistoryDeclaration>,
    /// The declaration that it was compiled from. Shared, since processes ask for it often.
    pub(crate) declaration: Arc<CollectionDeclaration>,
}

/// One declared field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) path: Path,
    pub(crate) kind: FieldKind,
    /// Whether an insert without the field gets a fresh value: an id, a random UUID (version 4), a
    /// code, or the current time. Never on a path with `*`.
    pub(crate) generate: bool,
    /// Whether a record without the field is refused: if declared so, or if it is a field of the
    /// record's key.
    pub(crate) required: bool,
    /// Only enums have transitions.
    pub(crate) transitions: Option<Transitions>,
}

/// The kind of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    /// A value that can be part of a key.
    Key(Kind),
    /// A point whose two members belong to the record itself. Its value for keys is the whole
    /// record; see [`Field::value`].
    RecordPoint { lat: String, lon: String },
    /// An object whose names are data.
    Map,
}

/// One index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) kind: IndexKind,
    /// The area of the entries: the collection's area, unless declared otherwise.
    pub(crate) area: Area,
    /// The template of the entries' keys.
    pub(crate) key: Template,
    /// The value of an entry. Together with the entry's key it determines the record's key.
    pub(crate) holds: Holds,
    /// Which records have entries; all records if there is no condition.
    pub(crate) condition: Option<Condition>,
    /// The array or map that the index walks over, with one entry for each element. All paths with
    /// `*` in `key` share it.
    pub(crate) star: Option<Path>,
    /// The most entries of one record; 1 without `star`.
    pub(crate) max: usize,
    /// Whether an entry is put only if its key is absent: always on a unique index, on others if
    /// declared.
    pub(crate) claims: bool,
    /// Whether a record that lacks an indexed field has no entry; otherwise it is refused.
    pub(crate) sparse: bool,
    /// How an engine itself gets from an entry to its record, if the bytes alone determine it.
    pub(crate) recipe: Option<Recipe>,
    /// Whether keys of another template may lie between keys of this one.
    pub(crate) interleaved: bool,
}

/// The kind of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexKind {
    Value,
    Unique,
    /// Exactly one segment is a geohash.
    Geo,
}

/// What the entries of an index hold. No path in it has a `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// This field as JSON.
    Field(Path),
    /// The record's key as a JSON string.
    Key,
    /// A JSON object with these fields, in this order, each named by its path as written.
    Object(Vec<Path>),
    /// The whole record.
    Record,
}

impl Schema {
    /// Checks that the engine supports everything in the schema, and that every single write fits
    /// into one batch.
    pub fn check_against(&self, capabilities: &Capabilities) -> Result<()> {
        if self.log.is_some() && !capabilities.keeps_log {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the schema declares a change log, and this engine keeps none",
            )
            .with("engine", capabilities.engine)
            .with("advice", "leave out [log], or use an engine that orders commits"));
        }
        let mut oversized = self
            .collections
            .values()
            .map(|collection| (collection, collection.batch_entries_worst()))
            .filter(|(_, worst)| *worst > capabilities.batch_entries_max)
            .peekable();
        if oversized.peek().is_none() {
            return Ok(());
        }
        let error = Error::new(
            ErrorKind::InvalidSchema,
            "one write could need a larger batch than the engine allows",
        )
        .with("engine", capabilities.engine)
        .with("entries allowed", capabilities.batch_entries_max);
        Err(oversized.fold(error, |error, (collection, worst)| {
            error.with(
                "problem",
                format_args!(
                    "collection.{}: writing one record can change {worst} entries; \
                     lower `max` on the indexes that walk over an array or a map",
                    collection.name
                ),
            )
        }))
    }

    /// The declaration that this schema was compiled from, in its canonical form.
    pub fn declaration(&self) -> SchemaDeclaration {
        SchemaDeclaration {
            log: self.log,
            collections: self
                .collections
                .iter()
                .map(|(name, collection)| (name.clone(), (*collection.declaration).clone()))
                .collect(),
            idempotency: self.idempotency.clone(),
        }
    }

    /// The names of all collections, in order.
    pub fn collection_names(&self) -> impl Iterator<Item = &str> {
        self.collections.keys().map(String::as_str)
    }

    /// The collection with this name; the error lists the existing ones.
    pub(crate) fn collection(&self, name: &str) -> Result<&Arc<Collection>> {
        self.collections.get(name).ok_or_else(|| {
            let error =
                Error::new(ErrorKind::InvalidArgument, "the schema has no collection of that name")
                    .with("collection", name);
            with_known(error, name, self.collection_names())
        })
    }
}

/// Adds the existing names, and the one that was probably meant.
fn with_known<'n>(error: Error, name: &str, names: impl Iterator<Item = &'n str>) -> Error {
    let known: Vec<&str> = names.collect();
    if known.is_empty() {
        return error;
    }
    let error = error.with("known", known.join(", "));
    match nearest(name, &known) {
        Some(near) => error.with("did you mean", near),
        None => error,
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.declaration() == other.declaration()
    }
}

impl Collection {
    /// The most entries of a batch that writes one record. The worst case is a move to another key
    /// that changes every entry and every count, with an idempotency key. It writes the record and
    /// its counters at both keys. While an aggregate is counted anew, the move writes its numbers
    /// twice, with a mark for either key. The removal of expired records is not included: if it
    /// does not fit into the batch, they are removed first.
    pub(crate) fn batch_entries_worst(&self) -> usize {
        let records = if self.counters.is_empty() { 2 } else { 4 };
        let (idempotency, history) = (1, self.history_cells_worst());
        self.indexes
            .values()
            .fold(records + idempotency + history, |sum: usize, index| {
                sum.saturating_add(index.max.saturating_mul(2))
            })
            .saturating_add(self.aggregates.len().saturating_mul(2 * 2 + 2))
    }

    /// The entries of a batch that creates one record with one entry in each index.
    pub(crate) fn creation_entries(&self) -> usize {
        let history = usize::from(self.history.is_some());
        1 + self.indexes.len() + self.aggregates.len() + history
    }

    /// The most cells of history that one change touches. A rename writes the new version and a
    /// trace under the old key, and a limit on versions removes the oldest one. A record that
    /// replaces an expired one also writes its own first version.
    fn history_cells_worst(&self) -> usize {
        let after_expired = usize::from(self.expiry.is_some());
        let of_one = |versions: Option<usize>| 2 + usize::from(versions.is_some());
        self.history.map_or(0, |history| of_one(history.versions) + after_expired)
    }

    /// The range of all records. Keys of other templates may lie in it too.
    pub(crate) fn record_range(&self) -> Result<Range> {
        range_of(&self.key, &self.area)
    }

    /// The index with this name; the error lists the existing ones.
    pub(crate) fn index(&self, name: &str) -> Result<&Arc<Index>> {
        self.indexes.get(name).ok_or_else(|| {
            let error =
                Error::new(ErrorKind::InvalidArgument, "the collection has no index of that name")
                    .with("collection", &self.name)
                    .with("index", name);
            with_known(error, name, self.indexes.keys().map(String::as_str))
        })
    }

    /// The index with this name, for a query.
    pub(crate) fn asked_index(&self, name: &str) -> Result<&Arc<Index>> {
        let index = self.index(name)?;
        if index.is_own() {
            let message = "Keyloom keeps this index for itself; declare one over the same field";
            return Err(Error::new(ErrorKind::InvalidQuery, message)
                .with("collection", &self.name)
                .with("index", name));
        }
        Ok(index)
    }

    /// The indexes that queries may use.
    pub(crate) fn asked_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.values().filter(|index| !index.is_own())
    }

    /// The names of everything that is kept beside the records: indexes and aggregates.
    pub(crate) fn kept_names(&self) -> impl Iterator<Item = &str> {
        self.indexes.keys().chain(self.aggregates.keys()).map(String::as_str)
    }

    /// Fails if neither an index nor an aggregate has this name.
    pub(crate) fn check_kept(&self, name: &str) -> Result<()> {
        if self.aggregates.contains_key(name) { Ok(()) } else { self.index(name).map(drop) }
    }

    /// The aggregate with this name; the error lists the existing ones.
    pub(crate) fn aggregate(&self, name: &str) -> Result<&Arc<Aggregate>> {
        self.aggregates.get(name).ok_or_else(|| {
            let message = "the collection has no aggregate of that name";
            let error = Error::new(ErrorKind::InvalidArgument, message)
                .with("collection", &self.name)
                .with("aggregate", name);
            with_known(error, name, self.aggregates.keys().map(String::as_str))
        })
    }

    /// The value for keys at a path without `*`; `None` if it is missing or `null`.
    pub(crate) fn value<'v>(&self, path: &Path, record: &'v Value) -> Option<&'v Value> {
        let field = if self.has_record_points { self.fields.get(path) } else { None };
        match field {
            Some(field) => field.value(record),
            None => path.get(record).filter(|value| !value.is_null()),
        }
    }
}

impl Index {
    /// Whether it is Keyloom's own index, in an area that no declared index can use. It leads to
    /// records of all owners, so no query may use it.
    pub(crate) fn is_own(&self) -> bool {
        self.area == Area::own()
    }

    /// The range of all entries. Keys of other templates may lie in it too.
    pub(crate) fn entry_range(&self) -> Result<Range> {
        range_of(&self.key, &self.area)
    }
}

fn range_of(template: &Template, area: &Area) -> Result<Range> {
    match template.range(&[], None) {
        Ok(range) => Ok(range.in_area(area.clone())),
        Err(refusal) => Err(refusal.into_error()),
    }
}

impl Field {
    /// The value for keys, for a path without `*`; `None` if it is missing or `null`. A point of
    /// the record itself is missing if both its members are.
    pub(crate) fn value<'v>(&self, record: &'v Value) -> Option<&'v Value> {
        match &self.kind {
            FieldKind::RecordPoint { lat, lon } => {
                let has = |name: &str| record.get(name).is_some_and(|value| !value.is_null());
                (has(lat) || has(lon)).then_some(record)
            }
            FieldKind::Key(_) | FieldKind::Map => {
                self.path.get(record).filter(|value| !value.is_null())
            }
        }
    }

    /// The type for keys, if the field can be part of a key.
    pub(crate) fn key_kind(&self) -> Option<Kind> {
        match &self.kind {
            FieldKind::Key(kind) => Some(kind.clone()),
            FieldKind::RecordPoint { lat, lon } => {
                Some(Kind::Point { lat: lat.clone(), lon: lon.clone() })
            }
            FieldKind::Map => None,
        }
    }
}
