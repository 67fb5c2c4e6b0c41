//! The engine under test, and short helpers for checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::super::random::Random;
use super::super::{
    Addition, Address, Area, Batch, Cause, Cell, Condition, Content, Direction, Effect, Engine,
    EngineExt, Entry, Integers, Outcome, Range, Reading, Rejection, Row, Space, Stamp,
};
use crate::error::{Error, ErrorKind, Fate, Result};

/// What a check works with: a fresh engine, random numbers from the run's seed, and a factor for
/// how much to do.
pub(super) struct Subject {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) random: Random,
    pub(super) scale: usize,
}

/// The least duration of a race, multiplied by the scale. A fast engine decides its races within
/// nanoseconds, and so repeats them many more times than a slow one.
const RACE: Duration = Duration::from_millis(150);

/// At least this many rounds, and at least until this time.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    rounds: usize,
    until: Instant,
}

impl Effort {
    /// Whether to do another round.
    pub(super) fn goes_on(self, rounds_done: usize) -> bool {
        rounds_done < self.rounds || Instant::now() < self.until
    }

    /// The numbers of the rounds.
    pub(super) fn rounds(self) -> impl Iterator<Item = usize> {
        (0..).take_while(move |round| self.goes_on(*round))
    }
}

impl Subject {
    /// Whether every answer of the engine comes from one snapshot.
    pub(super) fn reads_snapshots(&self) -> bool {
        self.engine.capabilities().reading == Reading::Snapshot
    }

    /// How long to repeat something that shows its faults only after many repetitions.
    pub(super) fn effort(&self, rounds: usize) -> Effort {
        let scale = u32::try_from(self.scale).unwrap_or(u32::MAX);
        Effort { rounds: rounds * self.scale, until: Instant::now() + RACE * scale }
    }

    /// Commits and expects no error.
    pub(super) async fn commit(&self, entries: Vec<Entry>) -> Outcome {
        self.try_commit(entries).await.expect("a commit succeeds")
    }

    /// Commits and expects no rejection. Gives the integers after each addition.
    pub(super) async fn apply(&self, entries: Vec<Entry>) -> Vec<Integers> {
        match self.commit(entries).await {
            Outcome::Committed(committed) => committed.integers,
            Outcome::Rejected(rejection) => panic!("a batch was rejected: {rejection:?}"),
        }
    }

    /// Commits and expects a rejection.
    pub(super) async fn rejection(&self, entries: Vec<Entry>) -> Rejection {
        match self.commit(entries).await {
            Outcome::Rejected(rejection) => rejection,
            Outcome::Committed(_) => panic!("a batch was committed that had to be rejected"),
        }
    }

    /// Commits and expects a rejection with this cause and this cell. The area must be unchanged.
    pub(super) async fn rejects(&self, entries: Vec<Entry>, cause: Cause, found: Option<Cell>) {
        let before = self.everything().await;
        assert_eq!(self.rejection(entries).await, Rejection { cause, found });
        assert_eq!(self.everything().await, before, "a rejected batch changed something");
    }

    /// Commits and expects an error of this kind that did not happen. The area must be unchanged.
    pub(super) async fn refuses(&self, entries: Vec<Entry>, kind: ErrorKind) {
        let before = self.everything().await;
        refused(self.try_commit(entries).await, kind);
        assert_eq!(self.everything().await, before, "a refused batch changed something");
    }

    pub(super) async fn try_commit(&self, entries: Vec<Entry>) -> Result<Outcome> {
        self.engine.commit(Batch { entries, ..Batch::new(space()) }).await
    }

    /// The cell at an address.
    pub(super) async fn cell(&self, address: &Address) -> Option<Cell> {
        self.engine.get_one(&space(), address).await.expect("a get succeeds")
    }

