//! How much a space holds: records, entries, bytes, and the engine's own figures.

use super::Store;
use crate::engine::Figure;
use crate::error::Result;
use crate::schema::IndexState;
use crate::space::{KeyCount, count_keys_of};

/// Bounds of what is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsOptions {
    /// The most keys that are counted of each collection and of each index; 100,000 unless set.
    pub keys_max: usize,
    /// Counts only this collection.
    pub collection: Option<String>,
}

impl Default for StatsOptions {
    fn default() -> Self {
        StatsOptions { keys_max: 100_000, collection: None }
    }
}

/// How much a space holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoreStats {
    /// The engine's name.
    pub engine: &'static str,
    /// Whether acknowledged writes survive the end of the process.
    pub is_persistent: bool,
    /// Each collection, in order of the names.
    pub collections: Vec<CollectionStats>,
    /// The engine's own figures. They cover all spaces.
    pub figures: Vec<Figure>,
}

/// How much a collection holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CollectionStats {
    /// Its name.
    pub name: String,
    /// The records, including those that have expired but were not swept yet.
    pub records: Amount,
    /// Each index, including Keyloom's own index over the ends of records.
    pub indexes: Vec<IndexStats>,
}

/// How much an index holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexStats {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: IndexState,
    /// Its entries. Those of an index that is disabled stay until it is built again.
    pub entries: Amount,
}

/// A number of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// How many.
    pub keys: u64,
    /// The bytes of these keys and their values as they were written. What the engine stores
    /// differs: it compresses, and adds data of its own.
    pub bytes: u64,
    /// Whether everything was counted. If not, the true number is higher.
    pub is_exact: bool,
}

impl From<KeyCount> for Amount {
    fn from(KeyCount { keys, bytes, is_exact }: KeyCount) -> Self {
        Amount { keys, bytes, is_exact }
    }
}

impl Store {
    /// How much each collection and index of this space holds, counted within a budget, and the
    /// engine's own figures. Refused to acting users.
    pub async fn stats(&self, options: &StatsOptions) -> Result<StoreStats> {
        let live = self.session().program()?;
        let loaded = live.reload().await?;
        if let Some(name) = &options.collection {
            loaded.schema.collection(name)?;
        }
        let is_asked = |name: &str| options.collection.as_deref().is_none_or(|asked| asked == name);
        let mut collections = Vec::new();
        for collection in loaded.schema.collections.values().filter(|it| is_asked(&it.name)) {
            let records = collection.record_range()?;
            let records = count_keys_of(live, &collection.key, records, options.keys_max).await?;
            let mut indexes = Vec::new();
            for index in collection.indexes.values() {
                let range = index.entry_range()?;
                let entries = count_keys_of(live, &index.key, range, options.keys_max).await?;
                indexes.push(IndexStats {
                    name: index.name.clone(),
                    state: loaded.state(&collection.name, &index.name).clone(),
                    entries: entries.into(),
                });
            }
            let name = collection.name.clone();
            collections.push(CollectionStats { name, records: records.into(), indexes });
        }
        let capabilities = live.engine.capabilities();
        Ok(StoreStats {
            engine: capabilities.engine,
            is_persistent: capabilities.persistent,
            collections,
            figures: live.engine.figures(),
        })
    }
}
