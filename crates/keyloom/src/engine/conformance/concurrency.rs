//! Many writers at once: conditions and additions are decided one batch after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Barrier;

use super::super::{
    Addition, Area, Batch, Cause, Condition, Direction, Engine, EngineExt, Entry, Fence, Outcome,
    Range,
};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, adding, addition, at, at_once, bytes_of, cell_after, delete, only_if, put, space,
    when,
};

/// How many writers race.
const WRITERS: usize = 16;
/// The least number of races, multiplied by the scale.
const ROUNDS: usize = 20;

pub(super) fn checks() -> Vec<Check> {
    checks![
        of_many_creators_one_wins,
        of_many_changers_one_wins,
        of_many_removers_one_wins,
        conditions_on_other_keys_prevent_write_skew,
        a_moved_fence_stops_every_writer,
        swaps_lose_no_update,
        additions_lose_nothing,
        additions_stay_within_their_bounds,
        writers_of_different_keys_never_meet,
        what_is_acknowledged_is_read,
    ]
}

/// Commits one batch for each writer at the same time, and gives the outcomes.
async fn race(engine: &Arc<dyn Engine>, batches: Vec<Vec<Entry>>) -> Vec<Outcome> {
    let start = Arc::new(Barrier::new(batches.len()));
    at_once(batches.into_iter().map(|entries| {
        let (engine, start) = (engine.clone(), start.clone());
        async move {
            start.wait().await;
            let batch = Batch { entries, ..Batch::new(space()) };
            engine.commit(batch).await.expect("a commit succeeds")
        }
    }))
    .await
}

fn is_committed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Committed(_))
}

/// The place of the only winner.
fn only_winner(outcomes: &[Outcome]) -> usize {
    let mut winners = (0..outcomes.len()).filter(|place| is_committed(&outcomes[*place]));
    let winner = winners.next().expect("one of the writers wins");
    assert_eq!(winners.next(), None, "two writers won on one condition");
    winner
}

async fn of_many_creators_one_wins(it: Subject) {
    for round in it.effort(ROUNDS).rounds() {
        let entries: Vec<Entry> = (0..WRITERS)
            .map(|n| only_if(Condition::Absent, put(at(format!("k{round}")), n.to_string())))
            .collect();
        let outcomes = race(&it.engine, entries.iter().map(|e| vec![e.clone()]).collect()).await;
        let winner = cell_after(&entries[only_winner(&outcomes)]);
        assert_eq!(it.cell(&at(format!("k{round}"))).await, Some(winner.clone()));
        for outcome in outcomes.iter().filter(|outcome| !is_committed(outcome)) {
            let Outcome::Rejected(rejection) = outcome else { continue };
            assert_eq!(rejection.cause, Cause::Condition { entry: 0 });
            assert_eq!(rejection.found.as_ref(), Some(&winner), "losers are shown the winner");
        }
    }
}

async fn of_many_changers_one_wins(it: Subject) {
    it.apply(vec![put(at("k"), "start")]).await;
    for _ in it.effort(ROUNDS).rounds() {
        let before = it.cell(&at("k")).await.expect("a cell is there");
        let unchanged = Condition::Unchanged(before.stamp);
        let entries: Vec<Entry> =
            (0..WRITERS).map(|n| only_if(unchanged, put(at("k"), n.to_string()))).collect();
        let outcomes = race(&it.engine, entries.iter().map(|e| vec![e.clone()]).collect()).await;
        let winner = &entries[only_winner(&outcomes)];
        assert_eq!(it.cell(&at("k")).await, Some(cell_after(winner)));
    }
}

async fn of_many_removers_one_wins(it: Subject) {
    for _ in it.effort(ROUNDS).rounds() {
        it.apply(vec![put(at("k"), "v")]).await;
        let remove = |n| {
            vec![only_if(Condition::Present, delete(at("k"))), put(at(format!("by{n}")), "won")]
        };
        let outcomes = race(&it.engine, (0..WRITERS).map(remove).collect()).await;
        let winner = only_winner(&outcomes);
        let rows = it.everything().await;
        assert_eq!(rows.len(), 1, "only the winner's other effect is there: {rows:?}");
        assert_eq!(rows[0].key, format!("by{winner}"));
        it.apply(vec![delete(at(format!("by{winner}")))]).await;
    }
}

