//! The three outcomes of a commit: committed, rejected, and unknown.
//!
//! These checks also hold on engines that fail at random: they repeat failed reads, and treat a
//! commit that may have happened as such.

use std::sync::Arc;

use super::super::{
    Batch, Cause, Cell, Condition, Engine, EngineExt, Entry, Integers, Outcome, Rejection,
};
use super::runner::{Check, checks};
use super::subject::{Subject, add, at, at_once, cell_after, only_if, put, space};
use crate::error::{ErrorKind, Fate, Result};

const WRITERS: usize = 6;
/// How many commits each writer makes, multiplied by the scale.
const COMMITS: usize = 40;

pub(super) fn checks() -> Vec<Check> {
    checks![
        counts_stay_between_what_is_known_and_what_is_possible,
        repeating_with_a_claim_happens_once,
    ]
}

/// Repeats a read until it succeeds. Only an unavailable store justifies a repetition.
async fn read(engine: &dyn Engine, key: &str) -> Option<Cell> {
    loop {
        match engine.get_one(&space(), &at(key)).await {
            Ok(cell) => return cell,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                assert_eq!(error.fate(), Fate::DidNotHappen, "reads change nothing: {error}");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn commit(engine: &dyn Engine, entries: Vec<Entry>) -> Result<Outcome> {
    engine.commit(Batch { entries, ..Batch::new(space()) }).await
}

/// How often something happened, as far as the caller knows.
#[derive(Clone, Copy, Default)]
struct Count {
    certain: i64,
    possible: i64,
}

impl Count {
    fn learn(&mut self, outcome: &Result<Outcome>) {
        match outcome {
            Ok(Outcome::Committed(_)) => {
                self.certain += 1;
                self.possible += 1;
            }
            Ok(Outcome::Rejected(rejection)) => panic!("an addition was rejected: {rejection:?}"),
            Err(error) if error.fate() == Fate::MayHaveHappened => self.possible += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }

    fn allows(self, value: i64) -> bool {
        (self.certain..=self.possible).contains(&value)
    }
}

/// Each batch adds to two cells. Whatever the outcomes, the two agree. They lie between the number
/// of acknowledged batches and that number plus those that may have happened.
async fn counts_stay_between_what_is_known_and_what_is_possible(it: Subject) {
    let commits = COMMITS * it.scale;
    let counts = at_once((0..WRITERS).map(|writer| {
        let engine: Arc<dyn Engine> = it.engine.clone();
        async move {
            let name = format!("w{writer}");
            let mut count = Count::default();
            for _ in 0..commits {
                let entries = vec![add(at("a"), &[(&name, 1)]), add(at("b"), &[(&name, 1)])];
                count.learn(&commit(&*engine, entries).await);
                let found = read(&*engine, "a").await;
                let value = found.as_ref().and_then(Cell::integers).and_then(|all| all.get(&name));
                assert!(count.allows(value.copied().unwrap_or(0)), "{name} is {value:?}");
            }
            (name, count)
        }
    }))
    .await;
    let integers = async |key| -> Integers {
        let cell = read(&*it.engine, key).await;
        cell.as_ref().and_then(Cell::integers).cloned().unwrap_or_default()
    };
    let (a, b) = (integers("a").await, integers("b").await);
    assert_eq!(a, b, "a batch was applied half");
    for (name, count) in counts {
        let value = a.get(&name).copied().unwrap_or(0);
        assert!(count.allows(value), "{name} is {value}");
    }
}

/// Each addition comes with a claim of its own that must be absent. A writer repeats until it knows
/// that its claim exists; then the addition happened exactly once.
async fn repeating_with_a_claim_happens_once(it: Subject) {
    let commits = COMMITS * it.scale;
    at_once((0..WRITERS).map(|writer| {
        let engine: Arc<dyn Engine> = it.engine.clone();
        async move {
            for number in 0..commits {
                claim_and_count(&*engine, &format!("claim:{writer}:{number}")).await;
            }
        }
    }))
    .await;
    let cell = read(&*it.engine, "n").await.expect("a cell is there");
    let total = cell.integers().expect("the cell holds integers")["all"];
    assert_eq!(total, (WRITERS * commits) as i64, "each claim counts once");
}

async fn claim_and_count(engine: &dyn Engine, key: &str) {
    let claim = only_if(Condition::Absent, put(at(key), "claimed"));
    let count = add(at("n"), &[("all", 1)]);
    loop {
        match commit(engine, vec![claim.clone(), count.clone()]).await {
            Ok(Outcome::Committed(_)) => return,
            Ok(Outcome::Rejected(Rejection { cause, found })) => {
                // An earlier attempt succeeded after all.
                assert_eq!(cause, Cause::Condition { entry: 0 });
                assert_eq!(found, Some(cell_after(&claim)), "the claim is our own");
                return;
            }
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}
