//! Stores for programs without an async runtime.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::collection::Collection;
use super::job::{Job, Started};
use super::plain::Plain;
use super::raw_keys::RawKeys;
use super::runtime::Runtime;
use super::transaction::{Transaction, Turn};
use super::verifier::Verifier;
use super::waits;
use super::watch::Watch;
use crate::backup::BackupInfo;
use crate::due::{Lease, MaintainOptions, Maintained, SweepOptions, Swept};
use crate::engine::{Engine, LogBounds, Position};
use crate::error::{Error, Result};
use crate::index::{
    Built, Repair, RepairOptions, RepairProgress, Verification, VerifyOptions, Work,
};
use crate::log::Trimmed;
use crate::query::Freshness;
use crate::schema::{IndexState, Schema, Warning};
use crate::space::Applied;
use crate::space::Clock;
use crate::space::{PurgeOptions, Purged, Retry};
use crate::store::{
    Changes, Distribution, JobOptions, Replayed, StatsOptions, StoreStats, StoredSchema,
    WatchOptions,
};
use crate::typed::Record;
use crate::write::{Counters, Increment};

/// A [`Store`](crate::Store) for programs without an async runtime.
#[derive(Clone)]
pub struct Store {
    inner: crate::Store,
    runtime: Arc<Runtime>,
}

impl Store {
    /// As [`Store::open`](crate::Store::open).
    pub fn open(address: &str) -> Result<Self> {
        let runtime = Arc::new(Runtime::new()?);
        Ok(Store { inner: runtime.run(crate::Store::open(address))?, runtime })
    }

    /// As [`Store::open_existing`](crate::Store::open_existing).
    pub fn open_existing(address: &str) -> Result<Self> {
        let runtime = Arc::new(Runtime::new()?);
        Ok(Store { inner: runtime.run(crate::Store::open_existing(address))?, runtime })
    }

    /// As [`Store::on`](crate::Store::on).
    pub fn on(engine: Arc<dyn Engine>) -> Result<Self> {
        Ok(Store { inner: crate::Store::on(engine), runtime: Arc::new(Runtime::new()?) })
    }

    /// As [`Store::space`](crate::Store::space).
    pub fn space(&self, name: &str) -> Result<Self> {
        Ok(Store { inner: self.inner.space(name)?, runtime: self.runtime.clone() })
    }

    /// As [`Store::acting_as`](crate::Store::acting_as).
    pub fn acting_as(&self, user: &str) -> Result<Self> {
        Ok(Store { inner: self.inner.acting_as(user)?, runtime: self.runtime.clone() })
    }

    /// As [`Store::with_warnings`](crate::Store::with_warnings).
    #[must_use]
    pub fn with_warnings(&self, hear: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Store { inner: self.inner.with_warnings(hear), runtime: self.runtime.clone() }
    }

    /// As [`Store::with_clock`](crate::Store::with_clock).
    #[must_use]
    pub fn with_clock(&self, clock: Clock) -> Self {
        Store { inner: self.inner.with_clock(clock), runtime: self.runtime.clone() }
    }

    /// As [`Store::engine`](crate::Store::engine).
    pub fn engine(&self) -> &Arc<dyn Engine> {
        self.inner.engine()
    }

    /// As [`Store::plain`](crate::Store::plain).
    pub fn plain(&self) -> Plain {
        Plain::new(self.inner.plain(), self.runtime.clone())
    }

    /// As [`Store::raw_keys`](crate::Store::raw_keys).
    pub fn raw_keys(&self) -> Result<RawKeys> {
        Ok(RawKeys::new(self.inner.raw_keys()?, self.runtime.clone()))
    }

    /// As [`Store::verifier`](crate::Store::verifier).
    pub fn verifier(&self, options: &VerifyOptions) -> Result<Verifier> {
        let inner = self.run(self.inner.verifier(options))?;
        Ok(Verifier::new(inner, self.runtime.clone()))
    }

    /// As [`Store::space_name`](crate::Store::space_name).
    pub fn space_name(&self) -> &str {
        self.inner.space_name()
    }

    /// The same store, for async code.
    pub fn as_async(&self) -> &crate::Store {
        &self.inner
    }

    /// Waits for a future of the async types.
    pub fn run<A, E: From<Error>>(
        &self,
        future: impl Future<Output = Result<A, E>>,
    ) -> Result<A, E> {
        self.runtime.run(future)
    }

    waits! { "Store":
        fn apply(&self, schema: &Schema) -> Result<Applied>;
        fn schema(&self) -> Result<Schema>;
        fn stored_schema(&self) -> Result<StoredSchema>;
        fn index_state(&self, collection: &str, index: &str) -> Result<IndexState>;
        fn build(&self, collection: &str, index: &str) -> Result<Built>;
        fn build_with_progress(
            &self,
            collection: &str,
            index: &str,
            hear: impl Fn(Built) + Send + Sync
        ) -> Result<Built>;
        fn recount(&self, collection: &str, aggregate: &str) -> Result<Built>;
        fn purge_groups(&self, options: &PurgeOptions) -> Result<Purged>;
        fn disable(&self, collection: &str, index: &str) -> Result<()>;
        fn verify(&self) -> Result<Verification>;
        fn verify_with(&self, options: &VerifyOptions) -> Result<Verification>;
        fn repair(&self, options: &RepairOptions) -> Result<Repair>;
        fn repair_with_progress(
            &self,
            options: &RepairOptions,
            hear: impl Fn(RepairProgress) + Send + Sync
        ) -> Result<Repair>;
        fn changes(&self, from: Position, limit: usize) -> Result<Changes>;
        fn log_bounds(&self) -> Result<LogBounds>;
        fn trim_log(&self) -> Result<Trimmed>;
        fn sweep(&self, options: &SweepOptions) -> Result<Swept>;
        fn maintain(&self, options: &MaintainOptions) -> Result<Maintained>;
        fn purge_idempotency_keys(&self, options: &PurgeOptions) -> Result<Purged>;
        fn purge_history(&self, options: &PurgeOptions) -> Result<Purged>;
        fn increment_many(&self, increments: impl IntoIterator<Item = Increment>)
            -> Result<Vec<Counters>>;
        fn stats(&self, options: &StatsOptions) -> Result<StoreStats>;
        fn distribution(
            &self,
            collection: &str,
            index: &str,
            first_segments: usize,
            budget: usize
        ) -> Result<Distribution>;
        fn close(&self) -> Result<()>;
    }

