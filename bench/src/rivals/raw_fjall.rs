//! Bare fjall: the same keys and the same texts, with group commit, and without everything that
//! Keyloom adds (stamps, conditions, a schema, snapshots that hide what is not durable).

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use serde_json::Value;
use tokio::sync::{Mutex, oneshot};

use super::{LIST, LOAD_BATCH, Rival, Session, WANTED};
use crate::workload::{self, Approval};

/// The newest first: what `desc` does to a timestamp.
const TIMESTAMP_MAX: u64 = 9_999_999_999_999;

/// The counter that all count in.
const TALLY: &str = "tally";

type Write = (String, String);

struct Ask {
    writes: Vec<Write>,
    /// What is added to the one counter.
    adds: u64,
    reply: oneshot::Sender<()>,
}

pub struct RawFjall {
    cells: Keyspace,
    /// Its threads flush the memtable when the store is closed, so that it must outlive that.
    _database: Database,
    asks: Sender<Ask>,
    modifier: Arc<Mutex<()>>,
    thread: JoinHandle<Result<()>>,
}

impl Rival for RawFjall {
    const NAME: &'static str = "fjall";
    type Session = RawSession;

    fn open(folder: &Path, cache_bytes: u64) -> Result<Self> {
        let database = Database::builder(folder)
            .cache_size(cache_bytes)
            .manual_journal_persist(true)
            .journal_compression(CompressionType::None)
            .open()?;
        let options = || KeyspaceCreateOptions::default().manual_journal_persist(true);
        let cells = database.keyspace("cells", options)?;
        let (asks, asked) = mpsc::channel();
        let thread = std::thread::spawn({
            let (database, cells) = (database.clone(), cells.clone());
            move || commit_groups(&database, &cells, &asked)
        });
        Ok(RawFjall { cells, _database: database, asks, modifier: Arc::default(), thread })
    }

    fn session(&self) -> Result<RawSession> {
        let (cells, asks) = (self.cells.clone(), self.asks.clone());
        Ok(RawSession { cells, asks, modifier: self.modifier.clone() })
    }

    fn close(self) -> Result<()> {
        drop(self.asks);
        self.thread.join().map_err(|_| anyhow!("the commit thread panicked"))??;
        self.cells.rotate_memtable_and_wait()?;
        Ok(())
    }
}

/// Writes everything that waits as one batch, syncs once, and answers everyone.
fn commit_groups(database: &Database, cells: &Keyspace, asked: &Receiver<Ask>) -> Result<()> {
    const GROUP_MAX: usize = 1024;
    while let Ok(first) = asked.recv() {
        let group: Vec<Ask> =
            std::iter::once(first).chain(asked.try_iter().take(GROUP_MAX)).collect();
        let mut batch = database.batch().durability(Some(PersistMode::SyncData));
        let mut replies = Vec::with_capacity(group.len());
        let adds: u64 = group.iter().map(|ask| ask.adds).sum();
        if adds > 0 {
            let before = match cells.get(TALLY)? {
                Some(text) => std::str::from_utf8(&text)?.parse()?,
                None => 0,
            };
            batch.insert(cells, TALLY, (before + adds).to_string());
        }
        for Ask { writes, reply, .. } in group {
            for (key, value) in writes {
                batch.insert(cells, key, value);
            }
            replies.push(reply);
        }
        batch.commit()?;
        for reply in replies {
            // Nobody stops waiting.
            let _ = reply.send(());
        }
    }
    Ok(())
}

pub struct RawSession {
    cells: Keyspace,
    asks: Sender<Ask>,
    /// Whoever reads and writes one record: bare fjall has no conditions.
    modifier: Arc<Mutex<()>>,
}

impl RawSession {
    async fn commit(&self, writes: Vec<Write>, adds: u64) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        self.asks
            .send(Ask { writes, adds, reply })
            .map_err(|_| anyhow!("the commit thread ended"))?;
        answer.await.context("the commit thread failed")
    }

    fn get(&self, key: &str) -> Result<fjall::Slice> {
        self.cells.get(key)?.context("a record is missing")
    }
}

fn record_key(id: &str) -> String {
    format!("approval:record:{id}")
}

fn writes(record: &Approval) -> [Write; 4] {
    let Approval { id, requester, approver, created_ms, code, text, .. } = record;
    let newest_first = TIMESTAMP_MAX - created_ms;
    let held = format!("\"{id}\"");
    [
        (record_key(id), text.clone()),
        (format!("approval:index:requester:{requester}:{newest_first:013}:{id}"), held.clone()),
        (format!("approval:index:approver:{approver}:{newest_first:013}:{id}"), held.clone()),
        (format!("approval:code:{code}"), held),
    ]
}

/// The id that an entry holds as a JSON string. Ids are letters and digits, so that nothing is
/// escaped.
fn held_id(value: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(value)?;
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).context("not an id")
}

impl Session for RawSession {
    async fn load(&mut self, records: &[Approval]) -> Result<()> {
        for batch in records.chunks(LOAD_BATCH) {
            self.commit(batch.iter().flat_map(writes).collect(), 0).await?;
        }
        Ok(())
    }

    async fn insert(&mut self, record: &Approval) -> Result<()> {
        self.commit(writes(record).into(), 0).await
    }

    async fn list(&mut self, user: &str) -> Result<usize> {
        let mut texts = Vec::with_capacity(LIST);
        for entry in self.cells.prefix(format!("approval:index:requester:{user}:")).take(LIST) {
            texts.push(self.get(&record_key(held_id(&entry.value()?)?))?);
        }
        Ok(texts.iter().map(|text| text.len()).sum())
    }

    async fn look_up(&mut self, code: &str) -> Result<usize> {
        let held = self.get(&format!("approval:code:{code}"))?;
        Ok(self.get(&record_key(held_id(&held)?))?.len())
    }

    async fn approve(&mut self, id: &str) -> Result<()> {
        let key = record_key(id);
        let mut record: Value = serde_json::from_slice(&self.get(&key)?)?;
        record["status"] = "approved".into();
        self.commit(vec![(key, record.to_string())], 0).await
    }

    async fn modify(&mut self) -> Result<()> {
        let modifier = self.modifier.clone();
        let _alone = modifier.lock().await;
        let key = record_key(&workload::id(WANTED));
        let mut record: Value = serde_json::from_slice(&self.get(&key)?)?;
        record["seen"] = (record["seen"].as_u64().unwrap_or(0) + 1).into();
        self.commit(vec![(key, record.to_string())], 0).await
    }

    async fn increment(&mut self) -> Result<()> {
        self.commit(Vec::new(), 1).await
    }
}
