//! Counts calls and data, so that a test can assert the cost of an operation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::super::decide::integers_bytes;
use super::super::{
    Address, Area, Batch, Capabilities, Cell, Content, Direction, Engine, Figure, Link, LogBounds,
    LogSlice, Outcome, Position, Range, Row, Space, Stretch, Trail,
};
use crate::error::Result;

/// What has passed through a [`Metered`] engine. Each call is one round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Calls of `get`, including failed ones.
    pub gets: u64,
    /// Calls of `scan`, including failed ones.
    pub scans: u64,
    /// Calls of `follow`, including failed ones. Each counts once, even on an engine that follows
    /// in two steps.
    pub follows: u64,
    /// Calls of `commit`, including failed and rejected ones.
    pub commits: u64,
    /// Cells in answers: those found by `get`, the rows of `scan`, and the entries and records of
    /// `follow`.
    pub cells_read: u64,
    /// The contents of these cells, and the keys of rows and entries, in bytes.
    pub bytes_read: u64,
    /// Entries with an effect in committed batches.
    pub entries_written: u64,
    /// The keys and contents of these entries, in bytes.
    pub bytes_written: u64,
    /// Calls that list areas or pin a snapshot, including failed ones. Reads of a pinned snapshot
    /// count like reads of the store.
    pub other_calls: u64,
    /// Calls that read, trim or extend a log, or wait for it, including failed ones.
    pub log_calls: u64,
    /// Log entries that committed batches appended, and those that were added without a batch.
    pub log_entries_written: u64,
    /// The bytes of these entries.
    pub log_bytes_written: u64,
}

impl Usage {
    /// All reads.
    pub fn reads(&self) -> u64 {
        self.gets + self.scans + self.follows
    }

    /// All calls.
    pub fn round_trips(&self) -> u64 {
        self.reads() + self.commits + self.other_calls + self.log_calls
    }

    fn read_cell(&mut self, cell: &Cell) {
        self.cells_read += 1;
        self.bytes_read += match &cell.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Integers(integers) => integers_bytes(integers) as u64,
        };
    }

    fn read_row(&mut self, row: &Row) {
        self.read_cell(&row.cell);
        self.bytes_read += row.key.len() as u64;
    }
}

/// An engine that counts. A clone is another handle to the same counts.
#[derive(Clone)]
pub struct Metered {
    inner: Arc<dyn Engine>,
    usage: Arc<Mutex<Usage>>,
}