    /// The cells of a range, in as many pages as the engine needs.
    pub(super) async fn rows(&self, range: &Range, direction: Direction) -> Vec<Row> {
        self.engine.scan_all(&space(), range, 1000, direction).await.expect("a scan succeeds")
    }

    /// The keys of a range, in as many pages as the engine needs.
    pub(super) async fn keys(&self, range: &Range, direction: Direction) -> Vec<Bytes> {
        self.rows(range, direction).await.into_iter().map(|row| row.key).collect()
    }

    /// Every cell of the area that [`at`] uses.
    pub(super) async fn everything(&self) -> Vec<Row> {
        self.rows(&Range::all(Area::default_area()), Direction::Forward).await
    }
}

/// The space of all checks, unless they name another.
pub(super) fn space() -> Space {
    Space::new("suite").expect("a valid name")
}

/// An area with this name.
pub(super) fn area(name: &str) -> Area {
    Area::new(name).expect("a valid name")
}

/// A key of the default area.
pub(super) fn at(key: impl AsRef<[u8]>) -> Address {
    Address::new(Area::default_area(), Bytes::copy_from_slice(key.as_ref()))
}

/// A stamp that no other call gives.
pub(super) fn stamp() -> Stamp {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bytes = [0; Stamp::BYTES];
    bytes[16..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Stamp(bytes)
}

/// An entry with only a condition.
pub(super) fn when(address: Address, condition: Condition) -> Entry {
    Entry { address, condition: Some(condition), effect: None }
}

/// An entry that puts bytes with a new stamp.
pub(super) fn put(address: Address, value: impl AsRef<[u8]>) -> Entry {
    let bytes = Bytes::copy_from_slice(value.as_ref());
    Entry { address, condition: None, effect: Some(Effect::Put { stamp: stamp(), bytes }) }
}

/// An entry that removes a cell.
pub(super) fn delete(address: Address) -> Entry {
    Entry { address, condition: None, effect: Some(Effect::Delete) }
}

/// An entry that adds to named integers without bounds.
pub(super) fn add(address: Address, deltas: &[(&str, i64)]) -> Entry {
    adding(address, deltas.iter().map(|(name, delta)| addition(name, *delta)).collect())
}

/// An entry with these additions.
pub(super) fn adding(address: Address, additions: Vec<Addition>) -> Entry {
    Entry { address, condition: None, effect: Some(Effect::Add { stamp: stamp(), additions }) }
}

/// An addition without bounds.
pub(super) fn addition(name: &str, delta: i64) -> Addition {
    Addition { name: name.to_owned(), delta, min: None, max: None }
}

/// The entry with a condition.
pub(super) fn only_if(condition: Condition, entry: Entry) -> Entry {
    Entry { condition: Some(condition), ..entry }
}

/// The cell that an entry with a put leaves.
pub(super) fn cell_after(entry: &Entry) -> Cell {
    match &entry.effect {
        Some(Effect::Put { stamp, bytes }) => {
            Cell { stamp: *stamp, content: Content::Bytes(bytes.clone()) }
        }
        other => panic!("only a put determines its cell, not {other:?}"),
    }
}

/// The bytes of a cell, which must exist and hold bytes.
pub(super) fn bytes_of(cell: Option<&Cell>) -> &Bytes {
    cell.expect("a cell is there").bytes().expect("the cell holds bytes")
}

/// Named integers.
pub(super) fn integers(values: &[(&str, i64)]) -> Integers {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// Expects an error of this kind that changed nothing.
pub(super) fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) -> Error {
    let error = result.expect_err("the call has to be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.fate(), Fate::DidNotHappen, "{error}");
    error
}

/// Runs tasks concurrently and gives their answers in order.
pub(super) async fn at_once<T: Send + 'static>(
    tasks: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let handles: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(handles.len());
    for handle in handles {
        match handle.await {
            Ok(answer) => answers.push(answer),
            Err(failure) => std::panic::resume_unwind(failure.into_panic()),
        }
    }
    answers
}
