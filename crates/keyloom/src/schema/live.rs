//! The schema of a space as this process knows it: loaded from the catalog, obeyed by every
//! writer, reloaded when the fence says that it has changed.

mod reads;

use std::any::TypeId;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::aggregate::Aggregate;
use super::catalog::{Catalog, CursorSecret, Generation, Generations, IndexState};
use super::declaration::SchemaDeclaration;
use super::evolution::{Change, Class, Evolution, evolve};
use super::model::{Collection, Index, Schema};
use crate::engine::{
    Address, Area, Batch, Capabilities, Cell, Condition, Direction, Effect, Engine, EngineExt,
    Fence, Outcome, Range, Reading, Space,
};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Template;
use crate::log::{Author, Note, encode};
use crate::record::{Version, random_bytes};
use crate::turns::Turns;
use reads::Epoch;
pub(crate) use reads::epoch_address;

/// How often a schema change is tried when other processes change the schema too.
const APPLY_ATTEMPTS: usize = 16;

/// How often the catalog is read until it shows as a whole, where batches show cell by cell.
const LOOKS: u64 = 64;

/// How long to wait before another look: at first not at all, since the rest of the batch is
/// about to show, and then longer, since whoever writes it may have to wait for others.
fn look_pause(look: u64) -> Duration {
    Duration::from_millis(look.saturating_sub(8))
}

/// The most cells that one group of an aggregate is spread over.
const CELLS_MAX: u16 = 64;

/// The catalog's key in Keyloom's own area.
const CATALOG_KEY: &[u8] = b"catalog";

/// One state of the schema.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The catalog's version; `None` while the space has no catalog.
    version: Option<Version>,
    pub(crate) catalog: Catalog,
    pub(crate) schema: Schema,
}

impl Loaded {
    /// What every batch is fenced with. A space without a catalog has no collections to write.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.version.map(|version| Fence { address: catalog_address(), stamp: version.stamp() })
    }

    pub(crate) fn state(&self, collection: &str, index: &str) -> &IndexState {
        self.catalog.state(collection, index)
    }

    /// Whether writers keep the entries of the index up to date.
    pub(crate) fn is_maintained(&self, collection: &Collection, index: &Index) -> bool {
        matches!(
            self.state(&collection.name, &index.name),
            IndexState::Ready | IndexState::Building
        )
    }

    /// The generations of an aggregate that writers keep up to date, each with whether records
    /// are marked in it: those of a generation that is not complete yet are.
    pub(crate) fn maintained(
        &self,
        aggregate: &Aggregate,
    ) -> impl Iterator<Item = (Generation, bool)> + use<> {
        let Aggregate { collection, name, .. } = aggregate;
        let Generations { current, next, .. } = self.catalog.generations(collection, name);
        let (current, next) = match self.state(collection, name) {
            IndexState::Ready => (Some((current, false)), next.map(|next| (next, true))),
            IndexState::Building => (Some((current, true)), None),
            IndexState::Disabled | IndexState::Failed { .. } => (None, None),
        };
        current.into_iter().chain(next)
    }

    /// The generation of an aggregate that is complete; an error when there is none.
    pub(crate) fn readable(&self, aggregate: &Aggregate) -> Result<Generation> {
        self.check_state(&aggregate.collection, "aggregate", &aggregate.name)?;
        Ok(self.catalog.generations(&aggregate.collection, &aggregate.name).current)
    }

    /// Refuses to read an index that is not complete.
    pub(crate) fn check_readable(&self, collection: &Collection, index: &Index) -> Result<()> {
        self.check_state(&collection.name, "index", &index.name)
    }

    fn check_state(&self, collection: &str, what: &'static str, name: &str) -> Result<()> {
        let (message, reason) = match self.state(collection, name) {
            IndexState::Ready => return Ok(()),
            IndexState::Building => {
                ("the index is still building; build it before it is read", None)
            }
            IndexState::Disabled => ("the index is disabled", None),
            IndexState::Failed { reason } => ("the index could not be built", Some(reason)),
        };
        let error = Error::new(ErrorKind::IndexNotReady, message)
            .with("collection", collection)
            .with(what, name);
        Err(match reason {
            Some(reason) => error.with("reason", reason),
            None => error,
        })
    }
}