impl Metered {
    /// Counts the calls to `inner`, from zero.
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Metered { inner, usage: Arc::default() }
    }

    /// The counts since the beginning or the last [`take`](Self::take).
    pub fn usage(&self) -> Usage {
        *self.count()
    }

    /// The counts so far. Starts again from zero.
    pub fn take(&self) -> Usage {
        std::mem::take(&mut *self.count())
    }

    fn count(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Engine for Metered {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn figures(&self) -> Vec<Figure> {
        self.inner.figures()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.count().gets += 1;
        let found = self.inner.get(space, addresses).await?;
        let mut usage = self.count();
        found.iter().flatten().for_each(|cell| usage.read_cell(cell));
        drop(usage);
        Ok(found)
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.count().scans += 1;
        let found = self.inner.scan(space, ranges, limit, direction).await?;
        let mut usage = self.count();
        found.iter().flat_map(|stretch| &stretch.rows).for_each(|row| usage.read_row(row));
        drop(usage);
        Ok(found)
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        self.count().follows += 1;
        let found = self.inner.follow(space, trails, limit, direction).await?;
        let mut usage = self.count();
        for link in found.iter().flat_map(|stretch| &stretch.rows) {
            usage.read_row(&link.entry);
            link.record.iter().for_each(|record| usage.read_cell(record));
        }
        drop(usage);
        Ok(found)
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        self.count().other_calls += 1;
        self.inner.areas(space).await
    }

    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        self.count().other_calls += 1;
        let inner = self.inner.pin().await?;
        Ok(Arc::new(Metered { inner, usage: self.usage.clone() }))
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.count().commits += 1;
        let written = batch.entries.iter().filter(|entry| entry.effect.is_some());
        let (entries, bytes) =
            written.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.weight()));
        let appended = batch.append.as_ref().map(|bytes| bytes.len() as u64);
        let outcome = self.inner.commit(batch).await?;
        if let Outcome::Committed(_) = outcome {
            let mut usage = self.count();
            usage.log_entries_written += u64::from(appended.is_some());
            usage.log_bytes_written += appended.unwrap_or(0);
            usage.entries_written += entries;
            usage.bytes_written += bytes as u64;
        }
        Ok(outcome)
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        self.count().log_calls += 1;
        self.inner.read_log(space, from, entries_max, bytes_max).await
    }

    async fn trim_log(
        &self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        self.count().log_calls += 1;
        self.inner.trim_log(space, before, entries_max).await
    }

    async fn extend_log(
        &self,
        space: &Space,
        at: Position,
        entries: &[Bytes],
    ) -> Result<LogBounds> {
        self.count().log_calls += 1;
        let bounds = self.inner.extend_log(space, at, entries).await?;
        let mut usage = self.count();
        usage.log_entries_written += entries.len() as u64;
        usage.log_bytes_written += entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
        drop(usage);
        Ok(bounds)
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        self.count().log_calls += 1;
        self.inner.wait_log(space, beyond).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::super::{
        Addition, Area, Condition, Cut, Effect, Memory, Part, Recipe, Stamp,
    };
    use super::*;

    fn at(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn batch(condition: Option<Condition>) -> Batch {
        let stamp = Stamp([1; Stamp::BYTES]);
        let mut batch = Batch::new(Space::main());
        batch.push(at("i:1"), condition, Some(Effect::Put { stamp, bytes: "entry".into() }));
        batch.push(at("r:1"), None, Some(Effect::Put { stamp, bytes: "record".into() }));
        let addition = Addition { name: "abc".into(), delta: 1, min: None, max: None };
        batch.push(at("n"), None, Some(Effect::Add { stamp, additions: vec![addition] }));
        batch.push(at("gone"), None, Some(Effect::Delete));
        batch.push(at("condition only"), Some(Condition::Absent), None);
        batch
    }

    #[tokio::test]
    async fn every_call_cell_and_byte_is_counted_once() {
        let metered = Metered::new(Arc::new(Memory::new()));
        assert_eq!(metered.usage(), Usage::default());
        metered.commit(batch(None)).await.unwrap();
        // Keys of 3, 3, 1 and 4 bytes; contents of 5, 6, 3 + 8 and 0.
        let written = Usage { entries_written: 4, bytes_written: 33, ..Usage::default() };
        assert_eq!(metered.take(), Usage { commits: 1, ..written });

        metered.commit(batch(Some(Condition::Absent))).await.unwrap();
        metered.commit(Batch::new(Space::main())).await.unwrap();
        assert_eq!(metered.take(), Usage { commits: 2, ..Usage::default() }, "one was rejected");

        metered
            .commit(Batch { append: Some("entry".into()), ..Batch::new(Space::main()) })
            .await
            .unwrap();
        metered.read_log(&Space::main(), Position::FIRST, 1, 1).await.unwrap();
        metered.trim_log(&Space::main(), Position::FIRST, 1).await.unwrap();
        metered.wait_log(&Space::main(), Position::FIRST).await.unwrap();
        metered.extend_log(&Space::main(), Position::FIRST.next(), &["xy".into()]).await.unwrap();
        let logged = Usage {
            log_calls: 4,
            log_entries_written: 2,
            log_bytes_written: 7,
            ..Usage::default()
        };
        assert_eq!(metered.take(), Usage { commits: 1, ..logged });

        metered.areas(&Space::main()).await.unwrap();
        let pinned = metered.pin().await.unwrap();
        pinned.get(&Space::main(), &[at("r:1")]).await.unwrap();
        let read = Usage { gets: 1, cells_read: 1, bytes_read: 6, ..Usage::default() };
        assert_eq!(
            metered.take(),
            Usage { other_calls: 2, ..read },
            "a moment counts with its store"
        );

        let asked = [at("r:1"), at("missing"), at("n"), at("r:1")];
        metered.get(&Space::main(), &asked).await.unwrap();
        let read = Usage { cells_read: 3, bytes_read: 6 + 11 + 6, ..Usage::default() };
        assert_eq!(metered.take(), Usage { gets: 1, ..read });

        let ranges = [Range::prefix(Area::default_area(), "i:"), Range::all(Area::default_area())];
        metered.scan(&Space::main(), &ranges, 2, Direction::Forward).await.unwrap();
        // The entry is read twice, and the integers once.
        let read = Usage { cells_read: 3, bytes_read: 2 * (3 + 5) + 1 + 11, ..Usage::default() };
        assert_eq!(metered.take(), Usage { scans: 1, ..read });

        let recipe = Recipe {
            area: Area::default_area(),
            cuts: vec![Cut::Fixed(1), Cut::Rest],
            parts: vec![Part::Literal("r".into()), Part::Field(1)],
        };
        let trail = Trail { range: ranges[0].clone(), recipe: &recipe };
        metered.follow(&Space::main(), &[trail], 5, Direction::Forward).await.unwrap();
        let read = Usage { cells_read: 2, bytes_read: 3 + 5 + 6, ..Usage::default() };
        assert_eq!(metered.usage(), Usage { follows: 1, ..read });
        assert_eq!((metered.usage().reads(), metered.usage().round_trips()), (1, 1));

        let empty = [Address::new(Area::default_area(), "")];
        assert!(metered.get(&Space::main(), &empty).await.is_err());
        assert_eq!(metered.clone().take().gets, 1, "a failed call is a call, on every handle");
        assert_eq!(metered.take(), Usage::default());
    }
}
