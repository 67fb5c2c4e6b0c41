//! Inserts many new records in large batches. Prepares each batch while the one before is written.

use std::borrow::Borrow;

use serde::Serialize;

use super::collection::{Collection, to_json};
use super::under_way::UnderWay;
use crate::error::{Error, ErrorKind, Fate, Result};
use crate::write::{BulkInsert, bulk_insert, is_of_record};

/// The most records of a batch, and the number in the first batch, while their sizes are unknown.
const RECORDS_MAX: usize = 1_000;
const RECORDS_AT_FIRST: usize = 100;

/// The approximate size of the records in a batch.
const BYTES: usize = 1 << 20;

/// How many refused records the answer lists. It counts all of them.
const REFUSED_MAX: usize = 1_000;

/// The outcome of a load.
#[derive(Debug, Default)]
pub struct Load {
    /// How many were inserted.
    pub inserted: u64,
    /// The first thousand records that were refused, in the order in which they were given.
    pub refused: Vec<Unloaded>,
    /// How many records were refused.
    pub refused_count: u64,
}

/// A record that was not inserted.
#[derive(Debug)]
pub struct Unloaded {
    /// Its place among the given records, from 0.
    pub place: u64,
    /// Why it was refused.
    pub error: Error,
}

impl<T: Serialize + 'static> Collection<T> {
    /// Inserts many records, faster than one by one: they share batches, and the next batch is
    /// prepared while the last is made durable. Each record comes with all its entries or not at
    /// all, as by [`insert`](Self::insert). Together they are not atomic, and readers may see some
    /// before others.
    ///
    /// A record that cannot be inserted does not hold up the others. The answer lists its place and
    /// the reason: it breaks the schema, its key is taken, or another record has its unique value.
    /// Of two records with the same key, one is inserted.
    ///
    /// An error means that the store failed. Its context says how many records were certainly
    /// `inserted`. If it says that the write may have happened, records of the failed batch may be
    /// in the store too. Loading the same records again shows which ones are. Records with
    /// generated keys, however, are inserted again by that.
    ///
    /// ```
    /// # use keyloom::{Schema, blocking::Store};
    /// # use serde_json::json;
    /// # let store = Store::open("memory:")?;
    /// # let schema = "[collection.city]\nkey = \"city:{id}\"\nfields = { id = \"integer\" }\n";
    /// # store.apply(&Schema::from_toml(schema)?)?;
    /// let cities = store.documents("city")?;
    /// let load = cities.load((0..5_000).map(|number| json!({ "id": number % 4_999 })))?;
    /// assert_eq!(load.inserted, 4_999);
    /// assert_eq!(load.refused[0].place, 4_999);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub async fn load(&self, records: impl IntoIterator<Item = impl Borrow<T>>) -> Result<Load> {
        if self.session.key().is_some() {
            let message = "an idempotency key is for one batch, and a load may be many";
            return Err(Error::new(ErrorKind::InvalidArgument, message)
                .with("collection", &self.name)
                .with("instead", "load without a key; what is there already is refused"));
        }
        let mut loading = Loading::new(self.records_at_once().await?);
        let mut records = records.into_iter();
        let mut under_way = UnderWay::default();
        while loading.failure.is_none() {
            let batch: Vec<_> = records.by_ref().take(loading.records_at_once).collect();
            if batch.is_empty() {
                break;
            }
            let first = loading.begun;
            loading.begun += batch.len() as u64;
            if let Some(earlier) = under_way.begin(self.insert_batch(batch, first)).await {
                loading.note(earlier);
            }
        }
        while let Some(earlier) = under_way.end_first().await {
            loading.note(earlier);
        }
        loading.finish()
    }

    /// How many records fit into a batch if each adds one entry to each index.
    async fn records_at_once(&self) -> Result<usize> {
        let loaded = self.session.live.loaded().await?;
        let collection = loaded.schema.collection(&self.name)?;
        let entries_max = self.session.live.engine.capabilities().batch_entries_max;
        Ok((entries_max / collection.creation_entries()).clamp(1, RECORDS_MAX))
    }

    async fn insert_batch<R: Borrow<T>>(&self, records: Vec<R>, first: u64) -> Part {
        let mut part = Part { records: records.len(), ..Part::default() };
        part.failure = self.insert_all(&records, first, &mut part).await.err();
        part
    }

    async fn insert_all<R: Borrow<T>>(
        &self,
        records: &[R],
        first: u64,
        part: &mut Part,
    ) -> Result<()> {
        let values = records.iter().map(|record| to_json(&self.name, record.borrow()));
        bulk_insert(&self.session, &self.name, values, &mut part.bulk).await?;
        for place in std::mem::take(&mut part.bulk.left) {
            match self.insert(records[place].borrow()).await {
                Ok(_) => part.bulk.created += 1,
                Err(error) if is_of_record(&error) => {
                    part.refused.push(Unloaded { place: first + place as u64, error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The outcome of one batch.
#[derive(Default)]
struct Part {
    records: usize,
    bulk: BulkInsert,
    refused: Vec<Unloaded>,
    /// The error that ended the batch.
    failure: Option<Error>,
}

/// The outcome of all batches so far, and the sizes of the records.
struct Loading {
    load: Load,
    /// How many records were put into batches.
    begun: u64,
    failure: Option<Error>,
    records_at_once: usize,
    /// Halved when a batch turned out too large for the engine.
    records_max: usize,
}

impl Loading {
    fn new(records_max: usize) -> Self {
        Loading {
            load: Load::default(),
            begun: 0,
            failure: None,
            records_at_once: records_max.min(RECORDS_AT_FIRST),
            records_max,
        }
    }

    fn note(&mut self, part: Part) {
        let Part { records, bulk, refused, failure } = part;
        // A record that is too large by itself says nothing of batches.
        let is_of_one = |one: &Unloaded| one.error.kind() == ErrorKind::LimitExceeded;
        if bulk.was_too_large && !refused.iter().any(is_of_one) {
            self.records_max = (records / 2).max(1);
        }
        self.load.inserted += bulk.created as u64;
        self.load.refused_count += refused.len() as u64;
        let room = REFUSED_MAX - self.load.refused.len();
        self.load.refused.extend(refused.into_iter().take(room));
        let bytes_of_one = (bulk.bytes / records.max(1)).max(1);
        self.records_at_once = (BYTES / bytes_of_one).clamp(1, self.records_max);
        self.failure = match (self.failure.take(), failure) {
            // The first error is reported. Of the second, only its fate matters.
            (Some(first), Some(other)) if other.fate() == Fate::MayHaveHappened => {
                Some(first.with_fate(Fate::MayHaveHappened))
            }
            (first, other) => first.or(other),
        };
    }

    fn finish(self) -> Result<Load> {
        match self.failure {
            None => Ok(self.load),
            Some(failure) => Err(failure.with("inserted", self.load.inserted)),
        }
    }
}