    /// As [`Freshness::holds`].
    pub fn holds(&self, freshness: &Freshness) -> Result<bool> {
        self.run(freshness.holds())
    }

    /// As [`Lease::extend`].
    pub fn extend(&self, lease: &mut Lease, duration: Duration) -> Result<()> {
        self.run(lease.extend(duration))
    }

    /// As [`Lease::release`].
    pub fn release(&self, lease: Lease) -> Result<bool> {
        self.run(lease.release())
    }

    /// As [`Store::start_job`](crate::Store::start_job).
    pub fn start_job(&self, work: Work, options: JobOptions) -> Result<Started> {
        Ok(Started::new(self.run(self.inner.start_job(work, options))?, &self.runtime))
    }

    /// As [`Store::job_of_this_process`](crate::Store::job_of_this_process).
    pub fn job_of_this_process(&self, work: Work, options: JobOptions) -> Result<Job> {
        Ok(Job::new(self.inner.job_of_this_process(work, options)?, &self.runtime))
    }

    /// As [`Store::jobs`](crate::Store::jobs).
    pub fn jobs(&self) -> Result<Vec<Job>> {
        Ok(self.with_runtime(self.run(self.inner.jobs())?))
    }

    /// As [`Store::jobs_of_all_spaces`](crate::Store::jobs_of_all_spaces).
    pub fn jobs_of_all_spaces(&self) -> Result<Vec<Job>> {
        Ok(self.with_runtime(self.run(self.inner.jobs_of_all_spaces())?))
    }

    fn with_runtime(&self, jobs: Vec<crate::Job>) -> Vec<Job> {
        jobs.into_iter().map(|job| Job::new(job, &self.runtime)).collect()
    }

    /// As [`Store::watch`](crate::Store::watch).
    pub fn watch(&self, options: WatchOptions) -> Result<Watch> {
        let inner = self.run(self.inner.watch(options))?;
        Ok(Watch::new(inner, self.runtime.clone()))
    }

    /// As [`Store::pinned`](crate::Store::pinned).
    pub fn pinned(&self) -> Result<Self> {
        let inner = self.run(self.inner.pinned())?;
        Ok(Store { inner, runtime: self.runtime.clone() })
    }

    /// As [`Store::backup_to`](crate::Store::backup_to).
    pub fn backup_to(&self, target: &mut (impl io::Write + Send)) -> Result<BackupInfo> {
        self.run(self.inner.backup_to(target))
    }

    /// As [`Store::restore_from`](crate::Store::restore_from).
    pub fn restore_from(&self, source: &mut (impl io::Read + Send)) -> Result<BackupInfo> {
        self.run(self.inner.restore_from(source))
    }

    /// As [`Store::replay`](crate::Store::replay).
    pub fn replay(&self, log: &Store) -> Result<Replayed> {
        self.run(self.inner.replay(&log.inner))
    }

    /// As [`Store::replay_until`](crate::Store::replay_until).
    pub fn replay_until(&self, log: &Store, last: Position) -> Result<Replayed> {
        self.run(self.inner.replay_until(&log.inner, last))
    }

    /// As [`Store::collection`](crate::Store::collection).
    pub fn collection<T: Record>(&self) -> Result<Collection<T>> {
        let inner = self.run(self.inner.collection())?;
        Ok(Collection::new(inner, self.runtime.clone()))
    }

    /// As [`Store::documents`](crate::Store::documents).
    pub fn documents(&self, name: &str) -> Result<Collection<Value>> {
        let inner = self.run(self.inner.documents(name))?;
        Ok(Collection::new(inner, self.runtime.clone()))
    }

    /// As [`Store::transaction`](crate::Store::transaction).
    pub fn transaction<A, E, F>(&self, closure: F) -> Result<A, E>
    where
        F: FnMut(Transaction) -> Result<A, E>,
        E: From<Error>,
    {
        self.transaction_with(Retry::eager(), closure)
    }

    /// As [`Store::transaction_with`](crate::Store::transaction_with).
    pub fn transaction_with<A, E, F>(&self, retry: Retry, closure: F) -> Result<A, E>
    where
        F: FnMut(Transaction) -> Result<A, E>,
        E: From<Error>,
    {
        let turn = Turn::default();
        let transaction = self.inner.transaction_with(retry, |attempt| turn.hand_over(attempt));
        turn.take_turns(&self.runtime, transaction, closure)
    }

    /// As [`Store::transaction_once`](crate::Store::transaction_once).
    pub fn transaction_once<A, E, F>(&self, key: &str, closure: F) -> Result<A, E>
    where
        A: Serialize + DeserializeOwned,
        F: FnMut(Transaction) -> Result<A, E>,
        E: From<Error>,
    {
        let turn = Turn::default();
        let transaction = self.inner.transaction_once(key, |attempt| turn.hand_over(attempt));
        turn.take_turns(&self.runtime, transaction, closure)
    }
}
