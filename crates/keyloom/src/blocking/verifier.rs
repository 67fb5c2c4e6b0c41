//! Verification for programs without an async runtime.

use std::sync::Arc;

use super::runtime::Runtime;
use crate::error::Result;
use crate::index::{NotReady, VerifiedChunk};

/// A [`Verifier`](crate::Verifier) for programs without an async runtime: an iterator over chunks.
pub struct Verifier {
    inner: crate::Verifier,
    runtime: Arc<Runtime>,
}

impl Verifier {
    pub(super) fn new(inner: crate::Verifier, runtime: Arc<Runtime>) -> Self {
        Verifier { inner, runtime }
    }

    /// As [`Verifier::not_ready`](crate::Verifier::not_ready).
    pub fn not_ready(&self) -> Result<Vec<NotReady>> {
        self.runtime.run(self.inner.not_ready())
    }
}

impl Iterator for Verifier {
    type Item = Result<VerifiedChunk>;

    /// As [`Verifier::next_chunk`](crate::Verifier::next_chunk).
    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.run(self.inner.next_chunk()).transpose()
    }
}