/// What became of a schema that was applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// How it differs from the one that was in the store.
    pub changes: Vec<Change>,
    /// The indexes that must be built before they can be read: collection and index.
    pub to_build: Vec<(String, String)>,
    /// The collections with records that do not fit what this schema declares over them. Such
    /// records stay, and can be changed in other fields; what does not fit must fit once it is
    /// changed itself.
    pub misfits: Vec<Misfits>,
}

/// The records of a collection that do not fit what was declared over them. The first 1,000 records
/// are looked at; [`Store::verify`](crate::Store::verify) tells all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfits {
    /// The collection.
    pub collection: String,
    /// How many do not fit, of those that were looked at.
    pub records: u64,
    /// How many were looked at.
    pub looked_at: u64,
    /// Whether these are all records of the collection.
    pub is_exact: bool,
    /// The first of them.
    pub first: Vec<Misfit>,
}

/// A record that does not fit what was declared over it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// The key of the record.
    pub key: String,
    /// What does not fit, and why.
    pub reason: String,
}

impl Misfits {
    /// Those of a collection before any record was looked at.
    pub(crate) fn none(collection: &str) -> Self {
        let collection = collection.to_owned();
        Misfits { collection, records: 0, looked_at: 0, is_exact: true, first: Vec::new() }
    }
}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfits { collection, records, looked_at, is_exact, first } = self;
        let of = if *is_exact { "" } else { "the first " };
        write!(f, "{records} of {of}{looked_at} records of {collection} do not fit")?;
        match first.first() {
            Some(Misfit { key, reason }) => write!(f, ", such as {key}: {reason}"),
            None => Ok(()),
        }
    }
}

/// A space of an engine, with its schema.
pub(crate) struct Live {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) space: Space,
    /// Who writes which record now.
    pub(crate) turns: Arc<Turns>,
    epoch: Epoch,
    loaded: RwLock<Option<Arc<Loaded>>>,
    /// What this process declared, and therefore relies on.
    declared: RwLock<Vec<Schema>>,
    /// The Rust types whose schemas are known to be in the store.
    types: RwLock<HashSet<TypeId>>,
}

impl Live {
    pub(crate) fn new(engine: Arc<dyn Engine>, space: Space) -> Self {
        Live {
            engine,
            space,
            turns: Arc::default(),
            epoch: Epoch::new(),
            loaded: RwLock::new(None),
            declared: RwLock::new(Vec::new()),
            types: RwLock::default(),
        }
    }

    /// The schema as last seen; the first call reads it.
    pub(crate) async fn loaded(&self) -> Result<Arc<Loaded>> {
        let known = read(&self.loaded).clone();
        match known {
            Some(loaded) => Ok(loaded),
            None => self.reload().await,
        }
    }

    /// Reads the schema again, and fails if it breaks what this process declared.
    pub(crate) async fn reload(&self) -> Result<Arc<Loaded>> {
        let cell = self.catalog_cell().await?;
        let known = read(&self.loaded).clone();
        if let (Some(known), Some(cell)) = (known, &cell)
            && known.version.is_some_and(|version| version.stamp() == cell.stamp)
        {
            // Compiling a schema costs far more than reading it.
            return Ok(known);
        }
        let loaded = Arc::new(from_cell(cell)?);
        for declared in read(&self.declared).iter() {
            refuse_incompatible(&evolve(&loaded.schema, declared))?;
        }
        *write(&self.loaded) = Some(loaded.clone());
        Ok(loaded)
    }

