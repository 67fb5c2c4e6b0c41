//! What an operator does to a store: build, verify and repair its indexes.

use super::Store;
use crate::error::Result;
use crate::index::{self, Built, Repair, RepairOptions, Verification, Verifier, VerifyOptions};
use crate::schema::IndexState;

impl Store {
    /// The state of an index, as the store has it now.
    pub async fn index_state(&self, collection: &str, index: &str) -> Result<IndexState> {
        let loaded = self.session().live().reload().await?;
        loaded.schema.collection(collection)?.check_kept(index)?;
        Ok(loaded.state(collection, index).clone())
    }

    /// Makes an index complete and ready, while writers go on. An index that is ready already is
    /// left as it is; one that was disabled or failed is built anew.
    ///
    /// A build that was interrupted goes on where it is run again. One that meets records which
    /// the index cannot hold, such as two with the same unique value, names them in its error
    /// and leaves the index failed: neither read nor maintained, until it is built again.
    pub async fn build(&self, collection: &str, index: &str) -> Result<Built> {
        index::build(self.session().live(), collection, index).await
    }

    /// Stops maintaining and reading an index. Its entries stay where they are, and a unique
    /// index no longer refuses duplicates. [`build`](Self::build) brings it back.
    pub async fn disable(&self, collection: &str, index: &str) -> Result<()> {
        self.session().live().set_state(collection, index, IndexState::Disabled).await
    }

    /// Looks at every record and every index entry of the space, and reports what is wrong.
    /// Writers may go on meanwhile.
    pub async fn verify(&self) -> Result<Verification> {
        self.verify_with(&VerifyOptions::default()).await
    }

    /// As [`verify`](Self::verify), with other bounds.
    pub async fn verify_with(&self, options: &VerifyOptions) -> Result<Verification> {
        self.verifier(options).await?.finish(options.findings_max).await
    }

    /// Verifies chunk by chunk, for reports that do not fit into memory, and for progress.
    pub async fn verifier(&self, options: &VerifyOptions) -> Result<Verifier> {
        Verifier::new(self.session().live(), options).await
    }

    /// Verifies, and mends what can be mended: puts entries that are missing, deletes those that
    /// dangle, and deletes or rewrites those that are wrong. What cannot be read, what belongs to
    /// no template, and values that two records claim are reported and let be.
    ///
    /// Writers may go on meanwhile, and it is safe to run twice.
    pub async fn repair(&self, options: &RepairOptions) -> Result<Repair> {
        index::repair(self.session().live(), options).await
    }
}