/// Each person may leave only while somebody else stays. The conditions are on keys that the batch
/// does not write, so an engine that only compares writes with writes would let the last two leave
/// together.
async fn conditions_on_other_keys_prevent_write_skew(it: Subject) {
    for _ in it.effort(ROUNDS).rounds() {
        let people = ["ana", "bo"];
        it.apply(people.iter().map(|name| put(at(name), "here")).collect()).await;
        let leave = |writer: usize| {
            let (leaving, staying) = (people[writer % 2], people[(writer + 1) % 2]);
            vec![
                only_if(Condition::Present, delete(at(leaving))),
                when(at(staying), Condition::Present),
            ]
        };
        let outcomes = race(&it.engine, (0..WRITERS).map(leave).collect()).await;
        only_winner(&outcomes);
        assert_eq!(it.everything().await.len(), 1, "somebody stays");
    }
}

/// No batch that begins after the fence has moved is committed. On an engine with snapshots, no
/// earlier batch becomes visible afterwards either. Without snapshots, a batch that was decided
/// earlier may still be becoming visible. That is why a change of schema makes a second pass there.
async fn a_moved_fence_stops_every_writer(it: Subject) {
    for round in it.effort(ROUNDS).rounds() {
        let old = put(at("catalog"), "old");
        it.apply(vec![old.clone()]).await;
        let fence = Fence { address: at("catalog"), stamp: cell_after(&old).stamp };
        let start = Arc::new(Barrier::new(WRITERS + 1));
        let is_moved = Arc::new(AtomicBool::new(false));
        let writers = at_once((0..WRITERS).map(|writer| {
            let (engine, fence) = (it.engine.clone(), fence.clone());
            let (start, is_moved) = (start.clone(), is_moved.clone());
            async move {
                start.wait().await;
                for number in 0.. {
                    let begins_after = is_moved.load(Ordering::Acquire);
                    let entries = vec![put(at(format!("r{round}:{writer}:{number}")), "v")];
                    let batch =
                        Batch { fence: Some(fence.clone()), entries, ..Batch::new(space()) };
                    match engine.commit(batch).await.expect("a commit succeeds") {
                        Outcome::Committed(_) => assert!(!begins_after, "a fence was ignored"),
                        Outcome::Rejected(rejection) => {
                            assert_eq!(rejection.cause, Cause::Fence);
                            return number;
                        }
                    }
                    tokio::task::yield_now().await;
                }
                0
            }
        }));
        let written = Range::prefix(Area::default_area(), format!("r{round}:"));
        let change = async {
            start.wait().await;
            it.apply(vec![put(at("catalog"), "new")]).await;
            is_moved.store(true, Ordering::Release);
            it.keys(&written, Direction::Forward).await.len()
        };
        let (committed, seen) = tokio::join!(writers, change);
        let left = it.keys(&written, Direction::Forward).await.len();
        assert_eq!(left, committed.iter().sum::<usize>());
        assert!(!it.reads_snapshots() || left == seen, "a batch got in behind the moved fence");
    }
}

async fn swaps_lose_no_update(it: Subject) {
    const SWAPS: usize = 10;
    it.apply(vec![put(at("k"), "0")]).await;
    let effort = it.effort(SWAPS);
    let swaps = at_once((0..WRITERS).map(|_| {
        let engine = it.engine.clone();
        async move {
            let mut swaps = 0;
            while effort.goes_on(swaps) {
                swaps += usize::from(swap_once(&*engine).await);
                tokio::task::yield_now().await;
            }
            swaps
        }
    }))
    .await;
    let total = swaps.iter().sum::<usize>().to_string();
    assert_eq!(bytes_of(it.cell(&at("k")).await.as_ref()), &total);
}

/// Reads a number and writes the next one, unless somebody else wrote in between.
async fn swap_once(engine: &dyn Engine) -> bool {
    let before = engine.get_one(&space(), &at("k")).await.expect("a get succeeds");
    let text = String::from_utf8(bytes_of(before.as_ref()).to_vec()).expect("digits");
    let next = text.parse::<usize>().expect("a number") + 1;
    let unchanged = Condition::Unchanged(before.expect("a cell is there").stamp);
    let entries = vec![only_if(unchanged, put(at("k"), next.to_string()))];
    let batch = Batch { entries, ..Batch::new(space()) };
    is_committed(&engine.commit(batch).await.expect("a commit succeeds"))
}

