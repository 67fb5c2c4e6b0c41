//! An operator's calls: build, verify and repair indexes and aggregates, and remove what is no
//! longer needed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Store;
use super::collection::Collection;
use crate::due::{self, MaintainOptions, Maintained, Maintainer, SweepOptions, Swept};
use crate::error::Result;
use crate::index::{
    self, Built, Repair, RepairOptions, RepairProgress, Verification, Verifier, VerifyOptions,
};
use crate::schema::{Collection as Declared, IndexState, Schema};
use crate::side::{AGGREGATES, ANSWERS};
use crate::space::Loaded;
use crate::space::{Pace, PurgeOptions, Purged};

/// A schema together with the states of its indexes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSchema {
    /// The schema.
    pub schema: Schema,
    /// The state of every index and aggregate, by collection and name.
    pub states: BTreeMap<String, BTreeMap<String, IndexState>>,
}

impl<T> Collection<T> {
    /// The indexes and aggregates of the collection that are not ready, as the store has them now,
    /// each with its state: not built yet, failed, or disabled. [`Store::build`] makes each of them
    /// ready. One read.
    pub async fn to_build(&self) -> Result<BTreeMap<String, IndexState>> {
        let loaded = self.session.program()?.reload().await?;
        let states = states(&loaded, loaded.schema.collection(&self.name)?);
        Ok(states.filter(|(_, state)| *state != IndexState::Ready).collect())
    }
}

/// The state of every index and aggregate of a collection.
fn states(loaded: &Loaded, collection: &Declared) -> impl Iterator<Item = (String, IndexState)> {
    let names = collection.indexes.keys().chain(collection.aggregates.keys());
    names.map(|name| (name.clone(), loaded.state(&collection.name, name).clone()))
}

impl Store {
    /// The schema and the state of every index and aggregate, as the store has them now. One read
    /// gives both, so they agree.
    pub async fn stored_schema(&self) -> Result<StoredSchema> {
        let loaded = self.session().program()?.reload().await?;
        let states = loaded
            .schema
            .collections
            .values()
            .map(|collection| (collection.name.clone(), states(&loaded, collection).collect()));
        Ok(StoredSchema { states: states.collect(), schema: loaded.schema.clone() })
    }

    /// The state of an index or an aggregate, as the store has it now.
    pub async fn index_state(&self, collection: &str, index: &str) -> Result<IndexState> {
        let loaded = self.session().program()?.reload().await?;
        loaded.schema.collection(collection)?.check_kept(index)?;
        Ok(loaded.state(collection, index).clone())
    }

    /// Completes an index or an aggregate and makes it ready, while writers go on. One that is
    /// ready already stays as it is. One that was disabled or has failed is built anew.
    ///
    /// A build that was interrupted continues when it is run again. If it meets records that the
    /// index cannot hold, such as two with the same unique value, its error names them and the
    /// index is failed: neither read nor maintained until it is built again.
    pub async fn build(&self, collection: &str, index: &str) -> Result<Built> {
        self.build_with_progress(collection, index, |_| {}).await
    }

    /// As [`build`](Self::build), and reports the progress after each chunk of keys. If a pass has
    /// to start over, its count of records begins at zero again.
    pub async fn build_with_progress(
        &self,
        collection: &str,
        index: &str,
        hear: impl Fn(Built) + Send + Sync,
    ) -> Result<Built> {
        index::build(self.session().program()?, collection, index, Pace::Full, &hear).await
    }

    /// Counts an aggregate anew, and then replaces the current numbers, which can be read
    /// meanwhile. Writers may go on: every record is counted once. Safe to run twice, and after a
    /// crash.
    pub async fn recount(&self, collection: &str, aggregate: &str) -> Result<Built> {
        index::recount(self.session().program()?, collection, aggregate).await
    }