    /// The catalog's cell, once its epoch shows too. Whoever writes by a schema that others do not
    /// know yet must be sure that they can see that there is one.
    async fn catalog_cell(&self) -> Result<Option<Cell>> {
        let both = [catalog_address(), self.epoch.address.clone()];
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(look_pause(look)).await;
            }
            let mut cells = self.engine.get(&self.space, &both).await?.into_iter();
            let (catalog, epoch) = (cells.next().flatten(), cells.next().flatten());
            if catalog.as_ref().map(|cell| cell.stamp) == epoch.map(|cell| cell.stamp) {
                return Ok(catalog);
            }
        }
        let message = "the store's catalog and its epoch are not of one write";
        Err(Error::new(ErrorKind::Corrupt, message).with_retry(true))
    }

    /// What a question means under the schema as last seen. A refusal reads nothing that could tell
    /// that the schema is out of date, so it is pronounced only under the schema as it is now:
    /// somebody else may have built the index, or declared it.
    pub(crate) async fn decide<D>(&self, decide: impl Fn(&Arc<Loaded>) -> Result<D>) -> Result<D> {
        let known = self.loaded().await?;
        let refusal = match decide(&known) {
            Ok(decided) => return Ok(decided),
            Err(refusal) => refusal,
        };
        let latest = self.reload().await?;
        if Arc::ptr_eq(&known, &latest) { Err(refusal) } else { decide(&latest) }
    }

    /// Commits a batch that was made under this state of the schema, and logs it where the space
    /// keeps a log. Everything that changes a space goes through here, or the log would miss it.
    pub(crate) async fn commit(
        &self,
        loaded: &Loaded,
        mut batch: Batch,
        note: impl FnOnce() -> Note,
    ) -> Result<Outcome> {
        if loaded.schema.log.is_some() {
            log(&mut batch, note);
        }
        self.engine.commit(batch).await
    }

    /// Makes the stored schema contain the declared one.
    pub(crate) async fn apply(&self, declared: &Schema, author: &Author) -> Result<Applied> {
        declared.check_against(self.engine.capabilities())?;
        for _ in 0..APPLY_ATTEMPTS {
            let loaded = self.reload().await?;
            let evolution = evolve(&loaded.schema, declared);
            refuse_incompatible(&evolution)?;
            let Evolution { changes, merged } = evolution;
            if loaded.version.is_some() && merged == loaded.catalog.schema {
                self.remember(declared);
                let to_build = self.settle_empty(author).await?;
                return Ok(Applied { changes, to_build, misfits: Vec::new() });
            }
            let schema = merged_schema(&merged)?;
            schema.check_against(self.engine.capabilities())?;
            let mut catalog = loaded.catalog.clone();
            catalog.schema = merged;
            // Writers must learn of an index before anybody looks whether there are records
            // that it lacks.
            let cells = self.cells_of_a_group();
            for (collection, name) in new_states(&loaded.schema, &schema) {
                catalog.set_state(&collection.name, name, IndexState::Building);
                if cells > 1 && collection.aggregates.contains_key(name) {
                    catalog.set_generations(&collection.name, name, Generations::first(cells));
                }
            }
            for collection in new_histories(&loaded.schema, &schema) {
                catalog.history_since.insert(collection.to_owned(), author.at);
            }
            if self.put_catalog(&loaded, catalog, author.clone()).await? {
                self.remember(declared);
                let to_build = self.settle_empty(author).await?;
                return Ok(Applied { changes, to_build, misfits: Vec::new() });
            }
        }
        Err(Error::new(
            ErrorKind::Contention,
            "the schema kept changing while it was being changed",
        ))
    }

    /// Refuses to go on unless the stored schema contains the declared one.
    pub(crate) async fn expect(&self, declared: &Schema) -> Result<()> {
        self.decide(|loaded| {
            let evolution = evolve(&loaded.schema, declared);
            refuse_incompatible(&evolution)?;
            if evolution.merged == loaded.catalog.schema {
                return Ok(());
            }
            let message = "the store lacks what is declared, and an acting user cannot change \
                           the schema; apply it without one";
            Err(Error::new(ErrorKind::Forbidden, message))
        })
        .await
    }

    /// Sets the state of an index, whatever else changes meanwhile.
    pub(crate) async fn set_state(
        &self,
        collection: &str,
        index: &str,
        state: IndexState,
    ) -> Result<()> {
        for _ in 0..APPLY_ATTEMPTS {
            let loaded = self.reload().await?;
            loaded.schema.collection(collection)?.check_kept(index)?;
            if *loaded.state(collection, index) == state {
                return Ok(());
            }
            let mut catalog = loaded.catalog.clone();
            catalog.set_state(collection, index, state.clone());
            if self.put_catalog(&loaded, catalog, Author::program()).await? {
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Contention,
            "the schema kept changing while it was being changed",
        ))
    }

    /// Sets the state of an index if nothing of the schema changed since it was loaded; `false`
    /// when something did.
    pub(crate) async fn replace_state(
        &self,
        loaded: &Loaded,
        collection: &str,
        index: &str,
        state: IndexState,
    ) -> Result<bool> {
        let mut catalog = loaded.catalog.clone();
        catalog.set_state(collection, index, state);
        self.put_catalog(loaded, catalog, Author::program()).await
    }

    /// Sets the state and the generations of an aggregate if nothing of the schema changed since
    /// it was loaded; `false` when something did.
    pub(crate) async fn replace_generations(
        &self,
        loaded: &Loaded,
        aggregate: &Aggregate,
        state: IndexState,
        generations: Generations,
    ) -> Result<bool> {
        let Aggregate { collection, name, .. } = aggregate;
        let mut catalog = loaded.catalog.clone();
        catalog.set_state(collection, name, state);
        catalog.set_generations(collection, name, generations);
        self.put_catalog(loaded, catalog, Author::program()).await
    }

    /// Building indexes of collections without records, and without entries from earlier times,
    /// are complete: every writer that may come maintains them already. So are aggregates, whose
    /// cells are never from earlier times. Gives those that are still to be built.
    async fn settle_empty(&self, author: &Author) -> Result<Vec<(String, String)>> {
        for _ in 0..APPLY_ATTEMPTS {
            let loaded = self.loaded().await?;
            let mut catalog = loaded.catalog.clone();
            for (name, index) in loaded.catalog.building() {
                let collection = loaded.schema.collection(&name)?;
                if self.is_bare(collection, collection.indexes.get(&index)).await? {
                    catalog.set_state(&name, &index, IndexState::Ready);
                }
            }
            let left = catalog.building();
            if catalog == loaded.catalog
                || self.put_catalog(&loaded, catalog, author.clone()).await?
            {
                return Ok(left);
            }
            self.reload().await?;
        }
        Err(Error::new(
            ErrorKind::Contention,
            "the schema kept changing while it was being changed",
        ))
    }

    /// How often everything is looked at before it is said that nothing is missing. Where batches
    /// show cell by cell, a record that was committed before an index was declared may show only
    /// after it was looked for. A second look finds it.
    pub(crate) fn looks(&self) -> usize {
        match self.engine.capabilities().reading {
            Reading::Snapshot => 1,
            Reading::Validated => 2,
        }
    }

    /// Whether there is neither a record that the index could lack nor an entry that it could have
    /// too much.
    async fn is_bare(&self, collection: &Collection, index: Option<&Arc<Index>>) -> Result<bool> {
        for _ in 0..self.looks() {
            if self.has_key(&collection.key, collection.record_range()?).await? {
                return Ok(false);
            }
            if let Some(index) = index
                && self.has_key(&index.key, index.entry_range()?).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a range holds a key of the template, maybe among others.
    async fn has_key(&self, template: &Template, mut range: Range) -> Result<bool> {
        while !range.is_empty() {
            let stretch = self.engine.scan_one(&self.space, &range, 1, Direction::Forward).await?;
            let Some(row) = stretch.rows.first() else { break };
            if template.decode(&row.key).is_some() {
                return Ok(true);
            }
            range = template.skip(&range, &row.key, Direction::Forward);
        }
        Ok(false)
    }

    /// Replaces the catalog unless it changed meanwhile; `false` when it did.
    async fn put_catalog(
        &self,
        loaded: &Loaded,
        mut catalog: Catalog,
        author: Author,
    ) -> Result<bool> {
        catalog.epoch += 1;
        let version = loaded.version.map_or_else(Version::first, Version::next);
        let condition = match loaded.version {
            Some(version) => Condition::Unchanged(version.stamp()),
            None => Condition::Absent,
        };
        let mut batch = Batch::new(self.space.clone());
        let put = Effect::Put { stamp: version.stamp(), bytes: catalog.to_bytes()?.into() };
        batch.push(catalog_address(), Some(condition), Some(put));
        let epoch = catalog.epoch.to_string();
        let put = Effect::Put { stamp: version.stamp(), bytes: epoch.into() };
        batch.push(self.epoch.address.clone(), None, Some(put));
        // The change that declares a log is its first entry.
        if catalog.schema.log.is_some() {
            log(&mut batch, || Note { author, changes: Vec::new() });
        }
        match self.engine.commit(batch).await? {
            Outcome::Committed(_) => {
                self.reload().await?;
                Ok(true)
            }
            Outcome::Rejected(_) => Ok(false),
        }
    }

    /// Over how many cells this engine wants a group to be spread. More than a few dozen would
    /// only make reading slow.
    pub(crate) fn cells_of_a_group(&self) -> u16 {
        u16::try_from(self.engine.capabilities().adds_spread)
            .unwrap_or(CELLS_MAX)
            .clamp(1, CELLS_MAX)
    }

    /// Whether the schema of a Rust type is known to be in the store. Nothing that is stored is
    /// ever taken back, and whoever writes or reads notices every change.
    pub(crate) fn knows_type(&self, of: TypeId) -> bool {
        read(&self.types).contains(&of)
    }

    /// Remembers that the schema of a Rust type is in the store.
    pub(crate) fn remember_type(&self, of: TypeId) {
        write(&self.types).insert(of);
    }

    fn remember(&self, declared: &Schema) {
        let mut all = write(&self.declared);
        if !all.contains(declared) {
            all.push(declared.clone());
        }
    }
}

/// Has a batch that changes something tell the log of it.
fn log(batch: &mut Batch, note: impl FnOnce() -> Note) {
    if batch.entries.iter().any(|entry| entry.effect.is_some()) {
        batch.append = Some(encode(&note(), batch));
    }
}

/// The schema that the catalog's cell holds; none at all without a catalog.
fn from_cell(cell: Option<Cell>) -> Result<Loaded> {
    let Some(cell) = cell else {
        return Ok(Loaded {
            version: None,
            catalog: Catalog::new(CursorSecret(random_bytes())),
            schema: Schema::default(),
        });
    };
    let bytes = cell
        .bytes()
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, "the catalog's cell holds integers"))?;
    let catalog = Catalog::from_bytes(bytes)?;
    let schema = catalog.compile()?;
    Ok(Loaded { version: Some(Version::from_stamp(cell.stamp)), catalog, schema })
}

