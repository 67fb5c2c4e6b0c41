//! Writes that carry idempotency keys. Whatever is lost on the way, they are sent until they are
//! answered, and happen once; so that also where faults are injected everything is known exactly.

use std::sync::atomic::{AtomicU64, Ordering};

use keyloom::{Collection, Error, ErrorKind, Result, Store, Transaction, Version, Written};
use serde_json::{Value, json};

use super::client::{Client, retried};
use super::shared::SHARED;

/// The record that is incremented by writes with keys, and its rival in transactions.
const COUNTED: [u64; 2] = [40, 41];

/// How often each of the two was incremented.
#[derive(Default)]
pub struct KeyedCounts([AtomicU64; 2]);

/// Creates the records.
pub async fn prepare(store: &Store) {
    let shared = retried(|| store.documents(SHARED)).await;
    for n in COUNTED {
        retried(|| async { shared.upsert(&json!({ "n": n, "count": 0 })).await }).await;
    }
}

/// Every increment was counted once.
pub async fn check(store: &Store, counted: &KeyedCounts) {
    let shared = retried(|| store.documents(SHARED)).await;
    for (n, certain) in COUNTED.iter().zip(&counted.0) {
        let record = retried(|| shared.get(*n)).await.unwrap();
        assert_eq!(record["count"], json!(certain.load(Ordering::Relaxed)), "of {n}");
    }
}

fn incremented(mut record: Value) -> Value {
    record["count"] = json!(record["count"].as_u64().unwrap() + 1);
    record
}

impl Client {
    /// A key that nobody used.
    fn fresh_key(&mut self) -> String {
        format!("client {} {:016x}", self.number, self.random.number())
    }

    /// Increments a record by a function, or both by a transaction; sometimes sends it twice.
    pub async fn count_with_key(&mut self) {
        let key = self.fresh_key();
        let in_transaction = self.random.percent(50);
        self.note(|| format!("increment with key, in a transaction: {in_transaction}"));
        let mut answers = Vec::new();
        for _ in 0..1 + self.random.below(2) {
            answers.push(match in_transaction {
                true => self.count_both(&key).await,
                false => self.count_one_with_key(&key).await,
            });
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:?}");
        let counted = &self.world.keyed_counts.0;
        counted[0].fetch_add(1, Ordering::Relaxed);
        if in_transaction {
            counted[1].fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn count_one_with_key(&self, key: &str) -> Value {
        let shared = retried(|| self.store.documents(SHARED)).await;
        let keyed = shared.with_idempotency_key(key).unwrap();
        let sent = || {
            keyed.modify(COUNTED[0], |record| {
                *record = incremented(record.clone());
                Ok(())
            })
        };
        answered(sent).await.value().unwrap()["count"].clone()
    }

    async fn count_both(&self, key: &str) -> Value {
        let sent = || {
            self.store.transaction_once(key, |transaction: Transaction| async move {
                let shared = transaction.documents(SHARED)?;
                let mut counts = Vec::new();
                for n in COUNTED {
                    let record = incremented(shared.get(n).await?.unwrap().value);
                    tokio::task::yield_now().await;
                    shared.replace(&record).await?;
                    counts.push(record["count"].clone());
                }
                Ok::<_, Error>(json!(counts))
            })
        };
        answered(sent).await
    }

    /// The collection for one write: now and then with a key.
    pub fn maybe_keyed(&mut self, collection: usize) -> Sender {
        let documents = self.collections[collection].clone();
        let key = self.random.percent(30).then(|| self.fresh_key());
        let is_sent_again = self.random.percent(30);
        match key {
            None => Sender { documents, is_keyed: false, is_sent_again },
            Some(key) => Sender {
                documents: documents.with_idempotency_key(&key).unwrap(),
                is_keyed: true,
                is_sent_again,
            },
        }
    }
}

/// Sends one write. With a key it is sent until it is answered, and maybe once more.
pub struct Sender {
    documents: Collection<Value>,
    is_keyed: bool,
    is_sent_again: bool,
}

impl Sender {
    async fn send<A: PartialEq + std::fmt::Debug, F: Future<Output = Result<A>>>(
        &self,
        mut write: impl FnMut() -> F,
    ) -> Result<A> {
        if !self.is_keyed {
            return write().await;
        }
        let answer = loop {
            match write().await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                answer => break answer?,
            }
        };
        if self.is_sent_again {
            let again = loop {
                match write().await {
                    Err(error) if error.kind() == ErrorKind::Unavailable => {}
                    answer => break answer?,
                }
            };
            assert_eq!(again, answer, "a repeated write answers as before");
        }
        Ok(answer)
    }

    pub async fn insert(&self, record: &Value) -> Result<Written<Value>> {
        self.send(|| self.documents.insert(record)).await
    }

    pub async fn upsert(&self, record: &Value) -> Result<Written<Value>> {
        self.send(|| self.documents.upsert(record)).await
    }

    pub async fn replace(&self, record: &Value) -> Result<Written<Value>> {
        self.send(|| self.documents.replace(record)).await
    }

    pub async fn replace_if(&self, record: &Value, version: Version) -> Result<Written<Value>> {
        self.send(|| self.documents.replace_if(record, version)).await
    }

    pub async fn delete(&self, key: Vec<Value>) -> Result<Option<Version>> {
        self.send(|| self.documents.delete(key.clone())).await
    }

    pub async fn delete_if(&self, key: Vec<Value>, version: Version) -> Result<()> {
        self.send(|| self.documents.delete_if(key.clone(), version)).await
    }
}

/// The answer to a write with a key, which is sent until there is one.
async fn answered<A, F: Future<Output = Result<A>>>(mut send: impl FnMut() -> F) -> A {
    loop {
        match send().await {
            Ok(answer) => return answer,
            Err(error)
                if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Contention) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}
