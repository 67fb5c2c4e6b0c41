//! Changes of the catalog: a schema is applied, an index changes its state.

use std::sync::Arc;

use super::applied::Applied;
use super::live::Live;
use super::loaded::{Loaded, catalog_address};
use crate::engine::{Batch, Condition, Direction, Effect, Entry, Outcome, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Template;
use crate::log::{Author, Note};
use crate::record::Version;
use crate::schema::{
    Aggregate, Catalog, Class, Collection, Evolution, Generations, Index, IndexState, Schema,
    SchemaDeclaration, evolve,
};

/// How often a schema change is tried when other processes change the schema too.
const APPLY_ATTEMPTS: usize = 16;

impl Live {
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
            if self.put_catalog(&loaded, catalog, author.clone(), Vec::new()).await? {
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
            if self.put_catalog(&loaded, catalog, Author::program(), Vec::new()).await? {
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Contention,
            "the schema kept changing while it was being changed",
        ))
    }

    /// Sets the state of an index if nothing of the schema changed since it was loaded, and ends
    /// the task that came to it; `false` when something did.
    pub(crate) async fn replace_state(
        &self,
        loaded: &Loaded,
        collection: &str,
        index: &str,
        state: IndexState,
        ended: Vec<Entry>,
    ) -> Result<bool> {
        let mut catalog = loaded.catalog.clone();
        catalog.set_state(collection, index, state);
        self.put_catalog(loaded, catalog, Author::program(), ended).await
    }

    /// Sets the state and the generations of an aggregate if nothing of the schema changed since
    /// it was loaded, and ends the task that came to it; `false` when something did.
    pub(crate) async fn replace_generations(
        &self,
        loaded: &Loaded,
        aggregate: &Aggregate,
        state: IndexState,
        generations: Generations,
        ended: Vec<Entry>,
    ) -> Result<bool> {
        let Aggregate { collection, name, .. } = aggregate;
        let mut catalog = loaded.catalog.clone();
        catalog.set_state(collection, name, state);
        catalog.set_generations(collection, name, generations);
        self.put_catalog(loaded, catalog, Author::program(), ended).await
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
                || self.put_catalog(&loaded, catalog, author.clone(), Vec::new()).await?
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
            let stretch = self.scan_one(&range, 1, Direction::Forward).await?;
            let Some(row) = stretch.rows.first() else { break };
            if template.decode(&row.key).is_some() {
                return Ok(true);
            }
            range = template.skip(&range, &row.key, Direction::Forward);
        }
        Ok(false)
    }

    /// Replaces the catalog unless it changed meanwhile, or what is to go with it is no longer so;
    /// `false` when it did.
    async fn put_catalog(
        &self,
        loaded: &Loaded,
        mut catalog: Catalog,
        author: Author,
        with: Vec<Entry>,
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
        batch.entries.extend(with);
        // The change that declares a log is its first entry.
        let keeps_log = catalog.schema.log.is_some();
        let note = || Note { author, changes: Vec::new() };
        match self.commit_logged(keeps_log, batch, note).await? {
            Outcome::Committed(_) => {
                self.reload().await?;
                Ok(true)
            }
            Outcome::Rejected(_) => Ok(false),
        }
    }
}

pub(super) fn refuse_incompatible(evolution: &Evolution) -> Result<()> {
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
