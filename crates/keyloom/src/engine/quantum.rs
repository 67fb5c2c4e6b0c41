//! Makes long reads yield to other tasks on their thread.
//!
//! An engine that answers on its caller's thread never waits. So a task that reads a whole store
//! would block every other task of its runtime. Such engines therefore charge what they read to
//! tokio's own budget for a task, and yield when it is used up.

use tokio::task::coop::consume_budget;

use super::{LogSlice, Stretch};

/// How much one unit of tokio's budget pays for. A task has 128 units before others get their turn.
const UNIT_ROWS: usize = 8;
const UNIT_BYTES: usize = 8 << 10;

/// How much is read in one go at most, before the budget is asked. More than a list that is kept
/// in memory has, so that such a list is read in one go.
#[cfg(feature = "embedded")]
const QUANTUM_ROWS: usize = 256;
#[cfg(feature = "embedded")]
const QUANTUM_BYTES: usize = 256 << 10;

/// How much was read since the budget was last charged.
#[derive(Debug, Default)]
pub(super) struct Quantum {
    rows: usize,
    bytes: usize,
}

impl Quantum {
    /// Counts a row of this size.
    pub(super) fn note(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    /// Whether so much was read that the budget has to be asked.
    #[cfg(feature = "embedded")]
    pub(super) fn is_used_up(&self) -> bool {
        self.rows >= QUANTUM_ROWS || self.bytes >= QUANTUM_BYTES
    }

    /// Charges the budget for what was read, and counts from zero again. Yields if the budget is
    /// used up. Even a call that read nothing costs one unit, so an endless loop of such calls
    /// yields too.
    pub(super) async fn pay(&mut self) {
        let Quantum { rows, bytes } = std::mem::take(self);
        let units = 1 + (rows / UNIT_ROWS).max(bytes / UNIT_BYTES);
        for _ in 0..units {
            consume_budget().await;
        }
    }
}

/// Charges the budget for a call that read or wrote this many rows at once.
pub(super) async fn pay_for(rows: usize) {
    Quantum { rows, bytes: 0 }.pay().await;
}

/// Charges the budget for a part of a log.
pub(super) async fn pay_for_log(slice: &LogSlice) {
    let mut quantum = Quantum::default();
    slice.entries.iter().for_each(|entry| quantum.note(entry.bytes.len()));
    quantum.pay().await;
}

pub(super) fn rows_of<R>(stretches: &[Stretch<R>]) -> usize {
    stretches.iter().map(|stretch| stretch.rows.len()).sum()
}
