//! Two engines that must give the same answers.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::RwLock;

use super::super::log::no_log;
use super::super::pin::no_pin;
use super::super::{
    Address, Area, Batch, Capabilities, Cell, Direction, Engine, Figure, Link, LogBounds, LogSlice,
    Outcome, Position, Range, Reading, Row, Space, Stretch, Trail,
};
use crate::error::{Error, ErrorKind, Result};

/// Calls two engines for everything, and panics if their answers differ: a tool for tests.
///
/// Both engines must be empty, or have the same content. Commits go to both, one after the other.
/// No read runs meanwhile, since the engines would then have different content.
pub struct Mirror {
    capabilities: Capabilities,
    pair: Arc<Pair>,
}

struct Pair {
    left: Arc<dyn Engine>,
    right: Arc<dyn Engine>,
    turn: RwLock<()>,
}

impl Mirror {
    /// Combines two engines into one, with the smaller limits of both.
    pub fn new(left: Arc<dyn Engine>, right: Arc<dyn Engine>) -> Self {
        let (a, b) = (left.capabilities(), right.capabilities());
        let both_read_snapshots = [a.reading, b.reading] == [Reading::Snapshot; 2];
        let capabilities = Capabilities {
            engine: "mirror",
            reading: if both_read_snapshots { Reading::Snapshot } else { Reading::Validated },
            batch_entries_max: a.batch_entries_max.min(b.batch_entries_max),
            batch_bytes_max: a.batch_bytes_max.min(b.batch_bytes_max),
            adds_spread: a.adds_spread.max(b.adds_spread),
            is_shared: a.is_shared || b.is_shared,
            persistent: a.persistent && b.persistent,
            keeps_log: a.keeps_log && b.keeps_log,
            pins: a.pins && b.pins,
        };
        Mirror { capabilities, pair: Arc::new(Pair { left, right, turn: RwLock::new(()) }) }
    }

    fn check_log(&self) -> Result<()> {
        if self.capabilities.keeps_log { Ok(()) } else { Err(no_log(self.capabilities.engine)) }
    }
}

/// Continues if the caller gives up in between; otherwise only one of the engines would have the
/// change.
async fn to_the_end<T: Send + 'static>(
    change: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(change).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(outcome) => outcome,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(cancelled)) => {
            Err(Error::new(ErrorKind::Closed, "the runtime was shut down under a commit")
                .with_fate(crate::error::Fate::MayHaveHappened)
                .with_source(cancelled))
        }
    }
}

/// Compares two answers; errors must agree in kind and fate.
fn same<T: PartialEq + Debug>(question: &str, left: Result<T>, right: Result<T>) -> Result<T> {
    let alike = match (&left, &right) {
        (Ok(left), Ok(right)) => left == right,
        (left, right) => are_alike_failures(left, right),
    };
    if alike { left } else { differ(question, &left, &right) }
}

/// Compares two answers to a scan. An engine may stop before the limit if it says so. Then the
/// other answer must continue from there, and the shorter one is given.
fn same_stretches<R: PartialEq + Debug>(
    question: &str,
    left: Result<Vec<Stretch<R>>>,
    right: Result<Vec<Stretch<R>>>,
) -> Result<Vec<Stretch<R>>> {
    match (left, right) {
        (Ok(left), Ok(right)) => {
            let alike = left.len() == right.len()
                && left.iter().zip(&right).all(|(a, b)| begin_alike(a, b) && begin_alike(b, a));
            if !alike {
                differ(question, &left, &right);
            }
            let shorter = |(a, b): (Stretch<R>, Stretch<R>)| {
                if a.rows.len() <= b.rows.len() { a } else { b }
            };
            Ok(left.into_iter().zip(right).map(shorter).collect())
        }
        (left, right) if are_alike_failures(&left, &right) => left,
        (left, right) => differ(question, &left, &right),
    }
}

/// Whether `a` is a prefix of `b`, or is continued where `b` stopped and said so.
fn begin_alike<R: PartialEq>(a: &Stretch<R>, b: &Stretch<R>) -> bool {
    let shared = a.rows.len().min(b.rows.len());
    a.rows[..shared] == b.rows[..shared] && (a.rows.len() >= b.rows.len() || a.more)
}

fn are_alike_failures<T>(left: &Result<T>, right: &Result<T>) -> bool {
    match (left, right) {
        (Err(left), Err(right)) => left.kind() == right.kind() && left.fate() == right.fate(),
        _ => false,
    }
}

#[allow(clippy::panic, reason = "a difference is a defect, and the purpose of this wrapper")]
fn differ<T: Debug>(question: &str, left: &T, right: &T) -> ! {
    panic!("two engines differ\n question: {question}\n     left: {left:?}\n    right: {right:?}")
}

