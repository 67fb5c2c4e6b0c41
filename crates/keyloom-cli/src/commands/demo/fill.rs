//! Writes the demo's records.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::{ErrorKind, Schema, Store};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::systems::{self, Item};
use crate::exit::{FAILED, Failure};
use crate::output::Progress;

/// How many records are written at once. They share commits.
const AT_ONCE: usize = 64;

/// One approval in this many is decided after its creation, so that it has a history.
const DECIDED_EVERY: u64 = 5;

/// The result of filling the demo.
pub(super) struct Filled {
    pub(super) systems: Vec<System>,
}

/// The records of one system.
pub(super) struct System {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) records: u64,
}

impl Filled {
    pub(super) fn total(&self) -> u64 {
        self.systems.iter().map(|system| system.records).sum()
    }
}

/// Gives a store the five schemas, and roughly this many records.
pub(super) async fn fill(store: &Store, seed: u64, records: u64) -> Result<Filled, Failure> {
    let reputation = store.space("reputation")?;
    for schema in systems::MAIN {
        store.apply(&Schema::from_toml(schema)?).await?;
    }
    reputation.apply(&Schema::from_toml(systems::REPUTATION)?).await?;
    let share = |percent: u64| records.saturating_mul(percent) / 100;
    let work: [(&str, &str, &Store, Vec<Item>); 5] = [
        ("approvals", "who asked whom for what", store, systems::approvals(seed, share(35))),
        ("executions", "workflows of agents", store, systems::executions(seed, share(20))),
        ("flows", "runs, and what they wait for", store, systems::runs(seed, share(15))),
        ("patterns", "users, notes, posts, places", store, systems::patterns(seed, share(15))),
        (
            "reputation",
            "votes, in a space of their own",
            &reputation,
            systems::reputation(seed, share(15)),
        ),
    ];
    let all = work.iter().map(|(.., items)| items.len() as u64).sum();
    let progress = Arc::new(Progress::bar(all, "writing"));
    let mut filled = Filled { systems: Vec::new() };
    for (name, what, store, items) in work {
        progress.tell(name);
        let records = items.len() as u64;
        write(store, items, &progress).await?;
        filled.systems.push(System { name, what, records });
    }
    Ok(filled)
}

/// Writes records that do not exist yet, many at once.
async fn write(store: &Store, items: Vec<Item>, progress: &Arc<Progress>) -> Result<(), Failure> {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks: JoinSet<Result<Option<Item>, Failure>> = JoinSet::new();
    let mut counted = BTreeMap::new();
    let (flows, items): (Vec<Item>, Vec<Item>) =
        items.into_iter().partition(|(collection, _)| *collection == "flow");
    // Flows first: runs add to their counters.
    for flow in flows {
        insert(store, flow, 0).await?;
        progress.add(1);
    }
    for (number, item) in items.into_iter().enumerate() {
        let permit = Arc::clone(&room).acquire_owned().await;
        let (store, progress) = (store.clone(), Arc::clone(progress));
        tasks.spawn(async move {
            let written = insert(&store, item, number as u64).await;
            progress.add(1);
            drop(permit);
            written
        });
        while let Some(done) = tasks.try_join_next() {
            note_run(&mut counted, flatten(done)?);
        }
    }
    while let Some(done) = tasks.join_next().await {
        note_run(&mut counted, flatten(done)?);
    }
    for (flow, deltas) in counted {
        store.documents("flow").await?.increment(flow.as_str(), deltas).await?;
    }
    Ok(())
}

fn flatten(
    done: Result<Result<Option<Item>, Failure>, tokio::task::JoinError>,
) -> Result<Option<Item>, Failure> {
    done.map_err(|error| Failure::new(FAILED, format!("a task failed: {error}")))?
}

/// Inserts a record, and gives it back if it did not exist before.
async fn insert(store: &Store, item: Item, number: u64) -> Result<Option<Item>, Failure> {
    let (collection, record) = item;
    let documents = store.documents(collection).await?;
    let is_decided = collection == "approval"
        && number.is_multiple_of(DECIDED_EVERY)
        && record["status"] != "pending";
    let mut first = record.clone();
    if is_decided {
        first["status"] = json!("pending");
    }
    match documents.insert(&first).await {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        other => drop(other?),
    }
    if let (true, Some(id)) = (is_decided, record["id"].as_str()) {
        documents.update_with_retry(id, &json!({ "status": record["status"] })).await?;
    }
    Ok(Some((collection, record)))
}

/// Notes what a new run will add to the counters of its flow.
fn note_run(counted: &mut BTreeMap<String, BTreeMap<String, i64>>, item: Option<Item>) {
    let Some(("run", record)) = item else { return };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let counter = format!("stats.{}", text(&record["status"]));
    *counted.entry(text(&record["flow"])).or_default().entry(counter).or_default() += 1;
}
