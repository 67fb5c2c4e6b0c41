//! Records that all clients write at once. Nobody knows their values, but everybody knows what
//! holds for them: money moves and is never made, one of two guards is always on duty, two rivals
//! are never there together, and a counter counts every increment once.

use std::sync::Mutex;

use keyloom::{Error, ErrorKind, Fate, Order, Query, Result, Store, Transaction};
use serde_json::{Value, json};

use super::client::{Client, retried};

/// The name of the collection.
pub const SHARED: &str = "shared";

const ACCOUNTS: u64 = 4;
const MONEY: i64 = 1_000;
const GUARDS: [u64; 2] = [10, 11];
const COUNTER: u64 = 20;
/// Two records that must never be there together, each with the role by which it is found.
const RIVALS: [(u64, &str); 2] = [(30, "left"), (31, "right")];

/// How often the counter was incremented: for certain, and perhaps.
#[derive(Default)]
pub struct Increments(Mutex<(u64, u64)>);

impl Increments {
    fn add(&self, certain: u64, perhaps: u64) {
        let mut counts = self.0.lock().unwrap();
        *counts = (counts.0 + certain, counts.1 + perhaps);
    }
}

/// Creates the shared records.
pub async fn prepare(store: &Store) {
    let shared = retried(|| store.documents(SHARED)).await;
    let mut records: Vec<Value> =
        (0..ACCOUNTS).map(|n| json!({ "n": n, "balance": MONEY })).collect();
    records.extend(GUARDS.map(|n| json!({ "n": n, "on": true })));
    records.push(json!({ "n": COUNTER, "count": 0 }));
    for record in &records {
        retried(|| shared.upsert(record)).await;
    }
}

/// Everything must hold when nobody works, and the counter must be exact.
pub async fn check(store: &Store, increments: &Increments) {
    let shared = retried(|| store.documents(SHARED)).await;
    let counter = retried(|| shared.get(COUNTER)).await.unwrap();
    let (certain, perhaps) = *increments.0.lock().unwrap();
    let counted = counter.value["count"].as_u64().unwrap();
    assert!(
        (certain..=certain + perhaps).contains(&counted),
        "{certain} increments and perhaps {perhaps} more, but {counted} were counted"
    );
    let all = Query::new().index("balance");
    let accounts = retried(|| shared.page(&all)).await;
    let money: i64 = accounts.records.iter().map(|it| it.value["balance"].as_i64().unwrap()).sum();
    assert_eq!((accounts.records.len() as u64, money), (ACCOUNTS, MONEY * ACCOUNTS as i64));
}

async fn record(transaction: &Transaction, n: u64) -> Result<Value> {
    Ok(transaction.documents(SHARED)?.get(n).await?.unwrap().value)
}

impl Client {
    pub async fn share(&mut self) {
        match self.random.below(6) {
            5 => self.exclude().await,
            0 => self.transfer().await,
            1 => self.audit().await,
            2 => self.change_guard().await,
            3 => self.increment().await,
            _ => self.list_accounts().await,
        }
    }

