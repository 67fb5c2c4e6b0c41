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

/// The entries of one record in an index that walks over an array or a map, unless it says
/// otherwise.
pub(crate) const MAX_DEFAULT: usize = 16;

/// A checked schema. Two schemas are equal when their declarations are.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) collections: BTreeMap<String, Arc<Collection>>,
    /// How much of the change log is kept, in a space that keeps one.
    pub(crate) log: Option<LogDeclaration>,
    pub(crate) idempotency: Option<IdempotencyDeclaration>,
    /// For how long the answers to idempotency keys are kept.
    pub(crate) idempotency_keep_ms: u64,
}

impl Default for Schema {
    /// A schema without a collection.
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
    /// Where the records are.
    pub(crate) area: Area,
    /// The key of a record. It has no `*` and loses nothing: a key decodes to its fields.
    pub(crate) key: Template,
    /// The fields of the record's key, in the order of the template's segments.
    pub(crate) key_paths: Vec<Path>,
    /// What an acting user may do with the records.
    pub(crate) access: Access,
    /// The field that names a record's owner: the first of its key, and a text. Always there on
    /// owned and hybrid collections.
    pub(crate) owner: Option<Path>,
    /// Every declared field, and the names (`x.*key`) of every declared map.
    pub(crate) fields: BTreeMap<Path, Field>,
    /// Whether a field is a point of the record itself; without one, the value of a path is what
    /// lies there.
    pub(crate) has_record_points: bool,
    /// Indexes of all kinds, and the one that Keyloom keeps for itself where records expire.
    pub(crate) indexes: BTreeMap<String, Arc<Index>>,
    /// Counts and sums. No index has the name of one.
    pub(crate) aggregates: BTreeMap<String, Arc<Aggregate>>,
    /// What is counted beside each record.
    pub(crate) counters: Counters,
    /// When its records end, if they do. There is an index over it, in Keyloom's own area.
    pub(crate) expiry: Option<Expiry>,
    pub(crate) body: Option<BodySchema>,
    /// How much of each record's past is kept, if any of it is.
    pub(crate) history: Option<HistoryDeclaration>,
    /// What it was compiled from. Shared, since every process that asks by it asks often.
    pub(crate) declaration: Arc<CollectionDeclaration>,
}

/// One declared field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) path: Path,
    pub(crate) kind: FieldKind,
    /// An insert without it gets a fresh value: an id, a random UUID (version 4), a code, or the
    /// present time. Never on a path with `*`.
    pub(crate) generate: bool,
    /// A record without it is refused: declared so, or a field of the record's key.
    pub(crate) required: bool,
    /// Only on an enum.
    pub(crate) transitions: Option<Transitions>,
}

/// What a field is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    /// A value that keys can be made of.
    Key(Kind),
    /// A point whose two members are members of the record itself. The value that keys are made
    /// of is the record; see [`Field::value`].
    RecordPoint { lat: String, lon: String },
    /// An object whose names are data.
    Map,
}

/// One index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) kind: IndexKind,
    /// Where the entries are: the collection's area, unless declared otherwise.
    pub(crate) area: Area,
    /// The key of an entry.
    pub(crate) key: Template,
    /// The value of an entry. With the key it determines the record's key.
    pub(crate) holds: Holds,
    /// Which records have entries; all when there is none.
    pub(crate) condition: Option<Condition>,
    /// The array or map that it walks over: one entry for each element. All starred paths of
    /// `key` share it.
    pub(crate) star: Option<Path>,
    /// The most entries of one record: 1 without `star`.
    pub(crate) max: usize,
    /// Every put is conditional on absence: always on a unique index, on others as declared.
    pub(crate) claims: bool,
    /// A record that lacks an indexed field has no entry; otherwise it is refused.
    pub(crate) sparse: bool,
    /// How an engine gets from an entry to its record by itself, where bytes alone tell.
    pub(crate) recipe: Option<Recipe>,
    /// Whether keys of another template may lie between its own.
    pub(crate) interleaved: bool,
}

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexKind {
    Value,
    Unique,
    /// Exactly one segment is a geohash.
    Geo,
}

