//! Makes batches visible cell by cell, as in a store without snapshots.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::RwLock;
use tokio::task::yield_now;

use super::super::random::Random;
use super::super::{
    Address, Area, Batch, Capabilities, Cell, Direction, Engine, EngineExt, Figure, Outcome, Range,
    Reading, Row, Space, Stretch,
};
use crate::error::Result;

/// How many rows of a scan come from the same snapshot.
const ROWS_OF_ONE_MOMENT: usize = 2;

/// An engine that reads [`Reading::Validated`], as badly as that allows.
///
/// The inner engine decides and applies a batch at once, so conditions stay exact. But the cells of
/// the batch first keep their old content for readers. They change one by one, in an order that the
/// seed decides, and other tasks run in between. The commit answers after the last cell has
/// changed. Reads also take their cells one by one. No single cell ever goes back to an older
/// state, and every later read sees an acknowledged batch.
pub struct Torn {
    capabilities: Capabilities,
    inner: Arc<dyn Engine>,
    /// Readers hold it shared, and a commit holds it exclusively while the inner engine applies the
    /// batch. So a reader never sees new cells without the old content that hides them.
    turn: RwLock<()>,
    hidden: Mutex<Hidden>,
    random: Mutex<Random>,
}

/// The old content that readers still see in place of the current cells.
type Hidden = BTreeMap<Space, BTreeMap<Address, Option<Cell>>>;

/// The same for the cells of one range.
type HiddenRows = BTreeMap<Bytes, Option<Cell>>;

impl Torn {
    /// Tears the batches for `inner`.
    pub fn new(inner: Arc<dyn Engine>, seed: u64) -> Self {
        let capabilities = Capabilities {
            engine: "torn",
            reading: Reading::Validated,
            // A log entry must become visible with its batch, which here happens cell by cell.
            keeps_log: false,
            // A pinned snapshot would have to include the hidden cells.
            pins: false,
            adds_spread: 4,
            ..inner.capabilities().clone()
        };
        Torn {
            capabilities,
            inner,
            turn: RwLock::new(()),
            hidden: Mutex::default(),
            random: Mutex::new(Random::new(seed)),
        }
    }

    fn hidden(&self) -> MutexGuard<'_, Hidden> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shuffle(&self, addresses: &mut [Address]) {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).shuffle(addresses);
    }

    /// The old content that readers still see within a range.
    fn hidden_within(&self, space: &Space, range: &Range) -> HiddenRows {
        let hidden = self.hidden();
        let of_space = hidden.get(space).into_iter().flatten();
        of_space
            .filter(|(address, _)| address.area == range.area && range.contains(&address.key))
            .map(|(address, cell)| (address.key.clone(), cell.clone()))
            .collect()
    }

    /// Makes cells keep their current appearance until the veil is lifted.
    fn veil(&self, space: Space, addresses: Vec<Address>, held: Vec<Option<Cell>>) -> Veil<'_> {
        let mut hidden = self.hidden();
        let of_space = hidden.entry(space.clone()).or_default();
        for (address, cell) in addresses.iter().zip(held) {
            // A cell that still hides an earlier batch keeps the content that it shows.
            of_space.entry(address.clone()).or_insert(cell);
        }
        drop(hidden);
        Veil { torn: self, space, addresses }
    }

    async fn cell(&self, space: &Space, address: &Address) -> Result<Option<Cell>> {
        let _no_commit = self.turn.read().await;
        let shown = self.hidden().get(space).and_then(|cells| cells.get(address)).cloned();
        match shown {
            Some(cell) => Ok(cell),
            None => self.inner.get_one(space, address).await,
        }
    }

    /// The next rows of a range, all from one snapshot, and whether there may be more.
    async fn moment(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
    ) -> Result<Stretch<Row>> {
        let _no_commit = self.turn.read().await;
        let mut left = range.clone();
        loop {
            // Reads extra rows beyond the limit, in case hidden cells remove some.
            let hidden = self.hidden_within(space, &left);
            let found = self.inner.scan_one(space, &left, limit + hidden.len(), direction).await?;
            let last = found.rows.last().map(|row| row.key.clone());
            let shown = overlaid(found, hidden, limit, direction);
            match last {
                Some(last) if shown.more && shown.rows.is_empty() => {
                    left = left.after(&last, direction);
                }
                Some(_) | None => return Ok(shown),
            }
        }
    }

    /// The rows of one range, a few from each snapshot.
    async fn stretch(
        &self,
        space: &Space,
        range: &Range,
        limit: usize,
        direction: Direction,
    ) -> Result<Stretch<Row>> {
        let mut left = range.clone();
        let mut rows: Vec<Row> = Vec::new();
        loop {
            let count = ROWS_OF_ONE_MOMENT.min(limit - rows.len());
            let next = self.moment(space, &left, count, direction).await?;
            rows.extend(next.rows);
            match rows.last() {
                Some(last) if next.more && rows.len() < limit => {
                    left = left.after(&last.key, direction);
                }
                Some(_) | None => return Ok(Stretch::new(rows, next.more)),
            }
            yield_now().await;
        }
    }
}

