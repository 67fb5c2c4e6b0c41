//! How many bytes the answers of one request may have together.
//!
//! A request of some kilobytes can ask a thousand times for a record of 360 KB. What does not fit is
//! not told: a read is refused, and a write is answered without its record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use keyloom::engine::VALUE_BYTES_MAX;

use super::{Action, Operation, Told};
use crate::config::Limits;
use crate::problem::Problem;
use crate::refusal;

/// What an answer without a record has, about.
const ANSWER_BYTES: usize = 1 << 10;

/// See the [module's](self) description.
pub(crate) struct Room {
    left: AtomicUsize,
    bytes_max: usize,
    /// Whether a read was refused, so that none after it is tried.
    is_over: AtomicBool,
}

impl Room {
    pub(crate) fn new(limits: &Limits) -> Self {
        let bytes_max = limits.answer_bytes_max;
        Room { left: AtomicUsize::new(bytes_max), bytes_max, is_over: AtomicBool::new(false) }
    }

    /// How many bytes these operations could read, and answer, as far as answers may go.
    pub(crate) fn expected(&self, operations: &[Operation]) -> usize {
        let bytes = |operation: &Operation| match operation.action {
            // What is written was sent, and has its room.
            Action::Insert { .. } | Action::Increment { .. } => ANSWER_BYTES,
            _ => VALUE_BYTES_MAX,
        };
        operations.iter().map(bytes).sum::<usize>().min(self.bytes_max)
    }

    /// An answer, as much of it as there is room for. A read that does not fit is refused.
    pub(crate) fn fit(&self, operation: &Operation, told: Told) -> Result<Told, Problem> {
        if self.takes(told.text().len()) {
            return Ok(told);
        }
        if is_read(operation) {
            self.is_over.store(true, Ordering::Relaxed);
            return Err(self.full());
        }
        Ok(told.withheld())
    }

    /// Refuses a read after another did not fit, before anything is read for it.
    pub(crate) fn check(&self, operation: &Operation) -> Result<(), Problem> {
        match is_read(operation) && self.is_over.load(Ordering::Relaxed) {
            true => Err(self.full()),
            false => Ok(()),
        }
    }

    fn full(&self) -> Problem {
        let bytes_max = self.bytes_max;
        let detail = format!(
            "other answers leave no room for this one: those of one request have {bytes_max} bytes \
             at most (--answer-bytes-max); ask for fewer records at once"
        );
        refusal::limit_exceeded(detail).with("answer_bytes_max", bytes_max)
    }

    /// A refusal, without the record that is in the way if there is no room for that.
    pub(crate) fn fit_problem(&self, problem: Problem) -> Told {
        let told = Told::of(&problem.to_json());
        if self.takes(told.text().len()) { told } else { Told::of(&problem.brief().to_json()) }
    }

    /// Whether there is room for so many bytes, which is taken then. What has hardly any bytes
    /// always fits: operations are counted.
    fn takes(&self, bytes: usize) -> bool {
        let take = |left: usize| match bytes <= ANSWER_BYTES {
            true => Some(left.saturating_sub(bytes)),
            false => left.checked_sub(bytes),
        };
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

fn is_read(operation: &Operation) -> bool {
    matches!(operation.action, Action::Get { .. })
}