    /// Removes the cells of groups without records, and the remains of interrupted builds. Queries
    /// hide such groups in any case; purging them frees their space. Writers may go on meanwhile,
    /// and it is safe to run twice.
    pub async fn purge_groups(&self, options: &PurgeOptions) -> Result<Purged> {
        self.session().program()?;
        AGGREGATES.purge(self.session(), options, &|| true).await
    }

    /// Stops maintaining and reading an index or an aggregate. Its entries stay, and a unique index
    /// no longer refuses duplicates. [`build`](Self::build) brings it back.
    pub async fn disable(&self, collection: &str, index: &str) -> Result<()> {
        self.session().program()?.set_state(collection, index, IndexState::Disabled).await
    }

    /// Removes the answers to this space's idempotency keys that are older than `keep`. Writers may
    /// go on meanwhile, and it is safe to run twice.
    pub async fn purge_idempotency_keys(&self, options: &PurgeOptions) -> Result<Purged> {
        self.session().program()?;
        ANSWERS.purge(self.session(), options, &|| true).await
    }

    /// Compares every record, every index entry and every aggregate of the space, and reports what
    /// is wrong. Writers may go on meanwhile.
    pub async fn verify(&self) -> Result<Verification> {
        self.verify_with(&VerifyOptions::default()).await
    }

    /// As [`verify`](Self::verify), with other bounds.
    pub async fn verify_with(&self, options: &VerifyOptions) -> Result<Verification> {
        index::verify(self.session(), options).await
    }

    /// Verifies chunk by chunk, for reports that do not fit into memory, and to show progress.
    pub async fn verifier(&self, options: &VerifyOptions) -> Result<Verifier> {
        Verifier::new(self.session(), options).await
    }

    /// Verifies, and repairs what it can. It adds missing entries, deletes dangling ones, and
    /// deletes or rewrites wrong ones. It counts drifted aggregates anew. It deletes cells of
    /// histories, leases and idempotency keys that cannot be decoded or belong to nothing. It only
    /// reports the rest: records and entries that cannot be decoded, keys of no template, and
    /// values that two records claim.
    ///
    /// Writers may go on meanwhile, and it is safe to run twice.
    pub async fn repair(&self, options: &RepairOptions) -> Result<Repair> {
        self.repair_with_progress(options, |_| {}).await
    }

    /// As [`repair`](Self::repair), and reports its progress after each chunk of keys and each
    /// aggregate.
    pub async fn repair_with_progress(
        &self,
        options: &RepairOptions,
        hear: impl Fn(RepairProgress) + Send + Sync,
    ) -> Result<Repair> {
        index::repair(self.session(), options, &hear).await
    }

    /// Removes the expired records of this space, each with every key that it owns, in bounded
    /// batches. Writers may go on meanwhile, and several processes may sweep at once. An
    /// interrupted sweep leaves nothing half done, and the next one continues.
    pub async fn sweep(&self, options: &SweepOptions) -> Result<Swept> {
        self.session().program()?;
        due::sweep(self.session(), options, &|| true).await
    }

    /// Does all maintenance of this space: it sweeps, purges groups, histories and idempotency
    /// keys, and trims the log, each within its bounds. Writers may go on meanwhile, and several
    /// processes may maintain at once. To continue an interrupted call, call it again.
    ///
    /// If a part fails, the others are still done, and the first error is returned.
    pub async fn maintain(&self, options: &MaintainOptions) -> Result<Maintained> {
        self.session().program()?;
        let (done, failed) = due::maintain(self.session(), options, &|| true).await;
        failed.map_or(Ok(done), Err)
    }

    /// [Maintains](Self::maintain) the space at once, and again after each pause, until the
    /// maintainer is stopped or dropped. Each pass continues where the bounds stopped the one
    /// before. Runs on the caller's async runtime.
    pub fn maintain_every(&self, pause: Duration, options: MaintainOptions) -> Result<Maintainer> {
        self.session().program()?;
        Maintainer::start(self.session().clone(), pause, options)
    }
}