/// The visible rows: old content replaces the current content of hidden cells.
fn overlaid(
    found: Stretch<Row>,
    hidden: HiddenRows,
    limit: usize,
    direction: Direction,
) -> Stretch<Row> {
    // After the last row of an unfinished scan, it is unknown which rows follow.
    let horizon = found.rows.last().filter(|_| found.more).map(|row| row.key.clone());
    let is_known = |key: &Bytes| match (&horizon, direction) {
        (None, _) => true,
        (Some(horizon), Direction::Forward) => key <= horizon,
        (Some(horizon), Direction::Backward) => key >= horizon,
    };
    let mut shown: BTreeMap<Bytes, Cell> =
        found.rows.into_iter().map(|row| (row.key, row.cell)).collect();
    for (key, cell) in hidden.into_iter().filter(|(key, _)| is_known(key)) {
        match cell {
            Some(cell) => shown.insert(key, cell),
            None => shown.remove(&key),
        };
    }
    let more = found.more || shown.len() > limit;
    let rows = shown.into_iter().map(|(key, cell)| Row { key, cell });
    let rows = match direction {
        Direction::Forward => rows.take(limit).collect(),
        Direction::Backward => rows.rev().take(limit).collect(),
    };
    Stretch::new(rows, more)
}

/// The cells of a batch that have not visibly changed yet. Dropping it shows all of them.
struct Veil<'t> {
    torn: &'t Torn,
    space: Space,
    addresses: Vec<Address>,
}

impl Veil<'_> {
    /// Shows the cells one by one, and lets other tasks run in between.
    async fn lift(mut self) {
        self.torn.shuffle(&mut self.addresses);
        while !self.addresses.is_empty() {
            yield_now().await;
            // Taken only after the pause: if the caller gives up there, the cell must not be lost.
            if let Some(address) = self.addresses.pop() {
                self.show(&address);
            }
        }
    }

    fn show(&self, address: &Address) {
        if let Some(of_space) = self.torn.hidden().get_mut(&self.space) {
            of_space.remove(address);
        }
    }
}

impl Drop for Veil<'_> {
    /// Runs even if the caller gives up in between; otherwise its cells would never change.
    fn drop(&mut self) {
        for address in std::mem::take(&mut self.addresses) {
            self.show(&address);
        }
    }
}

#[async_trait]
impl Engine for Torn {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn figures(&self) -> Vec<Figure> {
        self.inner.figures()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        addresses.iter().try_for_each(Address::check)?;
        let mut cells = Vec::with_capacity(addresses.len());
        for address in addresses {
            cells.push(self.cell(space, address).await?);
            yield_now().await;
        }
        Ok(cells)
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        if limit == 0 {
            return self.inner.scan(space, ranges, limit, direction).await;
        }
        let mut stretches = Vec::with_capacity(ranges.len());
        for range in ranges {
            stretches.push(self.stretch(space, range, limit, direction).await?);
            yield_now().await;
        }
        Ok(stretches)
    }

    /// Includes areas whose cells are partly or still hidden.
    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        let _no_commit = self.turn.read().await;
        let mut areas = self.inner.areas(space).await?;
        let hidden = self.hidden().get(space).cloned().unwrap_or_default();
        let shown = hidden.into_iter().filter(|(_, cell)| cell.is_some());
        areas.extend(shown.map(|(address, _)| address.area));
        areas.sort_unstable();
        areas.dedup();
        Ok(areas)
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        let written = batch.entries.iter().filter(|entry| entry.effect.is_some());
        let written: Vec<Address> = written.map(|entry| entry.address.clone()).collect();
        let space = batch.space.clone();
        let alone = self.turn.write().await;
        let held = self.inner.get(&space, &written).await?;
        let veil = self.veil(space, written, held);
        let outcome = self.inner.commit(batch).await;
        drop(alone);
        match outcome {
            Ok(Outcome::Rejected(_)) => drop(veil),
            Ok(Outcome::Committed(_)) | Err(_) => veil.lift().await,
        }
        outcome
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use super::super::super::{Area, Cause, Condition, Content, Effect, Memory, Stamp};
    use super::*;

    const KEYS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

