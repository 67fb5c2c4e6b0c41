//! Limits the bytes of all answers to one request together.
//!
//! A request of a few kilobytes can ask a thousand times for a record of 360 KB. If a record does
//! not fit, a read is refused, and a write is answered without its record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use keyloom::engine::VALUE_BYTES_MAX;

use super::{Action, Operation, Told};
use crate::config::Limits;
use crate::problem::Problem;
use crate::refusal;

/// The approximate size of an answer without a record.
const ANSWER_BYTES: usize = 1 << 10;

/// See the [module's](self) description.
pub(crate) struct Room {
    left: AtomicUsize,
    bytes_max: usize,
    /// Whether a read was refused; no later read is tried then.
    is_over: AtomicBool,
}

impl Room {
    pub(crate) fn new(limits: &Limits) -> Self {
        let bytes_max = limits.answer_bytes_max;
        Room { left: AtomicUsize::new(bytes_max), bytes_max, is_over: AtomicBool::new(false) }
    }

    /// How many bytes these operations could read and answer, at most the limit on answers.
    pub(crate) fn expected(&self, operations: &[Operation]) -> usize {
        let bytes = |operation: &Operation| match operation.action {
            // The record was sent in the request, and already has its memory.
            Action::Insert { .. } | Action::Increment { .. } => ANSWER_BYTES,
            _ => VALUE_BYTES_MAX,
        };
        operations.iter().map(bytes).sum::<usize>().min(self.bytes_max)
    }

    /// An answer, or as much of it as fits. A read that does not fit is refused.
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

    /// Refuses a read after another one did not fit, before anything is read for it.
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

    /// A refusal, without the conflicting record if that does not fit.
    pub(crate) fn fit_problem(&self, problem: Problem) -> Told {
        let told = Told::of(&problem.to_json());
        if self.takes(told.text().len()) { told } else { Told::of(&problem.brief().to_json()) }
    }

    /// Takes this many bytes if they fit. Very small answers always fit, since the number of
    /// operations is limited.
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
