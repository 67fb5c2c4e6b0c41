//! Long reads give way to other tasks on their thread.
//!
//! An engine that answers on its caller's thread never waits, so that a task which reads a whole
//! store would hold up every other task of its runtime. Engines therefore count what they read
//! against tokio's own budget for a task, and stop for a turn when it is used up.

use tokio::task::coop::consume_budget;

use super::{LogSlice, Stretch};

/// What one unit of tokio's budget buys. A task has 128 of them until others have their turn.
const UNIT_ROWS: usize = 8;
const UNIT_BYTES: usize = 8 << 10;

/// How much is read in one go at most, before the budget is asked. More than a list that is kept
/// in memory has, so that such a list is read in one go.
#[cfg(feature = "embedded")]
const QUANTUM_ROWS: usize = 256;
#[cfg(feature = "embedded")]
const QUANTUM_BYTES: usize = 256 << 10;

/// What was read since the budget was last asked.
#[derive(Debug, Default)]
pub(super) struct Quantum {
    rows: usize,
    bytes: usize,
}

impl Quantum {
    /// Notes a row, and how large it was.
    pub(super) fn note(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    /// Whether so much was read that the budget has to be asked.
    #[cfg(feature = "embedded")]
    pub(super) fn is_used_up(&self) -> bool {
        self.rows >= QUANTUM_ROWS || self.bytes >= QUANTUM_BYTES
    }

    /// Pays for what was read, and begins anew. Others have their turn if the budget is used up.
    /// Also a call that read nothing costs a unit: whoever repeats it for ever gives way.
    pub(super) async fn pay(&mut self) {
        let Quantum { rows, bytes } = std::mem::take(self);
        let units = 1 + (rows / UNIT_ROWS).max(bytes / UNIT_BYTES);
        for _ in 0..units {
            consume_budget().await;
        }
    }
}

/// Pays for a call that read, or wrote, so many rows in one go.
pub(super) async fn pay_for(rows: usize) {
    Quantum { rows, bytes: 0 }.pay().await;
}

/// Pays for a part of a log.
pub(super) async fn pay_for_log(slice: &LogSlice) {
    let mut quantum = Quantum::default();
    slice.entries.iter().for_each(|entry| quantum.note(entry.bytes.len()));
    quantum.pay().await;
}

pub(super) fn rows_of<R>(stretches: &[Stretch<R>]) -> usize {
    stretches.iter().map(|stretch| stretch.rows.len()).sum()
}
