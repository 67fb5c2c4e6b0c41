//! The types that a program works with: stores, collections, transactions.

mod aggregates;
mod backup;
mod branches;
mod change_log;
mod collection;
mod distribution;
mod fields;
mod finite;
mod history;
mod in_transaction;
mod increment;
mod jobs;
mod leased;
mod load;
mod maintenance;
mod names;
mod owned_keys;
mod pages;
mod partial_updates;
mod pinned;
mod plain;
mod raw_keys;
mod replay;
mod restore;
mod stats;
mod stored;
mod under_way;
mod visible_keys;
mod watch;
mod written;

pub use backup::Backup;
pub use branches::{Branch, BranchOptions, Branches};
pub use change_log::{Became, Changes, Logged, LoggedChange};
pub use collection::Collection;
pub use distribution::{Distribution, IndexShare};
pub use fields::KeyFields;
pub use in_transaction::TransactionCollection;
pub use jobs::{Job, JobOptions, Started};
pub use leased::Leased;
pub use load::{Load, Unloaded};
pub use maintenance::StoredSchema;
pub use owned_keys::{OwnedKey, OwnedKind};
pub use pages::{PagedRecords, Pages};
pub use plain::{Listed, Listing, Plain};
pub use raw_keys::{RawKey, RawKeys, RawKind, RawList, RawPage};
pub use replay::Replayed;
pub use restore::Restorer;
pub use stats::{Amount, CollectionStats, IndexStats, StatsOptions, StoreStats};
pub use stored::Stored;
pub use watch::{Watch, WatchOptions};
pub use written::Written;

use std::any::TypeId;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::engine::{self, Absent, Engine, Space};
use crate::error::{Error, Result};
use crate::index;
use crate::schema::{Schema, Warning};
use crate::side::Answer;
use crate::space::{Applied, Live};
use crate::space::{Clock, Retry, Session};
use crate::typed::Record;
use crate::write::{self, Failed, Json, Origin, Replay, Request, Transaction, once};

/// A store, seen through one of its spaces. Cloning is cheap and shares everything.
#[derive(Clone)]
pub struct Store {
    session: Session,
    shared: Arc<Shared>,
}

/// How many spaces a store remembers before it forgets those without handles.
const SPACES_KEPT: usize = 1024;

struct Shared {
    engine: Arc<dyn Engine>,
    /// One schema per space and process, so that all handles see a change together.
    spaces: Mutex<HashMap<Space, Arc<Live>>>,
}

impl Store {
    /// Opens a store by its address: `file:PATH` for a folder, which is created if it is missing,
    /// or `memory:` for a store that ends with the process. For tests, `memory:?conflicts=3`
    /// refuses one in three commits that depend on a record as it was read, as if another writer
    /// had been faster.
    ///
    /// Folders need the feature `embedded`, which is on unless it was turned off.
    pub async fn open(address: &str) -> Result<Self> {
        Ok(Store::on(engine::open(address, Absent::IsMade).await?))
    }

    /// As [`open`](Self::open), for a store that must be there: instead of making one in a folder
    /// that is missing or empty, it fails with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound).
    pub async fn open_existing(address: &str) -> Result<Self> {
        Ok(Store::on(engine::open(address, Absent::IsAnError).await?))
    }

    /// A store on an engine that the program opened.
    pub fn on(engine: Arc<dyn Engine>) -> Self {
        let shared = Arc::new(Shared { engine, spaces: Mutex::default() });
        Store { session: Session::new(live(&shared, Space::main())), shared }
    }

    /// The same store, seen through another space. A space begins to exist with the first write to
    /// it.
    pub fn space(&self, name: &str) -> Result<Self> {
        let live = live(&self.shared, Space::new(name)?);
        Ok(self.seen_by(self.session.in_space(live)))
    }

    /// The same store, on behalf of a user. The user reaches only what the declared
    /// [`Access`](crate::Access) of each collection allows.
    pub fn acting_as(&self, user: &str) -> Result<Self> {
        Ok(self.seen_by(self.session.acting_as(user)?))
    }

    /// The same store, with another clock.
    #[must_use]
    pub fn with_clock(&self, clock: Clock) -> Self {
        self.seen_by(self.session.by_clock(clock))
    }

    /// The same store, with warnings about writes that are allowed but probably not meant, such as
    /// a number that looks like a counter and is not declared as one. Each warning comes once. See
    /// also [`Schema::warnings`].
    #[must_use]
    pub fn with_warnings(&self, hear: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.seen_by(self.session.warning(hear))
    }

    /// The name of the space.
    pub fn space_name(&self) -> &str {
        self.session.live.space.name()
    }

