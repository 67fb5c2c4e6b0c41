//! Watches for programs without an async runtime.

use std::sync::Arc;

use super::runtime::Runtime;
use crate::engine::Position;
use crate::error::Result;
use crate::store::Logged;

/// A [`Watch`](crate::Watch) for programs without an async runtime. As an iterator it never ends:
/// each step waits for the next commit.
pub struct Watch {
    inner: crate::Watch,
    runtime: Arc<Runtime>,
}

impl Watch {
    pub(super) fn new(inner: crate::Watch, runtime: Arc<Runtime>) -> Self {
        Watch { inner, runtime }
    }

    /// As [`Watch::position`](crate::Watch::position).
    pub fn position(&self) -> Position {
        self.inner.position()
    }
}

impl Iterator for Watch {
    type Item = Result<Logged>;

    /// As [`Watch::next`](crate::Watch::next).
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.runtime.run(self.inner.next()))
    }
}