    fn at(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn put_all(value: &'static str) -> Batch {
        let mut batch = Batch::new(Space::main());
        let stamp = Stamp([value.as_bytes()[0]; Stamp::BYTES]);
        for key in KEYS {
            batch.push(at(key), None, Some(Effect::Put { stamp, bytes: value.into() }));
        }
        batch
    }

    async fn scanned(torn: &Torn, direction: Direction) -> Vec<Bytes> {
        let range = Range::all(Area::default_area());
        let found = torn.scan_one(&Space::main(), &range, 100, direction).await.unwrap();
        found.rows.iter().map(|row| row.cell.bytes().unwrap().clone()).collect()
    }

    /// The number of different values in a list.
    fn variety(values: &[Bytes]) -> usize {
        values.iter().collect::<std::collections::BTreeSet<_>>().len()
    }

    async fn gotten(torn: &Torn) -> Vec<Bytes> {
        let cells = torn.get(&Space::main(), &KEYS.map(at)).await.unwrap();
        cells.iter().flatten().map(|cell| cell.bytes().unwrap().clone()).collect()
    }

    /// Whether some read during a commit gives old and new cells in one answer.
    ///
    /// On one thread, tasks switch only where they yield, so the result is the same each time.
    async fn is_torn(read: impl AsyncFn(&Torn) -> Vec<Bytes>) -> bool {
        let torn = Arc::new(Torn::new(Arc::new(Memory::new()), 1));
        torn.commit(put_all("1")).await.unwrap();
        let writer = tokio::spawn({
            let torn = torn.clone();
            async move { torn.commit(put_all("2")).await.unwrap() }
        });
        let mut is_torn = false;
        while !writer.is_finished() {
            let values = read(&torn).await;
            assert_eq!(values.len(), KEYS.len(), "a cell was lost on the way");
            is_torn |= variety(&values) == 2;
        }
        writer.await.unwrap();
        assert_eq!(read(&torn).await, ["2"; KEYS.len()], "an acknowledged batch is whole");
        assert!(torn.hidden().values().all(BTreeMap::is_empty), "nothing stays hidden");
        is_torn
    }

    #[tokio::test]
    async fn readers_see_part_of_a_batch_and_then_all_of_it() {
        assert!(is_torn(async |torn| scanned(torn, Direction::Forward).await).await);
        assert!(is_torn(async |torn| scanned(torn, Direction::Backward).await).await);
        assert!(is_torn(gotten).await);
    }

    #[tokio::test]
    async fn conditions_see_what_readers_do_not_yet() {
        let torn = Torn::new(Arc::new(Memory::new()), 1);
        let mut commit = std::pin::pin!(torn.commit(put_all("1")));
        // The first poll applies the batch, and pauses before the first cell becomes visible.
        assert!(poll_once(commit.as_mut()).await.is_none());
        assert!(scanned(&torn, Direction::Forward).await.is_empty());
        let mut create = Batch::new(Space::main());
        create.push(at("a"), Some(Condition::Absent), None);
        match torn.commit(create).await.unwrap() {
            Outcome::Rejected(rejection) => {
                assert_eq!(rejection.cause, Cause::Condition { entry: 0 });
                assert!(rejection.found.is_some());
            }
            Outcome::Committed(_) => panic!("the condition missed a batch"),
        }
        commit.await.unwrap();
        assert_eq!(scanned(&torn, Direction::Backward).await, ["1"; KEYS.len()]);
    }

    #[tokio::test]
    async fn giving_up_shows_everything() {
        let torn = Torn::new(Arc::new(Memory::new()), 1);
        {
            let mut commit = std::pin::pin!(torn.commit(put_all("1")));
            assert!(poll_once(commit.as_mut()).await.is_none());
        }
        assert_eq!(scanned(&torn, Direction::Forward).await, ["1"; KEYS.len()]);
    }

    async fn poll_once<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }

    #[test]
    fn what_is_hidden_takes_the_place_of_what_is_there() {
        let cell = |number| Cell {
            stamp: Stamp([number; Stamp::BYTES]),
            content: Content::Bytes(Bytes::new()),
        };
        let row = |key: &'static str, number| Row { key: key.into(), cell: cell(number) };
        let hidden = || {
            HiddenRows::from([
                ("b".into(), Some(cell(0))),
                ("c".into(), None),
                ("d".into(), Some(cell(0))),
                ("z".into(), Some(cell(0))),
            ])
        };
        let rows = vec![row("a", 1), row("b", 1), row("c", 1), row("e", 1)];
        let found = Stretch::new(rows.clone(), false);
        let shown = overlaid(found, hidden(), 10, Direction::Forward);
        let all = [row("a", 1), row("b", 0), row("d", 0), row("e", 1), row("z", 0)];
        assert_eq!(shown, Stretch::new(all.to_vec(), false));
        // "z" may come after rows that were not read.
        let found = Stretch::new(rows.clone(), true);
        let shown = overlaid(found, hidden(), 10, Direction::Forward);
        assert_eq!(shown, Stretch::new(all[..4].to_vec(), true));
        let found = Stretch::new(rows.into_iter().rev().collect(), false);
        let shown = overlaid(found, hidden(), 2, Direction::Backward);
        let last = vec![row("z", 0), row("e", 1)];
        assert_eq!(shown, Stretch::new(last, true));
    }
}
