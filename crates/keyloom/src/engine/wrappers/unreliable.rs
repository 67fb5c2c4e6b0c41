//! Injects failures: what a network and a server can do to calls.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::super::random::Random;
use super::super::{
    Address, Area, Batch, Capabilities, Cell, Direction, Engine, Figure, Link, LogBounds, LogSlice,
    Outcome, Position, Range, Row, Space, Stretch, Trail,
};
use crate::error::{Error, ErrorKind, Fate, Result};

/// The fate of one commit: whether it happens, and whether it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommitFault {
    /// It happens and is answered, as on a reliable engine.
    None,
    /// It does not happen, and the caller is told so.
    Refused,
    /// It does not happen, and the caller is told that it may have.
    RequestLost,
    /// It happens, and the caller is told that it may have.
    AnswerLost,
}

impl CommitFault {
    const FAILURES: [CommitFault; 3] =
        [CommitFault::Refused, CommitFault::RequestLost, CommitFault::AnswerLost];
}

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    /// Reads that failed.
    pub reads_failed: u64,
    /// Commits that were passed on and answered.
    pub none: u64,
    /// Commits that did not happen, and whose caller was told so.
    pub refused: u64,
    /// Commits that did not happen, and whose caller does not know.
    pub requests_lost: u64,
    /// Commits that were passed on, and whose caller does not know.
    pub answers_lost: u64,
}

/// An engine that fails: commits in all of these ways, reads as unavailable. At a rate of 0 and
/// without a script it changes nothing. Closing never fails.
pub struct Unreliable {
    inner: Arc<dyn Engine>,
    dice: Arc<Mutex<Dice>>,
}

struct Dice {
    random: Random,
    rate: f64,
    script: VecDeque<CommitFault>,
    injected: Injected,
}

impl Unreliable {
    /// Fails each call with the probability `rate` (0 to 1), by random numbers from `seed`. The
    /// three failures of a commit are equally likely.
    pub fn new(inner: Arc<dyn Engine>, seed: u64, rate: f64) -> Self {
        let dice = Dice {
            random: Random::new(seed),
            rate,
            script: VecDeque::new(),
            injected: Injected::default(),
        };
        Unreliable { inner, dice: Arc::new(Mutex::new(dice)) }
    }

    /// Sets the fates of the next commits, in order. Afterwards the rate decides again. Reads
    /// cannot be scripted.
    pub fn script(&self, faults: impl IntoIterator<Item = CommitFault>) {
        self.dice().script.extend(faults);
    }

    /// Changes the rate from now on.
    pub fn set_rate(&self, rate: f64) {
        self.dice().rate = rate;
    }

    /// The faults that were injected so far.
    pub fn injected(&self) -> Injected {
        self.dice().injected
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before_read(&self) -> Result<()> {
        if self.dice().read_fails() { Err(failure(Fate::DidNotHappen)) } else { Ok(()) }
    }
}

impl Dice {
    fn read_fails(&mut self) -> bool {
        let fails = self.random.chance(self.rate);
        self.injected.reads_failed += u64::from(fails);
        fails
    }

    fn commit_fault(&mut self) -> CommitFault {
        let fault = self.script.pop_front().unwrap_or_else(|| {
            if self.random.chance(self.rate) {
                *self.random.pick(&CommitFault::FAILURES)
            } else {
                CommitFault::None
            }
        });
        let count = match fault {
            CommitFault::None => &mut self.injected.none,
            CommitFault::Refused => &mut self.injected.refused,
            CommitFault::RequestLost => &mut self.injected.requests_lost,
            CommitFault::AnswerLost => &mut self.injected.answers_lost,
        };
        *count += 1;
        fault
    }
}

fn failure(fate: Fate) -> Error {
    Error::new(ErrorKind::Unavailable, "the store could not be reached (injected)").with_fate(fate)
}

#[async_trait]
impl Engine for Unreliable {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn figures(&self) -> Vec<Figure> {
        self.inner.figures()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.before_read()?;
        self.inner.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.before_read()?;
        self.inner.scan(space, ranges, limit, direction).await
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        self.before_read()?;
        self.inner.follow(space, trails, limit, direction).await
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        self.before_read()?;
        self.inner.areas(space).await
    }

