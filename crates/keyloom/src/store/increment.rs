//! Increments counters.

use serde_json::{Value, json};

use super::Store;
use super::collection::Collection;
use super::fields::KeyFields;
use crate::error::{Error, ErrorKind, Result};
use crate::write::{self, Added, Counters, Increment, Request, Transaction, once};

impl Increment {
    /// No increments yet, for the record that these fields of its key name.
    pub fn of(collection: &str, key: impl KeyFields) -> Self {
        let key = key.into_values();
        Increment { collection: collection.to_owned(), key, deltas: Vec::new() }
    }

    /// Adds to one more counter; a negative number subtracts. Several additions to one counter are
    /// summed.
    pub fn add(mut self, counter: impl Into<String>, delta: i64) -> Self {
        self.deltas.push((counter.into(), delta));
        self
    }
}

/// Counters are declared (`[collection.….counters]`), kept beside the record, and shown in it when
/// it is read.
impl<T> Collection<T> {
    /// Adds to any number of counters of a record in one atomic step, and gives all counters of the
    /// record right after it.
    ///
    /// It takes one batch and no read. It never conflicts with another write, does not change the
    /// record's version, and no update undoes it. A sum outside the declared bounds or 64 bits, an
    /// unknown counter, and a missing record are errors that change nothing.
    pub async fn increment(
        &self,
        key: impl KeyFields,
        deltas: impl IntoIterator<Item = (impl Into<String>, i64)>,
    ) -> Result<Counters> {
        let deltas = owned(deltas);
        let asked = Increment { deltas, ..Increment::of(&self.name, key) };
        let counters = self.add(vec![asked]).await?.pop();
        counters.ok_or_else(|| Error::new(ErrorKind::Internal, "an addition has no answer"))
    }

    /// As [`increment`](Self::increment), for several records at once, all or nothing, in one round
    /// trip.
    pub async fn increment_many(
        &self,
        records: impl IntoIterator<
            Item = (impl KeyFields, impl IntoIterator<Item = (impl Into<String>, i64)>),
        >,
    ) -> Result<Vec<Counters>> {
        let asked: Vec<Increment> = records
            .into_iter()
            .map(|(key, deltas)| Increment {
                deltas: owned(deltas),
                ..Increment::of(&self.name, key)
            })
            .collect();
        self.add(asked).await
    }

    async fn add(&self, asked: Vec<Increment>) -> Result<Vec<Counters>> {
        let payload = || asked.iter().map(|asked| json!([asked.key, asked.deltas])).collect();
        let added = once!(&self.session, self.request("increment", payload), |session| async {
            write::increment(&session, &asked).await.map(|counters| Added(Some(counters)))
        });
        match added? {
            Added(Some(counters)) => Ok(counters),
            Added(None) => write::counters(&self.session, &asked).await,
        }
    }
}

impl Store {
    /// Adds to counters of records of any collections, all or nothing, in one round trip. Gives all
    /// counters of each record right after it, in the order of the increments.
    pub async fn increment_many(
        &self,
        increments: impl IntoIterator<Item = Increment>,
    ) -> Result<Vec<Counters>> {
        let asked: Vec<Increment> = increments.into_iter().collect();
        let request = Request::new("increment", "", Value::Null);
        let added: Result<Added> = once!(self.session(), request, |session| async {
            write::increment(&session, &asked).await.map(|counters| Added(Some(counters)))
        });
        Ok(added?.0.unwrap_or_default())
    }
}

impl Transaction {
    /// Adds to counters of records of any collections when the transaction commits.
    pub async fn increment_many(
        &self,
        increments: impl IntoIterator<Item = Increment>,
    ) -> Result<()> {
        increments.into_iter().try_for_each(|Increment { collection, key, deltas }| {
            let declared = self.declared(&collection)?;
            let key = super::collection::key_of(self.session(), &declared, &key)?;
            self.increment(&declared, &key, &deltas)
        })
    }
}

pub(super) fn owned(
    deltas: impl IntoIterator<Item = (impl Into<String>, i64)>,
) -> Vec<(String, i64)> {
    deltas.into_iter().map(|(name, delta)| (name.into(), delta)).collect()
}
