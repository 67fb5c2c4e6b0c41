//! Readers run beside writers.
//!
//! On an engine that reads snapshots, no answer shows part of a batch. On one that reads validated,
//! an answer may mix moments. Then the checks are weaker: some batch wrote every single cell, no
//! cell goes back to an older state, a record that has the entry belongs to it, and after the last
//! write everything fits together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::super::{
    Address, Area, Batch, Cell, Cut, Direction, Engine, EngineExt, Entry, Link, Outcome, Part,
    Range, Recipe,
};
use super::runner::{Check, checks};
use super::subject::{Subject, add, area, at, at_once, bytes_of, cell_after, delete, put, space};

const WRITERS: usize = 4;
const READERS: usize = 4;
/// The least number of batches that each writer commits, multiplied by the scale.
const BATCHES: usize = 60;

pub(super) fn checks() -> Vec<Check> {
    checks![
        gets_never_show_half_a_batch,
        scans_never_show_half_a_batch,
        transfers_keep_the_total,
        follow_never_pairs_different_moments,
        cells_never_go_back,
    ]
}

async fn committed(engine: &dyn Engine, entries: Vec<Entry>) {
    let batch = Batch { entries, ..Batch::new(space()) };
    let outcome = engine.commit(batch).await.expect("a commit succeeds");
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
}