    /// The answer of a transaction on shared records; `None` when it did not commit for certain.
    fn committed<T>(&self, answer: Result<T>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(error) if self.world.faults && error.kind() == ErrorKind::Unavailable => None,
            Err(error) if self.world.clients > 1 && error.kind() == ErrorKind::Contention => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn transfer(&mut self) {
        let from = self.random.below(ACCOUNTS as usize) as u64;
        let to = (from + 1 + self.random.below(ACCOUNTS as usize - 1) as u64) % ACCOUNTS;
        let amount = self.random.below(50) as i64;
        self.note(|| format!("transfer {amount} from {from} to {to}"));
        let attempt = move |transaction: Transaction| async move {
            let mut records = [record(&transaction, from).await?, record(&transaction, to).await?];
            tokio::task::yield_now().await;
            for (record, change) in records.iter_mut().zip([-amount, amount]) {
                record["balance"] = json!(record["balance"].as_i64().unwrap() + change);
                transaction.documents(SHARED)?.replace(record).await?;
            }
            Ok::<(), Error>(())
        };
        let answer = self.store.transaction(attempt).await;
        self.committed(answer);
    }

    /// A transaction that only reads sees one moment.
    async fn audit(&mut self) {
        self.note(|| "audit".to_owned());
        let attempt = |transaction: Transaction| async move {
            let mut money = 0;
            for n in 0..ACCOUNTS {
                money += record(&transaction, n).await?["balance"].as_i64().unwrap();
                tokio::task::yield_now().await;
            }
            let mut on = false;
            for n in GUARDS {
                on |= record(&transaction, n).await?["on"] == true;
                tokio::task::yield_now().await;
            }
            let mut rivals = 0;
            for (n, _) in RIVALS {
                let found = transaction.documents(SHARED)?.get(n).await?;
                rivals += usize::from(found.is_some());
                tokio::task::yield_now().await;
            }
            Ok::<_, Error>((money, on, rivals))
        };
        let answer = self.store.transaction(attempt).await;
        if let Some((money, on, rivals)) = self.committed(answer) {
            assert!(rivals < 2, "two records are there that exclude each other");
            assert_eq!(money, MONEY * ACCOUNTS as i64, "money was made or lost");
            assert!(on, "no guard is on duty");
        }
    }

    /// A guard goes off duty only while the other one is on. The two write different records, so
    /// that only what they read stands between them.
    async fn change_guard(&mut self) {
        let place = self.random.below(2);
        self.note(|| format!("change guard {place}"));
        let attempt = move |transaction: Transaction| async move {
            let mut mine = record(&transaction, GUARDS[place]).await?;
            let other = record(&transaction, GUARDS[1 - place]).await?;
            tokio::task::yield_now().await;
            mine["on"] = json!(!(mine["on"] == true && other["on"] == true));
            transaction.documents(SHARED)?.upsert(&mine).await.map(drop)
        };
        let answer: Result<()> = self.store.transaction(attempt).await;
        self.committed(answer);
    }

    /// A record comes only while nobody has the other's role, and goes at the next turn. What
    /// was looked for and not found is all that stands between the two.
    async fn exclude(&mut self) {
        let place = self.random.below(2);
        self.note(|| format!("exclude {place}"));
        let attempt = move |transaction: Transaction| async move {
            let shared = transaction.documents(SHARED)?;
            let ((n, role), (_, other)) = (RIVALS[place], RIVALS[1 - place]);
            if shared.delete(n).await?.is_some() {
                return Ok(());
            }
            let is_free = shared.get_by("role", other).await?.is_none();
            tokio::task::yield_now().await;
            match is_free {
                true => shared.upsert(&json!({ "n": n, "role": role })).await.map(drop),
                false => Ok(()),
            }
        };
        let answer: Result<()> = self.store.transaction(attempt).await;
        self.committed(answer);
    }

    /// Adds one by the version that was read, until that is still the version.
    async fn increment(&mut self) {
        self.note(|| "increment".to_owned());
        let shared = self.store.documents(SHARED).await;
        let Some(shared) = self.read(shared) else { return };
        loop {
            let answer = shared.get(COUNTER).await;
            let Some(counter) = self.read(answer) else { return };
            let counter = counter.unwrap();
            let mut next = counter.value.clone();
            next["count"] = json!(next["count"].as_u64().unwrap() + 1);
            tokio::task::yield_now().await;
            match shared.replace_if(&next, counter.version).await {
                Ok(_) => return self.world.increments.add(1, 0),
                Err(error) if error.kind() == ErrorKind::VersionConflict => {}
                Err(error) if error.fate() == Fate::MayHaveHappened => {
                    return self.world.increments.add(0, 1);
                }
                Err(error) => {
                    assert!(self.is_fault(&error), "{error:?}");
                    return;
                }
            }
        }
    }

    /// Accounts are listed by the balance that they have. Where a page is of one moment, each is
    /// there once, and all the money.
    async fn list_accounts(&mut self) {
        let (snapshot, order) = (self.world.snapshot, [Order::Ascending, Order::Descending]);
        let order = *self.random.pick(&order);
        self.note(|| format!("list accounts {order:?}"));
        let shared = self.store.documents(SHARED).await;
        let Some(shared) = self.read(shared) else { return };
        let answer = shared.page(&Query::new().order("balance", order)).await;
        let Some(page) = self.read(answer) else { return };
        assert!(page.problems.is_empty(), "{:?}", page.problems);
        let balances: Vec<i64> =
            page.records.iter().map(|it| it.value["balance"].as_i64().unwrap()).collect();
        if snapshot {
            assert_eq!(balances.iter().sum::<i64>(), MONEY * ACCOUNTS as i64, "{balances:?}");
            assert_eq!(balances.len() as u64, ACCOUNTS);
        }
        // Also where a page mixes moments, each record has the entry that led to it.
        let in_order = match order {
            Order::Ascending => balances.is_sorted(),
            Order::Descending => balances.iter().rev().is_sorted(),
        };
        assert!(in_order, "{balances:?}");
    }
}
