//! Transactions for programs without an async runtime.
//!
//! The closure waits for its own reads, so it cannot run while another call is waiting for the
//! transaction. The two therefore take turns. The transaction runs until it needs the closure,
//! hands over the attempt and pauses. The closure runs outside, and the transaction finds its
//! answer at the next poll.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::runtime::Runtime;
use super::waits;
use crate::due::Lease;
use crate::error::{Error, Result};
use crate::record::{Document, Version};
use crate::store::{KeyFields, Stored, Written};
use crate::typed::Record;
use crate::write::Increment;

/// A [`Transaction`](crate::Transaction) for programs without an async runtime.
#[derive(Clone)]
pub struct Transaction {
    inner: crate::Transaction,
    runtime: Arc<Runtime>,
}

/// A [`TransactionCollection`](crate::TransactionCollection) for programs without an async
/// runtime.
pub struct TransactionCollection<T> {
    inner: crate::TransactionCollection<T>,
    runtime: Arc<Runtime>,
}

/// Where the transaction and the closure meet: the attempt for the closure to run on, and the
/// closure's answer.
pub(super) struct Turn<A> {
    attempt: Mutex<Option<crate::Transaction>>,
    answer: Mutex<Option<A>>,
}

impl<A> Default for Turn<A> {
    fn default() -> Self {
        Turn { attempt: Mutex::new(None), answer: Mutex::new(None) }
    }
}

/// Why the transaction paused.
enum Stop<R> {
    /// It needs the closure to run on this attempt.
    Attempt(crate::Transaction),
    /// It has ended.
    Over(R),
}

impl<A, E: From<Error>> Turn<Result<A, E>> {
    /// Hands an attempt over, and waits for the closure's answer.
    pub(super) fn hand_over(
        &self,
        attempt: crate::Transaction,
    ) -> impl Future<Output = Result<A, E>> {
        *locked(&self.attempt) = Some(attempt);
        poll_fn(|_| match locked(&self.answer).take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
    }

    /// Runs the transaction, and runs the closure whenever the transaction needs it.
    pub(super) fn take_turns(
        &self,
        runtime: &Arc<Runtime>,
        transaction: impl Future<Output = Result<A, E>>,
        mut closure: impl FnMut(Transaction) -> Result<A, E>,
    ) -> Result<A, E> {
        let mut transaction = pin!(transaction);
        loop {
            let stop = runtime.wait(poll_fn(|context| {
                if let Poll::Ready(over) = transaction.as_mut().poll(context) {
                    return Poll::Ready(Stop::Over(over));
                }
                match locked(&self.attempt).take() {
                    Some(attempt) => Poll::Ready(Stop::Attempt(attempt)),
                    None => Poll::Pending,
                }
            }))?;
            match stop {
                Stop::Over(over) => return over,
                Stop::Attempt(inner) => {
                    let answer = closure(Transaction { inner, runtime: runtime.clone() });
                    *locked(&self.answer) = Some(answer);
                }
            }
        }
    }
}

fn locked<T>(part: &Mutex<T>) -> MutexGuard<'_, T> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transaction {
    /// As [`Transaction::collection`](crate::Transaction::collection).
    pub fn collection<T: Record>(&self) -> Result<TransactionCollection<T>> {
        let inner = self.inner.collection()?;
        Ok(TransactionCollection { inner, runtime: self.runtime.clone() })
    }

    /// As [`Transaction::complete`](crate::Transaction::complete).
    pub fn complete(&self, lease: &Lease) -> Result<()> {
        self.inner.complete(lease)
    }

    /// As [`Transaction::hold`](crate::Transaction::hold).
    pub fn hold(&self, lease: &Lease) -> Result<()> {
        self.inner.hold(lease)
    }

    /// As [`Transaction::documents`](crate::Transaction::documents).
    pub fn documents(&self, name: &str) -> Result<TransactionCollection<Value>> {
        let inner = self.inner.documents(name)?;
        Ok(TransactionCollection { inner, runtime: self.runtime.clone() })
    }

    waits! { "Transaction":
        fn increment_many(&self, increments: impl IntoIterator<Item = Increment>) -> Result<()>;
    }
}

impl<T> TransactionCollection<T> {
    waits! { "TransactionCollection":
        fn delete(&self, key: impl KeyFields) -> Result<Option<Version>>;
        fn delete_if(&self, key: impl KeyFields, version: Version) -> Result<()>;
        fn update(&self, key: impl KeyFields, patch: &Value) -> Result<Written<T>>;
        fn update_if(&self, key: impl KeyFields, patch: &Value, version: Version)
            -> Result<Written<T>>;
        fn get_document(&self, key: impl KeyFields) -> Result<Option<Document>>;
        fn increment(
            &self,
            key: impl KeyFields,
            deltas: impl IntoIterator<Item = (impl Into<String>, i64)>
        ) -> Result<()>;
    }
}

impl<T: DeserializeOwned> TransactionCollection<T> {
    waits! { "TransactionCollection":
        fn get(&self, key: impl KeyFields) -> Result<Option<Stored<T>>>;
        fn get_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Stored<T>>>;
    }
}

impl<T: Serialize + 'static> TransactionCollection<T> {
    waits! { "TransactionCollection":
        fn insert(&self, record: &T) -> Result<Written<T>>;
        fn upsert(&self, record: &T) -> Result<Written<T>>;
        fn replace(&self, record: &T) -> Result<Written<T>>;
        fn replace_if(&self, record: &T, version: Version) -> Result<Written<T>>;
    }
}