/// No two additions get the same sum: each saw all additions before it, and itself.
async fn additions_lose_nothing(it: Subject) {
    const ADDITIONS: usize = 25;
    let effort = it.effort(ADDITIONS);
    let told = at_once((0..WRITERS).map(|writer| {
        let engine = it.engine.clone();
        async move {
            let mut told = Vec::new();
            let own = format!("w{writer}");
            for _ in effort.rounds() {
                let entries = vec![add(at("n"), &[("all", 1), (&own, 1)])];
                let batch = Batch { entries, ..Batch::new(space()) };
                match engine.commit(batch).await.expect("a commit succeeds") {
                    Outcome::Committed(done) => told.push(done.integers[0]["all"]),
                    Outcome::Rejected(rejection) => panic!("rejected: {rejection:?}"),
                }
            }
            assert!(told.is_sorted(), "sums of one writer grow: {told:?}");
            told
        }
    }))
    .await;
    let cell = it.cell(&at("n")).await.expect("a cell is there");
    let integers = cell.integers().expect("integers");
    for (writer, told) in told.iter().enumerate() {
        assert_eq!(integers[&format!("w{writer}")], told.len() as i64, "an addition was lost");
    }
    let mut told = told.concat();
    told.sort_unstable();
    assert_eq!(integers["all"], told.len() as i64, "an addition was lost");
    assert!(told.iter().copied().eq(1..=told.len() as i64), "two additions were told one sum");
}

async fn additions_stay_within_their_bounds(it: Subject) {
    const STOCK: i64 = 10;
    for round in it.effort(ROUNDS).rounds() {
        let key = format!("stock{round}");
        it.apply(vec![add(at(&key), &[("left", STOCK)])]).await;
        let take = |writer: usize| {
            let one = Addition { min: Some(0), ..addition("left", -1) };
            vec![adding(at(&key), vec![one]), put(at(format!("{key}:{writer}")), "sold")]
        };
        let outcomes = race(&it.engine, (0..WRITERS).map(take).collect()).await;
        let sold = outcomes.iter().filter(|outcome| is_committed(outcome)).count();
        assert_eq!(sold as i64, STOCK, "exactly what was in stock is sold");
        for outcome in outcomes {
            if let Outcome::Rejected(rejection) = outcome {
                let name = "left".to_owned();
                assert_eq!(rejection.cause, Cause::Bound { entry: 0, name });
            }
        }
        let sold = Range::prefix(Area::default_area(), format!("{key}:"));
        assert_eq!(it.keys(&sold, Direction::Forward).await.len() as i64, STOCK);
    }
}

/// Neighbouring keys with conditions on each: no writer is ever rejected.
async fn writers_of_different_keys_never_meet(it: Subject) {
    let mut rounds = 0;
    for round in it.effort(ROUNDS).rounds() {
        let create = |n: usize| {
            let record = only_if(Condition::Absent, put(at(format!("r:{round}:{n}")), "v"));
            vec![record, put(at(format!("i:{round}:{n}")), "v")]
        };
        let outcomes = race(&it.engine, (0..WRITERS).map(create).collect()).await;
        assert!(outcomes.iter().all(is_committed), "{outcomes:?}");
        rounds += 1;
    }
    assert_eq!(it.everything().await.len(), 2 * WRITERS * rounds);
}

async fn what_is_acknowledged_is_read(it: Subject) {
    at_once((0..WRITERS).map(|writer| {
        let engine = it.engine.clone();
        async move {
            let prefix = format!("{writer:02}:");
            let range = Range::prefix(Area::default_area(), prefix.clone());
            for number in 0..ROUNDS {
                let address = at(format!("{prefix}{number:04}"));
                let entry = put(address.clone(), number.to_string());
                let mut batch = Batch::new(space());
                batch.entries.push(entry.clone());
                engine.commit(batch).await.expect("a commit succeeds");
                let found = engine.get_one(&space(), &address).await.expect("a get succeeds");
                assert_eq!(found, Some(cell_after(&entry)), "an acknowledged put is read");
                let rows = engine.scan_all(&space(), &range, 1000, Direction::Backward).await;
                let rows = rows.expect("a scan succeeds");
                assert_eq!(rows.len(), number + 1);
                assert_eq!(rows[0].key, address.key, "an acknowledged put is scanned");
            }
        }
    }))
    .await;
}
