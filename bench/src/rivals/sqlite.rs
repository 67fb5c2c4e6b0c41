//! SQLite: one table with the JSON text and the columns that are indexed.
//!
//! Writers share one connection behind a lock. (Sixteen connections that wait for each other by
//! SQLite's own busy handler were several times slower.) Each reader has a connection of its own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use rusqlite::{Connection, params};
use serde_json::Value;

use super::{LIST, LOAD_BATCH, Rival, Session, WANTED};
use crate::workload::{self, Approval};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS approval (
        id        TEXT PRIMARY KEY,
        requester TEXT NOT NULL,
        approver  TEXT NOT NULL,
        created   INTEGER NOT NULL,
        code      TEXT NOT NULL,
        status    TEXT NOT NULL,
        body      TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS by_requester ON approval (requester, created DESC, id);
    CREATE INDEX IF NOT EXISTS by_approver ON approval (approver, created DESC, id);
    CREATE UNIQUE INDEX IF NOT EXISTS by_code ON approval (code);
    CREATE TABLE IF NOT EXISTS tally (id TEXT PRIMARY KEY, n INTEGER NOT NULL);
    INSERT OR IGNORE INTO tally VALUES ('one', 0);
";
const INSERT: &str = "INSERT INTO approval VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6)";
const LIST_NEWEST: &str =
    "SELECT body FROM approval WHERE requester = ?1 ORDER BY created DESC, id LIMIT ?2";
const LOOK_UP: &str = "SELECT body FROM approval WHERE code = ?1";
const APPROVE: &str = "UPDATE approval SET status = 'approved', \
    body = json_set(body, '$.status', 'approved') WHERE id = ?1 AND status = 'pending'";

const READ: &str = "SELECT body FROM approval WHERE id = ?1";
const REWRITE: &str = "UPDATE approval SET body = ?2 WHERE id = ?1";
const INCREMENT: &str = "UPDATE tally SET n = n + 1 WHERE id = 'one'";

pub struct Sqlite {
    path: PathBuf,
    cache_bytes: u64,
    writer: Arc<Mutex<Connection>>,
}

impl Rival for Sqlite {
    const NAME: &'static str = "SQLite";
    type Session = SqliteSession;

    fn open(folder: &Path, cache_bytes: u64) -> Result<Self> {
        let path = folder.join("approvals.sqlite");
        let writer = connect(&path, cache_bytes)?;
        writer.execute_batch(TABLES)?;
        Ok(Sqlite { path, cache_bytes, writer: Arc::new(Mutex::new(writer)) })
    }

    fn session(&self) -> Result<SqliteSession> {
        let reader = connect(&self.path, self.cache_bytes)?;
        Ok(SqliteSession { reader, writer: self.writer.clone() })
    }

    fn close(self) -> Result<()> {
        // The last connection to close writes the log back into the database.
        drop(self);
        Ok(())
    }
}

fn connect(path: &Path, cache_bytes: u64) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // A negative size counts in KiB.
    connection.pragma_update(None, "cache_size", -((cache_bytes / 1024) as i64))?;
    Ok(connection)
}

pub struct SqliteSession {
    reader: Connection,
    writer: Arc<Mutex<Connection>>,
}

impl SqliteSession {
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn insert(connection: &Connection, record: &Approval) -> Result<()> {
    let Approval { id, requester, approver, created_ms, code, text, .. } = record;
    connection.prepare_cached(INSERT)?.execute(params![
        id,
        requester,
        approver,
        *created_ms as i64,
        code,
        text
    ])?;
    Ok(())
}

impl Session for SqliteSession {
    async fn load(&mut self, records: &[Approval]) -> Result<()> {
        let mut writer = self.writer();
        for batch in records.chunks(LOAD_BATCH) {
            let transaction = writer.transaction()?;
            batch.iter().try_for_each(|record| insert(&transaction, record))?;
            transaction.commit()?;
        }
        Ok(())
    }

    async fn insert(&mut self, record: &Approval) -> Result<()> {
        insert(&self.writer(), record)
    }

    async fn list(&mut self, user: &str) -> Result<usize> {
        let mut statement = self.reader.prepare_cached(LIST_NEWEST)?;
        let mut rows = statement.query(params![user, LIST as i64])?;
        let mut texts = Vec::with_capacity(LIST);
        while let Some(row) = rows.next()? {
            texts.push(row.get_ref(0)?.as_bytes()?.to_vec());
        }
        Ok(texts.iter().map(Vec::len).sum())
    }

    async fn look_up(&mut self, code: &str) -> Result<usize> {
        let mut statement = self.reader.prepare_cached(LOOK_UP)?;
        let text = statement.query_row([code], |row| Ok(row.get_ref(0)?.as_bytes()?.to_vec()))?;
        Ok(text.len())
    }

    async fn approve(&mut self, id: &str) -> Result<()> {
        let changed = self.writer().prepare_cached(APPROVE)?.execute([id])?;
        ensure!(changed == 1, "the record is missing or not pending");
        Ok(())
    }

    async fn modify(&mut self) -> Result<()> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        let id = workload::id(WANTED);
        let text: String = transaction.prepare_cached(READ)?.query_row([&id], |row| row.get(0))?;
        let mut record: Value = serde_json::from_str(&text)?;
        record["seen"] = (record["seen"].as_u64().unwrap_or(0) + 1).into();
        transaction.prepare_cached(REWRITE)?.execute([&id, &record.to_string()])?;
        transaction.commit()?;
        Ok(())
    }

    async fn increment(&mut self) -> Result<()> {
        let changed = self.writer().prepare_cached(INCREMENT)?.execute([])?;
        ensure!(changed == 1, "the counter is missing");
        Ok(())
    }
}
