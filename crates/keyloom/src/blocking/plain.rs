//! Plain keys for programs without an async runtime.

use std::sync::Arc;

use bytes::Bytes;

use super::runtime::Runtime;
use super::waits;
use crate::error::Result;
use crate::record::Version;
use crate::store::Listing;

/// A [`Plain`](crate::Plain) for programs without an async runtime.
#[derive(Clone)]
pub struct Plain {
    inner: crate::Plain,
    runtime: Arc<Runtime>,
}

impl Plain {
    pub(super) fn new(inner: crate::Plain, runtime: Arc<Runtime>) -> Self {
        Plain { inner, runtime }
    }

    /// As [`Plain::with_idempotency_key`](crate::Plain::with_idempotency_key).
    pub fn with_idempotency_key(&self, key: &str) -> Result<Self> {
        Ok(Plain::new(self.inner.with_idempotency_key(key)?, self.runtime.clone()))
    }

    /// As [`Plain::in_area`](crate::Plain::in_area).
    pub fn in_area(&self, name: &str) -> Result<Self> {
        Ok(Plain::new(self.inner.in_area(name)?, self.runtime.clone()))
    }

    waits! { "Plain":
        fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>>;
        fn put(&self, key: impl AsRef<[u8]>, value: impl Into<Bytes>) -> Result<Version>;
        fn delete(&self, key: impl AsRef<[u8]>) -> Result<Option<Version>>;
        fn list(&self, prefix: impl AsRef<[u8]>, limit: usize, cursor: Option<&str>)
            -> Result<Listing>;
    }
}
