//! Transactions that wait.
//!
//! The closure waits for its own reads, so that it cannot run while something else waits for the
//! transaction. The two take turns instead: the transaction runs until it wants the closure,
//! hands it the attempt and stands still; the closure runs outside; its answer is put where the
//! transaction finds it when it is polled next.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::runtime::Runtime;
use super::waits;
use crate::error::{Error, Result};
use crate::record::{Document, Version};
use crate::store::{KeyFields, Stored};
use crate::typed::Record;
use crate::write::{Increment, Retry, Written};

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

/// Where the transaction and the closure meet.
struct Turn<A> {
    attempt: Option<crate::Transaction>,
    answer: Option<A>,
}

/// What the transaction stopped for.
enum Stop<A, R> {
    /// The closure shall run on this attempt.
    Attempt(crate::Transaction),
    /// It is over.
    Over(Result<A, R>),
}

pub(super) fn run<A, E, F>(
    store: &crate::Store,
    runtime: &Arc<Runtime>,
    retry: Retry,
    mut closure: F,
) -> Result<A, E>
where
    F: FnMut(Transaction) -> Result<A, E>,
    E: From<Error>,
{
    let turn = Mutex::new(Turn { attempt: None, answer: None });
    let mut transaction = pin!(store.transaction_with(retry, |attempt| {
        locked(&turn).attempt = Some(attempt);
        poll_fn(|_| match locked(&turn).answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
    }));
    loop {
        let stop = runtime.wait(poll_fn(|context| {
            if let Poll::Ready(over) = transaction.as_mut().poll(context) {
                return Poll::Ready(Stop::Over(over));
            }
            match locked(&turn).attempt.take() {
                Some(attempt) => Poll::Ready(Stop::Attempt(attempt)),
                None => Poll::Pending,
            }
        }))?;
        match stop {
            Stop::Over(over) => return over,
            Stop::Attempt(inner) => {
                let answer = closure(Transaction { inner, runtime: runtime.clone() });
                locked(&turn).answer = Some(answer);
            }
        }
    }
}

fn locked<A>(turn: &Mutex<Turn<A>>) -> MutexGuard<'_, Turn<A>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transaction {
    /// As [`Transaction::collection`](crate::Transaction::collection).
    pub fn collection<T: Record>(&self) -> Result<TransactionCollection<T>> {
        let inner = self.inner.collection()?;
        Ok(TransactionCollection { inner, runtime: self.runtime.clone() })
    }

    /// As [`Transaction::documents`](crate::Transaction::documents).
    pub fn documents(&self, name: &str) -> Result<TransactionCollection<Value>> {
        let inner = self.inner.documents(name)?;
        Ok(TransactionCollection { inner, runtime: self.runtime.clone() })
    }

    /// As [`Transaction::increment_many`](crate::Transaction::increment_many).
    pub fn increment_many(&self, increments: impl IntoIterator<Item = Increment>) -> Result<()> {
        self.inner.increment_many(increments)
    }
}

impl<T> TransactionCollection<T> {
    waits! { "TransactionCollection":
        fn delete(&self, key: impl KeyFields) -> Result<bool>;
    }

    /// As [`TransactionCollection::increment`](crate::TransactionCollection::increment).
    pub fn increment(
        &self,
        key: impl KeyFields,
        deltas: impl IntoIterator<Item = (impl Into<String>, i64)>,
    ) -> Result<()> {
        self.inner.increment(key, deltas)
    }
}

impl<T: DeserializeOwned> TransactionCollection<T> {
    waits! { "TransactionCollection":
        fn get(&self, key: impl KeyFields) -> Result<Option<Stored<T>>>;
        fn get_by(&self, index: &str, values: impl KeyFields) -> Result<Option<Stored<T>>>;
    }
}

impl<T: Serialize> TransactionCollection<T> {
    /// As [`TransactionCollection::insert`](crate::TransactionCollection::insert).
    pub fn insert(&self, record: &T) -> Result<Document> {
        self.inner.insert(record)
    }

    waits! { "TransactionCollection":
        fn upsert(&self, record: &T) -> Result<Written>;
        fn replace(&self, record: &T) -> Result<Written>;
        fn replace_if(&self, record: &T, version: Version) -> Result<Written>;
    }
}