/// Runs `write(writer, number)` for every writer, with numbers from 0. Meanwhile readers call
/// `read` again and again, at least once after the last write has begun.
async fn writers_and_readers<W, WriteFut, R, ReadFut>(it: &Subject, write: W, read: R)
where
    W: Fn(Arc<dyn Engine>, usize, usize) -> WriteFut + Clone + Send + 'static,
    WriteFut: Future<Output = ()> + Send,
    R: Fn(Arc<dyn Engine>) -> ReadFut + Clone + Send + 'static,
    ReadFut: Future<Output = ()> + Send,
{
    let effort = it.effort(BATCHES);
    let writing = Arc::new(AtomicUsize::new(WRITERS));
    let writers = (0..WRITERS).map(|writer| {
        let (engine, write, writing) = (it.engine.clone(), write.clone(), writing.clone());
        async move {
            // If a writer panics, its readers must not wait for it.
            let _done = OnDrop(writing);
            for number in effort.rounds() {
                write(engine.clone(), writer, number).await;
                tokio::task::yield_now().await;
            }
        }
    });
    let readers = (0..READERS).map(|_| {
        let (engine, read, writing) = (it.engine.clone(), read.clone(), writing.clone());
        async move {
            loop {
                let is_last = writing.load(Ordering::Acquire) == 0;
                read(engine.clone()).await;
                if is_last {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
    });
    tokio::join!(at_once(writers), at_once(readers));
}

struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// The addresses that every batch of a check writes, in two areas.
fn together() -> Vec<Address> {
    let other = |key| Address::new(area("other"), key);
    vec![at("a"), at("b"), at("m"), at("z"), other("a"), other("q")]
}

/// Writes one value to all addresses, with the same stamp.
async fn write_together(engine: Arc<dyn Engine>, writer: usize, number: usize) {
    let value = format!("{writer}:{number}");
    let entries = together().into_iter().map(|address| put(address, &value)).collect();
    committed(&*engine, entries).await;
}

fn are_alike<'c>(mut cells: impl Iterator<Item = &'c Cell>) -> bool {
    let first = cells.next().and_then(Cell::bytes);
    cells.all(|cell| cell.bytes() == first)
}

async fn gets_never_show_half_a_batch(it: Subject) {
    let snapshots = it.reads_snapshots();
    write_together(it.engine.clone(), 0, 0).await;
    writers_and_readers(&it, write_together, move |engine| async move {
        let cells = engine.get(&space(), &together()).await.expect("a get succeeds");
        let cells: Vec<Cell> = cells.into_iter().flatten().collect();
        assert_eq!(cells.len(), together().len(), "no cell is ever removed");
        assert!(!snapshots || are_alike(cells.iter()), "half a batch was read: {cells:?}");
    })
    .await;
    let cells = it.engine.get(&space(), &together()).await.expect("a get succeeds");
    assert!(are_alike(cells.iter().flatten()), "the last batch is half there: {cells:?}");
}

/// Batches that remove and put, so that even the number of rows would reveal a partial batch.
async fn scans_never_show_half_a_batch(it: Subject) {
    let snapshots = it.reads_snapshots();
    let ranges = || [Range::all(Area::default_area()), Range::all(area("other"))];
    let write = |engine: Arc<dyn Engine>, writer, number| async move {
        if number % 3 == 2 {
            committed(&*engine, together().into_iter().map(delete).collect()).await;
        } else {
            write_together(engine, writer, number).await;
        }
    };
    writers_and_readers(&it, write, move |engine| async move {
        for direction in [Direction::Forward, Direction::Backward] {
            let found = engine.scan(&space(), &ranges(), 100, direction).await.expect("a scan");
            let cut = found.iter().any(|stretch| stretch.more);
            let cells: Vec<Cell> =
                found.into_iter().flat_map(|stretch| stretch.rows).map(|row| row.cell).collect();
            let whole = cells.is_empty() || cells.len() == together().len() || cut;
            let whole = whole && are_alike(cells.iter());
            assert!(!snapshots || whole, "half a batch was scanned: {cells:?}");
        }
    })
    .await;
    let found = it.engine.get(&space(), &together()).await.expect("a get succeeds");
    let cells: Vec<Cell> = found.into_iter().flatten().collect();
    assert!(cells.is_empty() || cells.len() == together().len(), "half a batch is left");
    assert!(are_alike(cells.iter()));
}

const ACCOUNTS: usize = 5;
const TOTAL: i64 = 1_000;

fn account(number: usize) -> Address {
    at(format!("account:{}", number % ACCOUNTS))
}

async fn transfers_keep_the_total(it: Subject) {
    let snapshots = it.reads_snapshots();
    it.apply(
        (0..ACCOUNTS).map(|n| add(account(n), &[("money", TOTAL / ACCOUNTS as i64)])).collect(),
    )
    .await;
    let write = |engine: Arc<dyn Engine>, writer: usize, number: usize| async move {
        let (from, to) = (account(writer + number), account(writer + number + 1 + writer % 2));
        let entries = vec![add(from, &[("money", -7)]), add(to, &[("money", 7)])];
        committed(&*engine, entries).await;
    };
    async fn total(engine: &dyn Engine) -> i64 {
        let accounts: Vec<Address> = (0..ACCOUNTS).map(account).collect();
        let cells = engine.get(&space(), &accounts).await.expect("a get succeeds");
        cells.iter().flatten().filter_map(Cell::integers).map(|integers| integers["money"]).sum()
    }
    writers_and_readers(&it, write, move |engine| async move {
        let found = total(&*engine).await;
        assert!(!snapshots || found == TOTAL, "money appeared or vanished: {found}");
    })
    .await;
    assert_eq!(total(&*it.engine).await, TOTAL);
}

/// Each writer owns one record, which has the key of its only index entry. Every change moves the
/// entry and rewrites the record in one batch.
async fn follow_never_pairs_different_moments(it: Subject) {
    let snapshots = it.reads_snapshots();
    let entry_key = |writer: usize, number: usize| format!("i:{:03}:{writer}", (number * 37) % 101);
    let recipe = || Recipe {
        area: area("records"),
        cuts: vec![Cut::Fixed(6), Cut::Rest],
        parts: vec![Part::Literal(Bytes::from_static(b"r:")), Part::Field(1)],
    };
    let record = move |writer: usize, number: usize| {
        put(Address::new(area("records"), format!("r:{writer}")), entry_key(writer, number))
    };
    for writer in 0..WRITERS {
        it.apply(vec![put(at(entry_key(writer, 0)), ""), record(writer, 0)]).await;
    }
    let write = move |engine: Arc<dyn Engine>, writer, number: usize| async move {
        let (old, new) = (entry_key(writer, number), entry_key(writer, number + 1));
        let entries = vec![delete(at(old)), put(at(new), ""), record(writer, number + 1)];
        committed(&*engine, entries).await;
    };
    // What a reader of validated answers does: it checks that the record has the entry that led to
    // it.
    fn regenerates(link: &Link) -> bool {
        link.record.as_ref().and_then(Cell::bytes) == Some(&link.entry.key)
    }
    let range = Range::prefix(Area::default_area(), "i:");
    let (in_read, prefix) = (range.clone(), b"r:");
    writers_and_readers(&it, write, move |engine| {
        let range = in_read.clone();
        async move {
            for direction in [Direction::Forward, Direction::Backward] {
                let found = engine.follow_one(&space(), &range, 100, direction, &recipe()).await;
                let found = found.expect("a follow succeeds");
                for link in &found.rows {
                    let target = link.target.as_ref().expect("the entry fits the recipe");
                    assert_eq!(target[2..], link.entry.key[6..], "the target is the entry's");
                    assert!(target.starts_with(prefix));
                }
                if snapshots {
                    let pairs = found.rows.iter().all(regenerates);
                    assert!(pairs, "an entry came with a record of another moment: {found:?}");
                    assert!(found.more || found.rows.len() == WRITERS, "one entry each: {found:?}");
                }
            }
        }
    })
    .await;
    let found = it.engine.follow_one(&space(), &range, 100, Direction::Forward, &recipe()).await;
    let found = found.expect("a follow succeeds");
    assert_eq!(found.rows.len(), WRITERS);
    assert!(found.rows.iter().all(regenerates), "{found:?}");
}

/// Each writer counts up in its own cell. No reader ever sees a count fall, and every cell has the
/// stamp that was written with its bytes.
async fn cells_never_go_back(it: Subject) {
    let cell_of = |writer: usize| at(format!("count:{writer}"));
    for writer in 0..WRITERS {
        it.apply(vec![put(cell_of(writer), "0000000000")]).await;
    }
    let effort = it.effort(BATCHES);
    let writing = Arc::new(AtomicUsize::new(WRITERS));
    let writers = (0..WRITERS).map(|writer| {
        let (engine, writing) = (it.engine.clone(), writing.clone());
        async move {
            let _done = OnDrop(writing);
            let mut written = BTreeMap::new();
            for number in effort.rounds() {
                let entry = put(cell_of(writer), format!("{:010}", number + 1));
                let cell = cell_after(&entry);
                written.insert(cell.stamp, cell);
                committed(&*engine, vec![entry, put(at("shared"), number.to_string())]).await;
            }
            written
        }
    });
    let readers = (0..READERS).map(|reader| {
        let (engine, writing) = (it.engine.clone(), writing.clone());
        async move {
            let mut seen: Vec<Vec<Cell>> = vec![Vec::new(); WRITERS];
            let addresses: Vec<Address> = (0..WRITERS).map(cell_of).collect();
            let range = Range::prefix(Area::default_area(), "count:");
            while writing.load(Ordering::Acquire) > 0 {
                let cells: Vec<Cell> = if reader % 2 == 0 {
                    let found = engine.get(&space(), &addresses).await.expect("a get succeeds");
                    found.into_iter().flatten().collect()
                } else {
                    let found = engine.scan_all(&space(), &range, 3, Direction::Forward).await;
                    found.expect("a scan succeeds").into_iter().map(|row| row.cell).collect()
                };
                assert_eq!(cells.len(), WRITERS, "no cell is ever removed");
                for (seen, cell) in seen.iter_mut().zip(cells) {
                    if let Some(last) = seen.last() {
                        let (last, now) = (bytes_of(Some(last)), bytes_of(Some(&cell)));
                        assert!(last <= now, "a cell went back from {last:?} to {now:?}");
                    }
                    if seen.last() != Some(&cell) {
                        seen.push(cell);
                    }
                }
                tokio::task::yield_now().await;
            }
            seen
        }
    });
    let (written, seen) = tokio::join!(at_once(writers), at_once(readers));
    for seen in seen {
        for (written, seen) in written.iter().zip(seen) {
            let is_known = |cell: &Cell| {
                bytes_of(Some(cell)) == "0000000000" || written.get(&cell.stamp) == Some(cell)
            };
            assert!(seen.iter().all(is_known), "a cell was read that nobody wrote");
        }
    }
}
