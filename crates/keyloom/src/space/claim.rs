//! One attempt to be the first write with an idempotency key.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::engine::{Address, Condition};

/// What a write adds to its batch for its key, and whether the batch was committed.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) address: Address,
    /// The condition that nobody else was first.
    pub(crate) condition: Condition,
    /// The SHA-256 of the request, in hex.
    pub(crate) request: String,
    value: Mutex<Option<Value>>,
    is_settled: AtomicBool,
}

impl Claim {
    pub(crate) fn new(address: Address, condition: Condition, request: String) -> Self {
        let (value, is_settled) = (Mutex::default(), AtomicBool::new(false));
        Claim { address, condition, request, value, is_settled }
    }

    /// Sets the answer of the write, if the batch does not determine it.
    pub(crate) fn answer_with(&self, value: Value) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// What the write answers, if that was said.
    pub(crate) fn answer(&self) -> Option<Value> {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        value.clone()
    }

    /// Notes that the batch with the claim was committed.
    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::Release);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Acquire)
    }
}
