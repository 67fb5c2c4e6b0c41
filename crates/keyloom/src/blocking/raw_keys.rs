//! Raw keys for programs without an async runtime.

use std::sync::Arc;

use super::runtime::Runtime;
use super::waits;
use crate::error::Result;
use crate::store::{BranchOptions, Branches, RawKey, RawList, RawPage};

/// [`RawKeys`](crate::RawKeys) for programs without an async runtime.
#[derive(Clone)]
pub struct RawKeys {
    inner: crate::RawKeys,
    runtime: Arc<Runtime>,
}

impl RawKeys {
    pub(super) fn new(inner: crate::RawKeys, runtime: Arc<Runtime>) -> Self {
        RawKeys { inner, runtime }
    }

    waits! { "RawKeys":
        fn areas(&self) -> Result<Vec<String>>;
        fn list(&self, list: &RawList) -> Result<RawPage>;
        fn get(&self, area: &str, key: impl AsRef<[u8]>) -> Result<Option<RawKey>>;
        fn branches(&self, area: &str, prefix: impl AsRef<[u8]>, options: &BranchOptions)
            -> Result<Branches>;
    }
}
