//! A space of an engine with its schema as this process knows it: loaded from the catalog, obeyed by
//! every writer, reloaded when the fence says that it has changed.

use std::any::TypeId;
use std::collections::HashSet;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::apply::refuse_incompatible;
use super::loaded::{Loaded, catalog_address, from_cell};
use super::reads::Epoch;
use super::turns::Turns;
use crate::engine::{
    Address, Batch, Cell, Direction, Engine, EngineExt, Entry, Outcome, Range, Reading, Row, Space,
    Stretch,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Note, encode};
use crate::own::is_of_this_store;
use crate::schema::{Schema, evolve};

/// How often the catalog is read until it shows as a whole, where batches show cell by cell.
const LOOKS: u64 = 64;

/// How long to wait before another look: at first not at all, since the rest of the batch is
/// about to show, and then longer, since whoever writes it may have to wait for others.
fn look_pause(look: u64) -> Duration {
    Duration::from_millis(look.saturating_sub(8))
}

/// The most cells that one group of an aggregate is spread over.
const CELLS_MAX: u16 = 64;

/// A space of an engine, with its schema.
pub(crate) struct Live {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) space: Space,
    /// Who writes which record now.
    pub(crate) turns: Arc<Turns>,
    pub(super) epoch: Epoch,
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

    /// What these addresses hold, as [`Engine::get`] reads it.
    pub(crate) async fn get(&self, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        self.engine.get(&self.space, addresses).await
    }

    /// What one address holds.
    pub(crate) async fn get_one(&self, address: &Address) -> Result<Option<Cell>> {
        self.engine.get_one(&self.space, address).await
    }

    /// The first cells of a range.
    pub(crate) async fn scan_one(
        &self,
        range: &Range,
        limit: usize,
        direction: Direction,
    ) -> Result<Stretch<Row>> {
        self.engine.scan_one(&self.space, range, limit, direction).await
    }

    /// The first cells of each of these ranges, all read in one call.
    pub(crate) async fn scan(
        &self,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.engine.scan(&self.space, ranges, limit, direction).await
    }

    /// Commits a batch that was made under this state of the schema, and logs it where the space
    /// keeps a log. Everything that changes a space goes through here, or the log would miss it.
    pub(crate) async fn commit(
        &self,
        loaded: &Loaded,
        batch: Batch,
        note: impl FnOnce() -> Note,
    ) -> Result<Outcome> {
        self.commit_logged(loaded.schema.log.is_some(), batch, note).await
    }

    /// Commits a batch, and logs it if the space keeps a log.
    pub(super) async fn commit_logged(
        &self,
        keeps_log: bool,
        mut batch: Batch,
        note: impl FnOnce() -> Note,
    ) -> Result<Outcome> {
        let is_told = |entry: &Entry| entry.effect.is_some() && !is_of_this_store(&entry.address);
        if keeps_log && batch.entries.iter().any(is_told) {
            batch.append = Some(encode(&note(), &batch));
        }
        self.engine.commit(batch).await
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

    pub(super) fn remember(&self, declared: &Schema) {
        let mut all = write(&self.declared);
        if !all.contains(declared) {
            all.push(declared.clone());
        }
    }
}

/// The locks are held for moments only, by code that does not panic: a poisoned one still holds
/// a whole value.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