/// What the entries of an index hold. No path has a `*`.
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
    /// Makes sure that the engine can do what the schema asks for, and that every single write of
    /// it fits into one batch.
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

    /// What this schema was compiled from, in its canonical form.
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

    /// The collection of that name; the error lists those that there are.
    pub(crate) fn collection(&self, name: &str) -> Result<&Arc<Collection>> {
        self.collections.get(name).ok_or_else(|| {
            let error =
                Error::new(ErrorKind::InvalidArgument, "the schema has no collection of that name")
                    .with("collection", name);
            with_known(error, name, self.collection_names())
        })
    }
}

/// Lists what there is instead, if there is anything.
/// Adds the names that there are, and the one that was likely meant.
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
    /// The most entries of one batch that writes one record: a move to another key that changes
    /// every entry and every count, and has an idempotency key. It writes the record and its
    /// counters at both keys. While an aggregate is counted anew, its numbers are written twice,
    /// with a mark for either key. What expired records add to a batch is no part of it: where it
    /// does not fit, they go first.
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

    /// The entries of a batch that creates one record which has one entry in each index.
    pub(crate) fn creation_entries(&self) -> usize {
        let history = usize::from(self.history.is_some());
        1 + self.indexes.len() + self.aggregates.len() + history
    }

    /// The most cells of history that one change touches: a rename puts the new version and a
    /// trace under the old key, and a count of versions removes the oldest. A record that takes
    /// the place of an expired one adds its own first version to all that.
    fn history_cells_worst(&self) -> usize {
        let after_expired = usize::from(self.expiry.is_some());
        let of_one = |versions: Option<usize>| 2 + usize::from(versions.is_some());
        self.history.map_or(0, |history| of_one(history.versions) + after_expired)
    }

    /// The range that all records lie in, maybe among keys of other templates.
    pub(crate) fn record_range(&self) -> Result<Range> {
        range_of(&self.key, &self.area)
    }

    /// The index of that name; the error lists those that there are.
    pub(crate) fn index(&self, name: &str) -> Result<&Arc<Index>> {
        self.indexes.get(name).ok_or_else(|| {
            let error =
                Error::new(ErrorKind::InvalidArgument, "the collection has no index of that name")
                    .with("collection", &self.name)
                    .with("index", name);
            with_known(error, name, self.indexes.keys().map(String::as_str))
        })
    }

    /// The index of that name, for a question.
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

    /// The indexes that questions may go by.
    pub(crate) fn asked_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.values().filter(|index| !index.is_own())
    }

    /// The names of everything that is kept besides the records: indexes and aggregates.
    pub(crate) fn kept_names(&self) -> impl Iterator<Item = &str> {
        self.indexes.keys().chain(self.aggregates.keys()).map(String::as_str)
    }

    /// Refuses a name that neither an index nor an aggregate has.
    pub(crate) fn check_kept(&self, name: &str) -> Result<()> {
        if self.aggregates.contains_key(name) { Ok(()) } else { self.index(name).map(drop) }
    }

    /// The aggregate of that name; the error lists those that there are.
    pub(crate) fn aggregate(&self, name: &str) -> Result<&Arc<Aggregate>> {
        self.aggregates.get(name).ok_or_else(|| {
            let message = "the collection has no aggregate of that name";
            let error = Error::new(ErrorKind::InvalidArgument, message)
                .with("collection", &self.name)
                .with("aggregate", name);
            with_known(error, name, self.aggregates.keys().map(String::as_str))
        })
    }

    /// The value that a key is made of, at a path without `*`. `None` when it is missing or
    /// `null`: the record has no such value.
    pub(crate) fn value<'v>(&self, path: &Path, record: &'v Value) -> Option<&'v Value> {
        let field = if self.has_record_points { self.fields.get(path) } else { None };
        match field {
            Some(field) => field.value(record),
            None => path.get(record).filter(|value| !value.is_null()),
        }
    }
}

impl Index {
    /// Whether Keyloom keeps it for itself: its entries lie where no declared one's can. It leads
    /// to records of all owners, so that no question goes by it.
    pub(crate) fn is_own(&self) -> bool {
        self.area == Area::own()
    }

    /// The range that all entries lie in, maybe among keys of other templates.
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
    /// The value that a key is made of, for a path without `*`. `None` when it is missing or
    /// `null`. A point of the record itself is missing when both its members are.
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

    /// The type for keys, if keys can be made of it.
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
