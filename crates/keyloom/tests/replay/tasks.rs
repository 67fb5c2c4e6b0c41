//! Tasks that fall due, expire and have a past, written with keys: all that a commit may write
//! besides records and their entries.

use std::time::Duration;

use keyloom::engine::{Address, Area, Direction, EngineExt, Range, Space};
use keyloom::{
    Collection, Due, Error, HistoryKind, PurgeOptions, Store, SweepOptions, Transaction, Version,
};
use serde_json::{Value, json};

use crate::Operation;
use crate::time_support::{START, TestClock};

pub const SCHEMA: &str = r#"
[idempotency]
keep = "1 hour"

[collection.task]
key        = "task:{id}"
expires_at = "ends"
history    = { versions = 3, days = 1 }
[collection.task.fields]
id   = "text"
mail = "text"
at   = "timestamp"
ends = "timestamp"
[collection.task.unique.mail]
key = "task-mail:{mail}"
[collection.task.index.due]
key = "task-due:{at}:{id}"
"#;

const HOUR: u64 = 60 * 60 * 1_000;
const LONG: Duration = Duration::from_secs(600);

fn task(id: usize, mail: u64, ends: u64) -> Value {
    json!({ "id": format!("t{id}"), "mail": format!("m{mail}"), "at": START, "ends": ends })
}

/// What is refused changes nothing.
pub async fn operate(store: &Store, clock: &TestClock, (what, id, value): Operation) {
    let tasks = store.documents("task").await.unwrap();
    let keyed = tasks.with_idempotency_key(&format!("k{value}")).unwrap();
    let name = format!("t{id}");
    let record = task(id, value, clock.now() + 1 + value * HOUR / 4);
    match what {
        0..15 => drop(tasks.upsert(&record).await),
        15..30 => drop(keyed.insert(&record).await),
        30..36 => drop(keyed.delete(&name).await),
        36..44 => {
            let record = &record;
            let anew = async |transaction: Transaction| {
                let tasks = transaction.documents("task")?;
                tasks.delete(record["id"].as_str().unwrap_or_default()).await?;
                Ok::<_, Error>(tasks.insert(record).await?.key.to_string())
            };
            drop(store.transaction_once(&format!("t{value}"), anew).await);
        }
        44..60 => drop(work(store, &tasks, value).await),
        60..80 => clock.pass(1 + value * HOUR / 3),
        80..90 => drop(store.sweep(&SweepOptions::default()).await),
        90..93 => drop(store.purge_history(&PurgeOptions::default()).await),
        93..96 => drop(store.purge_idempotency_keys(&PurgeOptions::default()).await),
        _ => clock.pass(24 * HOUR),
    }
}

/// Takes what is due, and leaves it, keeps it, gives it back or completes it.
async fn work(store: &Store, tasks: &Collection<Value>, value: u64) -> Result<(), Error> {
    for mut item in tasks.lease(&Due::new("due").take(2), "worker", LONG).await?.items {
        match value {
            0 => {}
            1 => item.lease.extend(2 * LONG).await?,
            2 => drop(item.lease.release().await?),
            _ => {
                let (lease, id) = (&item.lease, &item.record["id"]);
                let complete = async |transaction: Transaction| {
                    let id = id.as_str().unwrap_or_default();
                    transaction.documents("task")?.delete(id).await?;
                    transaction.complete(lease)?;
                    Ok::<_, Error>(())
                };
                store.transaction(complete).await?;
            }
        }
    }
    Ok(())
}

/// Writes a cell of every kind; gives the version of a task that was inserted with a key.
pub async fn each_once(store: &Store, clock: &TestClock) -> Version {
    let tasks = store.documents("task").await.unwrap();
    for id in 0..3 {
        tasks.insert(&task(id, id as u64, START + 10)).await.unwrap();
    }
    for _ in 0..4 {
        clock.pass(1);
        tasks.upsert(&task(3, 3, clock.now() + HOUR)).await.unwrap();
    }
    // Two are taken and kept; the others are given back, taken again and completed.
    for value in [1, 2, 3] {
        work(store, &tasks, value).await.unwrap();
    }
    clock.pass(10);
    // One makes way, one is swept.
    let keyed = tasks.with_idempotency_key("k").unwrap();
    let version = keyed.insert(&task(4, 0, START + HOUR)).await.unwrap().version;
    store.sweep(&SweepOptions::default()).await.unwrap();
    for kind in ["expiry:task:", "history:version:", "history:left:", "idempotency:", "lease:"] {
        let range = Range::prefix(Area::own(), kind);
        let found = store.engine().scan_one(&Space::main(), &range, 1, Direction::Forward).await;
        assert_eq!(found.unwrap().rows.len(), 1, "{kind}");
    }
    let gone = Address::new(Area::default_area(), "task:t0");
    assert_eq!(store.engine().get_one(&Space::main(), &gone).await.unwrap(), None);
    version
}

/// Goes on with a copy of that store, where it knows what the other knew.
pub async fn go_on(copy: &Store, met: Version) {
    let tasks = copy.documents("task").await.unwrap();
    let keyed = tasks.with_idempotency_key("k").unwrap();
    assert_eq!(keyed.insert(&task(4, 0, START + HOUR)).await.unwrap().version, met);
    let past = tasks.history("t0", 9, None).await.unwrap().records;
    assert_eq!(past[0].kind, HistoryKind::Expired);
    let revisions = tasks.history("t3", 9, None).await.unwrap().records;
    let revisions: Vec<u64> = revisions.iter().map(|past| past.version.revision()).collect();
    assert_eq!(revisions, [5, 4, 3]);
}
