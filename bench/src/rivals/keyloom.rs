//! Keyloom's embedded engine with the schema of system 1, and the same with two aggregates.

use std::path::Path;
use std::sync::Arc;

use ::keyloom::engine::{Embedded, EmbeddedOptions, Engine};
use ::keyloom::{Collection, Order, Query, Schema, Store};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Hits, LIST, Rival, Session, WANTED};
use crate::workload::{self, Approval};

const SCHEMA: &str = r#"
[collection.approval]
key = "approval:record:{id}"

[collection.approval.fields]
id           = { type = "id", generate = true }
requester_id = "text"
approver_id  = "text"
created_at   = "timestamp"
code         = { type = "code", pattern = "A-******", generate = true }
status       = { type = "enum", values = ["pending", "approved", "denied", "canceled"], transitions = { pending = ["approved", "denied", "canceled"] } }

[collection.approval.index.requester]
key = "approval:index:requester:{requester_id}:{created_at desc}:{id}"

[collection.approval.index.approver]
key = "approval:index:approver:{approver_id}:{created_at desc}:{id}"

[collection.approval.unique.code]
key = "approval:code:{code}"

[collection.tally]
key = "tally"
counters = { n = {} }
"#;

/// Two counts: one of a few groups in which all writers meet, one of as many as there are users.
const AGGREGATES: &str = r#"
[collection.approval.count.by_status]
group = ["status"]

[collection.approval.count.by_approver]
group = ["approver_id", "status"]
"#;

/// The part of the memory for caches that holds cells, in eighths; the rest holds the first entries
/// of lists. Blocks of files are left to the operating system, unless the store is large.
const RECORD_CACHE_EIGHTHS: u64 = 5;

/// With or without two aggregates.
pub struct Keyloom<const COUNTED: bool> {
    store: Store,
    engine: Arc<Embedded>,
}

impl<const COUNTED: bool> Rival for Keyloom<COUNTED> {
    const NAME: &'static str = if COUNTED { "Keyloom, counted" } else { "Keyloom" };
    type Session = KeyloomSession;

    fn open(folder: &Path, cache_bytes: u64) -> Result<Self> {
        let record_cache_bytes = cache_bytes / 8 * RECORD_CACHE_EIGHTHS;
        let options = EmbeddedOptions::default()
            .record_cache_bytes(record_cache_bytes)
            .list_cache_bytes(cache_bytes - record_cache_bytes);
        let engine = Arc::new(Embedded::open(folder, options)?);
        let store = Store::on(engine.clone());
        let aggregates = if COUNTED { AGGREGATES } else { "" };
        wait(store.apply(&Schema::from_toml(&format!("{SCHEMA}{aggregates}"))?))?;
        wait(async { store.documents("tally").await?.upsert(&json!({})).await })?;
        Ok(Keyloom { store, engine })
    }

    fn session(&self) -> Result<KeyloomSession> {
        let approvals = wait(self.store.documents("approval"))?;
        let tally = wait(self.store.documents("tally"))?;
        Ok(KeyloomSession { approvals, tally })
    }

    fn hits(&self) -> Vec<Hits> {
        let figures = self.engine.figures();
        let count = |name: String| {
            figures.iter().find(|figure| figure.name == name).map_or(0, |figure| figure.value)
        };
        let caches = figures.iter().filter_map(|figure| figure.name.strip_suffix(" hits"));
        let hits = caches.map(|cache| Hits {
            cache: cache.to_owned(),
            hits: count(format!("{cache} hits")),
            misses: count(format!("{cache} misses")),
        });
        hits.collect()
    }

    fn close(self) -> Result<()> {
        Ok(wait(self.store.close())?)
    }
}

pub struct KeyloomSession {
    approvals: Collection<Value>,
    tally: Collection<Value>,
}

impl Session for KeyloomSession {
    async fn load(&mut self, records: &[Approval]) -> Result<()> {
        // It makes batches of as many records by itself.
        let load = self.approvals.load(records.iter().map(|record| &record.json)).await?;
        ensure!(load.inserted == records.len() as u64, "not all were loaded: {:?}", load.refused);
        Ok(())
    }

    async fn insert(&mut self, record: &Approval) -> Result<()> {
        self.approvals.insert(&record.json).await?;
        Ok(())
    }

    async fn list(&mut self, user: &str) -> Result<usize> {
        let newest = Query::new()
            .equal("requester_id", user)
            .order("created_at", Order::Descending)
            .take(LIST);
        let page = self.approvals.documents(&newest).await?;
        ensure!(page.problems.is_empty(), "the list has problems");
        Ok(page.records.iter().map(|document| document.text().len()).sum())
    }

    async fn look_up(&mut self, code: &str) -> Result<usize> {
        let found = self.approvals.get_document_by("code", code).await?;
        Ok(found.context("the code leads nowhere")?.text().len())
    }

    async fn approve(&mut self, id: &str) -> Result<()> {
        let approved = json!({ "status": "approved" });
        self.approvals.update_with_retry(id, &approved).await?;
        Ok(())
    }

    async fn modify(&mut self) -> Result<()> {
        let add = |record: &mut Value| {
            record["seen"] = json!(record["seen"].as_u64().unwrap_or(0) + 1);
            Ok(())
        };
        self.approvals.modify(workload::id(WANTED), add).await?;
        Ok(())
    }

    async fn increment(&mut self) -> Result<()> {
        self.tally.increment((), [("n", 1)]).await?;
        Ok(())
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    crate::harness::wait(future)
}