fn refuse_incompatible(evolution: &Evolution) -> Result<()> {
    let mut broken =
        evolution.changes.iter().filter(|change| change.class == Class::Incompatible).peekable();
    if broken.peek().is_none() {
        return Ok(());
    }
    let message = "the declared schema contradicts the one in the store";
    let error = Error::new(ErrorKind::IncompatibleSchema, message);
    Err(broken.fold(error, |error, change| error.with("change", change)))
}

/// Two schemas that are fine by themselves may have templates that share a key.
fn merged_schema(merged: &SchemaDeclaration) -> Result<Schema> {
    Schema::from_declaration(merged.clone()).map_err(|source| {
        let message = "the declared schema and what the store keeps do not fit together";
        let error = Error::new(ErrorKind::IncompatibleSchema, message);
        let problems = source.context().map(|(_, problem)| problem.to_owned()).collect::<Vec<_>>();
        problems
            .into_iter()
            .fold(error, |error, problem| error.with("problem", problem))
            .with_source(source)
    })
}

/// The indexes and aggregates that the union has and the store had not: collection and name.
fn new_states<'s>(
    stored: &'s Schema,
    union: &'s Schema,
) -> impl Iterator<Item = (&'s Collection, &'s str)> {
    union.collections.values().flat_map(move |collection| {
        let known = stored.collections.get(&collection.name);
        collection
            .kept_names()
            .filter(move |name| known.is_none_or(|known| known.check_kept(name).is_err()))
            .map(move |name| (&**collection, name))
    })
}

/// The collections whose history begins, or is kept by other bounds.
fn new_histories<'s>(
    stored: &'s Schema,
    union: &'s Schema,
) -> impl Iterator<Item = &'s str> + use<'s> {
    let known = |name: &String| stored.collections.get(name).and_then(|known| known.history);
    union
        .collections
        .iter()
        .filter(move |(name, collection)| {
            collection.history.is_some() && collection.history != known(name)
        })
        .map(|(name, _)| name.as_str())
}

pub(crate) fn catalog_address() -> Address {
    Address::new(Area::own(), CATALOG_KEY)
}

/// Refuses the cell of a catalog that cannot be understood, or whose schema the engine cannot hold.
pub(crate) fn check_catalog(cell: Cell, capabilities: &Capabilities) -> Result<()> {
    from_cell(Some(cell))?.schema.check_against(capabilities)
}

/// The locks are held for moments only, by code that does not panic: a poisoned one still holds
/// a whole value.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