    /// The engine underneath.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.shared.engine
    }

    /// Adds this schema to the one in the store. Nothing is dropped: collections, indexes and
    /// fields that only the store has stay, and are maintained. If the two schemas contradict each
    /// other, the call fails and changes nothing.
    ///
    /// Existing records that do not fit the new schema stay, and their other fields can be changed.
    /// [`Applied::misfits`] names some of them.
    pub async fn apply(&self, schema: &Schema) -> Result<Applied> {
        let applied = self.session.apply(schema).await?;
        let misfits = index::misfits(self.session.program()?, &applied.changes).await?;
        Ok(Applied { misfits, ..applied })
    }

    /// The schema in the store, as this process last saw it.
    pub async fn schema(&self) -> Result<Schema> {
        Ok(self.session.live.loaded().await?.schema.clone())
    }

    /// The collection of a Rust type. The first call applies the schema that the type declares;
    /// later calls read nothing. An acting user cannot change the schema, and finds the collection
    /// only if the program has applied it.
    ///
    /// A new index over existing records must be built before it can be read:
    /// [`Collection::to_build`] lists such indexes.
    pub async fn collection<T: Record>(&self) -> Result<Collection<T>> {
        let of = TypeId::of::<T>();
        if !self.session.live.knows_type(of) {
            let schema = T::schema()?;
            match self.session.program() {
                Ok(_) => drop(self.apply(&schema).await?),
                Err(_) => self.session.live.expect(&schema).await?,
            }
            self.session.live.remember_type(of);
        }
        let session = self.session.with_members(T::members());
        Ok(Collection::new(session, T::COLLECTION, Origin::Type))
    }

    /// A collection of the stored schema, with records as JSON.
    pub async fn documents(&self, name: &str) -> Result<Collection<Value>> {
        if self.session.live.loaded().await?.schema.collection(name).is_err() {
            self.session.live.reload().await?.schema.collection(name)?;
        }
        Ok(Collection::new(self.session.clone(), name, Origin::Json))
    }

    /// Reads and writes several records of this space atomically.
    ///
    /// The closure may run more than once: if a record that it read has changed before the commit,
    /// it runs again on the current state. It should do nothing but read and write through the
    /// transaction. If it returns an error, the transaction ends and nothing is written.
    pub async fn transaction<T, E, F, Fut>(&self, closure: F) -> Result<T, E>
    where
        F: FnMut(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        self.transaction_with(Retry::eager(), closure).await
    }

    /// As [`transaction`](Self::transaction), with other attempts and pauses.
    pub async fn transaction_with<T, E, F, Fut>(&self, retry: Retry, closure: F) -> Result<T, E>
    where
        F: FnMut(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        write::run(&self.session, retry, closure).await
    }

    /// As [`transaction`](Self::transaction), but idempotent: however often it is sent with this
    /// key, it happens once; see [`Collection::with_idempotency_key`]. The closure's answer is kept
    /// as JSON. A repetition gives that answer without running the closure. Closures cannot be
    /// compared, so another transaction with the same key would get the same answer.
    pub async fn transaction_once<T, E, F, Fut>(&self, key: &str, mut closure: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Transaction) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let session = self.session.with_key(key)?;
        let request = Request::new("transaction", "", Value::Null);
        let done: Result<Json<T>, Failed<E>> = once!(&session, request, |session| {
            let answering = |transaction| {
                let (claim, answering) = (session.claim().cloned(), closure(transaction));
                async move {
                    let answer = Json(answering.await.map_err(Failed::Closure)?);
                    if let (Some(claim), (Answer::Value(value), _)) = (claim, answer.to_answer()?) {
                        claim.answer_with(value);
                    }
                    Ok(answer)
                }
            };
            write::run(&session, Retry::eager(), answering)
        });
        done.map(|Json(answer)| answer).map_err(Failed::into_own)
    }

    /// Makes everything durable and releases the store. Dropping it does the same, but cannot
    /// report an error.
    pub async fn close(&self) -> Result<()> {
        self.shared.engine.close().await
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    fn seen_by(&self, session: Session) -> Self {
        Store { session, shared: self.shared.clone() }
    }
}

fn live(shared: &Arc<Shared>, space: Space) -> Arc<Live> {
    let mut spaces = shared.spaces.lock().unwrap_or_else(PoisonError::into_inner);
    // A caller may name any number of spaces, and most of them are never used again.
    if spaces.len() >= SPACES_KEPT && !spaces.contains_key(&space) {
        spaces.retain(|_, live| Arc::strong_count(live) > 1);
    }
    let make = || Arc::new(Live::new(shared.engine.clone(), space.clone()));
    spaces.entry(space.clone()).or_insert_with(make).clone()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::engine::Memory;

    #[test]
    fn spaces_that_nobody_holds_are_forgotten() {
        let store = Store::on(Arc::new(Memory::new()));
        let held = store.space("held").unwrap();
        for number in 0..5 * SPACES_KEPT {
            drop(store.space(&format!("passing-{number}")).unwrap());
        }
        assert!(store.shared.spaces.lock().unwrap().len() <= SPACES_KEPT);
        let again = store.space("held").unwrap();
        assert!(
            std::ptr::eq(&*held.session.live, &*again.session.live),
            "one schema for all handles"
        );
    }
}