#[async_trait]
impl Engine for Mirror {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn figures(&self) -> Vec<Figure> {
        self.pair.left.figures()
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        let Pair { left, right, turn } = &*self.pair;
        let _no_commit = turn.read().await;
        let question = format!("get {space:?} {addresses:?}");
        same(&question, left.get(space, addresses).await, right.get(space, addresses).await)
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        let Pair { left, right, turn } = &*self.pair;
        let _no_commit = turn.read().await;
        same_stretches(
            &format!("scan {space:?} {ranges:?} limit {limit} {direction:?}"),
            left.scan(space, ranges, limit, direction).await,
            right.scan(space, ranges, limit, direction).await,
        )
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        let Pair { left, right, turn } = &*self.pair;
        let _no_commit = turn.read().await;
        same_stretches(
            &format!("follow {space:?} {trails:?} limit {limit} {direction:?}"),
            left.follow(space, trails, limit, direction).await,
            right.follow(space, trails, limit, direction).await,
        )
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        let Pair { left, right, turn } = &*self.pair;
        let _no_commit = turn.read().await;
        same(&format!("areas of {space:?}"), left.areas(space).await, right.areas(space).await)
    }

    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        if !self.capabilities.pins {
            return Err(no_pin(self.capabilities.engine));
        }
        let Pair { left, right, turn } = &*self.pair;
        let _no_commit = turn.read().await;
        match (left.pin().await, right.pin().await) {
            (Ok(left), Ok(right)) => Ok(Arc::new(Mirror::new(left, right))),
            (left, right) => same("pin", left.map(drop), right.map(drop)).and_then(|()| {
                Err(Error::new(ErrorKind::Internal, "two engines failed to pin and did not"))
            }),
        }
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        let pair = self.pair.clone();
        to_the_end(async move {
            let _alone = pair.turn.write().await;
            let question = format!("commit {batch:?}");
            let left = pair.left.commit(batch.clone()).await;
            same(&question, left, pair.right.commit(batch).await)
        })
        .await
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        self.check_log()?;
        let Pair { left, right, turn } = &*self.pair;
        let _no_commit = turn.read().await;
        same(
            &format!("read the log of {space:?} from {from}, at most {entries_max}, {bytes_max}"),
            left.read_log(space, from, entries_max, bytes_max).await,
            right.read_log(space, from, entries_max, bytes_max).await,
        )
    }

    async fn trim_log(
        &self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        self.check_log()?;
        let (pair, space) = (self.pair.clone(), space.clone());
        to_the_end(async move {
            let _alone = pair.turn.write().await;
            let question = format!("trim the log of {space:?} before {before}, by {entries_max}");
            let left = pair.left.trim_log(&space, before, entries_max).await;
            same(&question, left, pair.right.trim_log(&space, before, entries_max).await)
        })
        .await
    }

    async fn extend_log(
        &self,
        space: &Space,
        at: Position,
        entries: &[Bytes],
    ) -> Result<LogBounds> {
        self.check_log()?;
        let (pair, space, entries) = (self.pair.clone(), space.clone(), entries.to_vec());
        to_the_end(async move {
            let _alone = pair.turn.write().await;
            let question = format!("extend the log of {space:?} at {at} by {}", entries.len());
            let left = pair.left.extend_log(&space, at, &entries).await;
            same(&question, left, pair.right.extend_log(&space, at, &entries).await)
        })
        .await
    }

    /// The engines reach a position one after the other, so the answer comes from the later one.
    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        self.check_log()?;
        let Pair { left, right, .. } = &*self.pair;
        let both = tokio::try_join!(left.wait_log(space, beyond), right.wait_log(space, beyond));
        both.map(|(left, right)| left.min(right))
    }

    async fn close(&self) -> Result<()> {
        let Pair { left, right, turn } = &*self.pair;
        let _alone = turn.write().await;
        same("close", left.close().await, right.close().await)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::super::{Area, Condition, Effect, Memory, Recipe, Stamp};
    use super::*;

    fn at(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn batch(key: &'static str, condition: Option<Condition>) -> Batch {
        let mut batch = Batch::new(Space::main());
        let effect = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "v".into() };
        batch.push(at(key), condition, Some(effect));
        batch
    }

    /// A mirror whose left engine has one cell more than the right.
    async fn uneven() -> Mirror {
        let left = Memory::new();
        left.commit(batch("left only", None)).await.unwrap();
        Mirror::new(Arc::new(left), Arc::new(Memory::new()))
    }

    #[tokio::test]
    #[should_panic(expected = "two engines differ")]
    async fn a_differing_get_panics() {
        let _ = uneven().await.get(&Space::main(), &[at("left only")]).await;
    }

    #[tokio::test]
    #[should_panic(expected = "two engines differ")]
    async fn a_differing_scan_panics() {
        let all = [Range::all(Area::default_area())];
        let _ = uneven().await.scan(&Space::main(), &all, 10, Direction::Forward).await;
    }

    #[tokio::test]
    #[should_panic(expected = "two engines differ")]
    async fn a_differing_follow_panics() {
        let recipe = Recipe { area: Area::default_area(), cuts: vec![], parts: vec![] };
        let trail = Trail { range: Range::all(Area::default_area()), recipe: &recipe };
        let _ = uneven().await.follow(&Space::main(), &[trail], 10, Direction::Forward).await;
    }

    #[tokio::test]
    #[should_panic(expected = "two engines differ")]
    async fn a_differing_commit_panics() {
        let _ = uneven().await.commit(batch("left only", Some(Condition::Absent))).await;
    }

    #[tokio::test]
    #[should_panic(expected = "two engines differ")]
    async fn a_failure_of_one_panics() {
        let mirror = uneven().await;
        mirror.pair.left.close().await.unwrap();
        let _ = mirror.get(&Space::main(), &[at("k")]).await;
    }

    #[test]
    fn an_engine_may_stop_early_if_it_says_so() {
        let stretch = |rows: &[u8], more| Ok(vec![Stretch::new(rows.to_vec(), more)]);
        let short = same_stretches("", stretch(&[1, 2, 3], false), stretch(&[1, 2], true));
        assert_eq!(short.unwrap(), vec![Stretch::new(vec![1, 2], true)]);
        let silent = || same_stretches("", stretch(&[1, 2, 3], false), stretch(&[1, 2], false));
        assert!(std::panic::catch_unwind(silent).is_err());
        let other = || same_stretches("", stretch(&[1, 2, 3], false), stretch(&[1, 3], true));
        assert!(std::panic::catch_unwind(other).is_err());
    }
}