    /// A pinned snapshot fails as the store does.
    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        self.before_read()?;
        let inner = self.inner.pin().await?;
        Ok(Arc::new(Unreliable { inner, dice: self.dice.clone() }))
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        // A batch that breaks a limit never leaves the process, so no network can lose it.
        batch.check(self.capabilities())?;
        let fault = self.dice().commit_fault();
        match fault {
            CommitFault::None => self.inner.commit(batch).await,
            CommitFault::Refused => Err(failure(Fate::DidNotHappen)),
            CommitFault::RequestLost => Err(failure(Fate::MayHaveHappened)),
            CommitFault::AnswerLost => {
                // Once the answer is lost, even an error that certainly did not happen leaves
                // doubt.
                let _lost = self.inner.commit(batch).await;
                Err(failure(Fate::MayHaveHappened))
            }
        }
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        self.before_read()?;
        self.inner.read_log(space, from, entries_max, bytes_max).await
    }

    async fn trim_log(
        &self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        self.before_read()?;
        self.inner.trim_log(space, before, entries_max).await
    }

    async fn extend_log(
        &self,
        space: &Space,
        at: Position,
        entries: &[Bytes],
    ) -> Result<LogBounds> {
        self.before_read()?;
        self.inner.extend_log(space, at, entries).await
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        self.before_read()?;
        self.inner.wait_log(space, beyond).await
    }

    async fn close(&self) -> Result<()> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::super::{Addition, Area, Effect, EngineExt, Memory, Stamp};
    use super::*;

    fn counter() -> Address {
        Address::new(Area::default_area(), "n")
    }

    fn add_one() -> Batch {
        let mut batch = Batch::new(Space::main());
        let addition = Addition { name: "x".into(), delta: 1, min: None, max: None };
        let stamp = Stamp([1; Stamp::BYTES]);
        batch.push(counter(), None, Some(Effect::Add { stamp, additions: vec![addition] }));
        batch
    }

    async fn count(memory: &Memory) -> i64 {
        let cell = memory.get_one(&Space::main(), &counter()).await.unwrap();
        cell.map_or(0, |cell| cell.integers().unwrap()["x"])
    }

    #[tokio::test]
    async fn a_script_does_each_of_the_four() {
        let memory = Arc::new(Memory::new());
        let unreliable = Unreliable::new(memory.clone(), 1, 0.0);
        for (fault, happens, fate) in [
            (CommitFault::None, true, None),
            (CommitFault::Refused, false, Some(Fate::DidNotHappen)),
            (CommitFault::RequestLost, false, Some(Fate::MayHaveHappened)),
            (CommitFault::AnswerLost, true, Some(Fate::MayHaveHappened)),
        ] {
            let before = count(&memory).await;
            unreliable.script([fault]);
            let answer = unreliable.commit(add_one()).await;
            assert_eq!(answer.as_ref().err().map(Error::fate), fate, "{fault:?}");
            assert!(answer.as_ref().err().is_none_or(Error::is_retryable));
            assert_eq!(count(&memory).await - before, i64::from(happens), "{fault:?}");
        }
        unreliable.commit(add_one()).await.unwrap();
        let each = Injected {
            none: 2,
            refused: 1,
            requests_lost: 1,
            answers_lost: 1,
            ..Injected::default()
        };
        assert_eq!(unreliable.injected(), each, "the script is used up");
    }

    #[tokio::test]
    async fn a_rate_does_each_of_the_four_and_fails_reads() {
        let memory = Arc::new(Memory::new());
        let unreliable = Unreliable::new(memory.clone(), 7, 0.5);
        let mut failed_reads = 0;
        for _ in 0..200 {
            let _ = unreliable.commit(add_one()).await;
            if let Err(error) = unreliable.get(&Space::main(), &[counter()]).await {
                assert_eq!(
                    (error.kind(), error.fate()),
                    (ErrorKind::Unavailable, Fate::DidNotHappen)
                );
                failed_reads += 1;
            }
        }
        let done = unreliable.injected();
        assert!(
            done.none > 50
                && done.refused > 10
                && done.requests_lost > 10
                && done.answers_lost > 10
        );
        assert_eq!(count(&memory).await as u64, done.none + done.answers_lost);
        assert!(failed_reads > 50);
        assert_eq!(done.reads_failed, failed_reads);

        unreliable.set_rate(0.0);
        for _ in 0..100 {
            unreliable.commit(add_one()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_seed_repeats() {
        let run = async |seed| {
            let unreliable = Unreliable::new(Arc::new(Memory::new()), seed, 0.4);
            let mut fates = Vec::new();
            for _ in 0..50 {
                fates.push(unreliable.commit(add_one()).await.err().map(|error| error.fate()));
            }
            fates
        };
        assert_eq!(run(3).await, run(3).await);
        assert_ne!(run(3).await, run(4).await);
    }
}
