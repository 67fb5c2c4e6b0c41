//! Pinned snapshots: they never change, while writers go on.

use std::sync::Arc;

use bytes::Bytes;

use super::super::random::Random;
use super::super::{
    Address, Area, Batch, Cell, Condition, Cut, Direction, Engine, EngineExt, Entry, Link,
    LogSlice, Outcome, Part, Position, Range, Recipe, Row, Space, Stretch,
};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, area, at, at_once, bytes_of, delete, put, refused, space, when,
};
use crate::error::ErrorKind;

const WRITERS: usize = 4;
const READERS: usize = 2;
/// The least number of snapshots that each reader pins, multiplied by the scale.
const MOMENTS: usize = 20;
/// The number of random batches, multiplied by the scale.
const BATCHES: usize = 300;
const KEYS: usize = 40;

pub(super) fn checks() -> Vec<Check> {
    let pinning = checks![
        a_moment_stays_as_it_was,
        every_moment_of_a_random_history_stays,
        a_moment_is_of_one_instant,
        what_was_acknowledged_is_in_it,
        nothing_about_a_moment_changes,
        a_moment_is_let_go_of_by_itself,
        moments_end_with_the_store,
        a_moment_can_be_pinned_again,
    ];
    let others = checks![an_engine_that_cannot_pin_says_so].into_iter();
    let pinning = pinning.into_iter().map(|check| check.only(|can| can.pins));
    others.map(|check| check.only(|can| !can.pins)).chain(pinning).collect()
}

async fn an_engine_that_cannot_pin_says_so(it: Subject) {
    refused(it.engine.pin().await.map(drop), ErrorKind::Unsupported);
}

/// Everything that can be read of a space.
#[derive(Debug, PartialEq)]
struct Everything {
    areas: Vec<Area>,
    rows: Vec<Row>,
    backwards: Vec<Row>,
    links: Stretch<Link>,
    log: Option<LogSlice>,
}

async fn everything(engine: &dyn Engine) -> Everything {
    let areas = engine.areas(&space()).await.expect("areas are listed");
    let (mut rows, mut backwards) = (Vec::new(), Vec::new());
    for area in &areas {
        let all = Range::all(area.clone());
        let forward = engine.scan_all(&space(), &all, 7, Direction::Forward).await;
        rows.extend(forward.expect("a scan succeeds"));
        let backward = engine.scan_all(&space(), &all, 5, Direction::Backward).await;
        backwards.extend(backward.expect("a scan succeeds"));
    }
    let recipe = Recipe {
        area: area("records"),
        cuts: vec![Cut::Fixed(1), Cut::Rest],
        parts: vec![Part::Literal(Bytes::from_static(b"r")), Part::Field(1)],
    };
    let range = Range::all(Area::default_area());
    let links = engine.follow_one(&space(), &range, 9, Direction::Forward, &recipe).await;
    let log = match engine.capabilities().keeps_log {
        true => {
            let oldest = engine.log_bounds(&space()).await.expect("bounds").oldest;
            let slice = engine.read_log(&space(), oldest, usize::MAX, usize::MAX).await;
            Some(slice.expect("the log is read"))
        }
        false => None,
    };
    Everything { areas, rows, backwards, links: links.expect("a follow succeeds"), log }
}

/// Commits a batch, and logs its entries if the engine keeps a log.
async fn commit(engine: &dyn Engine, entries: Vec<Entry>) {
    let append = engine.capabilities().keeps_log.then(|| Bytes::from(format!("{entries:?}")));
    let batch = Batch { entries, append, ..Batch::new(space()) };
    let outcome = engine.commit(batch).await.expect("a commit succeeds");
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
}

async fn trim(engine: &dyn Engine) {
    if engine.capabilities().keeps_log {
        let far = Position::from_number(u64::MAX).expect("not zero");
        engine.trim_log(&space(), far, 3).await.expect("trimming succeeds");
    }
}

fn record(number: usize) -> Address {
    Address::new(area("records"), format!("r{number:03}"))
}

fn entry(number: usize) -> Address {
    at(format!("e{number:03}"))
}

async fn a_moment_stays_as_it_was(it: Subject) {
    for number in 0..20 {
        let counted = add(at(format!("n{number:03}")), &[("n", number as i64)]);
        commit(&*it.engine, vec![put(entry(number), "e"), put(record(number), "r"), counted]).await;
    }
    let pinned = it.engine.pin().await.expect("a moment is pinned");
    let before = everything(&*it.engine).await;
    assert_eq!(before.rows.len(), 60);
    assert_eq!(everything(&*pinned).await, before);
    for number in 0..20 {
        let changed = match number % 3 {
            0 => vec![delete(entry(number)), delete(record(number))],
            1 => vec![put(entry(number), "other"), add(at(format!("n{number:03}")), &[("m", 1)])],
            _ => vec![put(Address::new(area("later"), "k"), "v"), put(record(100 + number), "v")],
        };
        commit(&*it.engine, changed).await;
    }
    trim(&*it.engine).await;
    assert_ne!(everything(&*it.engine).await, before);
    assert_eq!(everything(&*pinned).await, before);
    let addresses = [entry(0), record(0), entry(1), at("n001"), record(102), at("nothing")];
    let found = pinned.get(&space(), &addresses).await.expect("a get succeeds");
    let is_there: Vec<bool> = found.iter().map(Option::is_some).collect();
    assert_eq!(is_there, [true, true, true, true, false, false]);
    assert_eq!(bytes_of(found[2].as_ref()), "e");
    let other = Space::new("other").expect("a name");
    assert_eq!(pinned.areas(&other).await.expect("areas are listed"), []);
}

async fn write_at_random(engine: &dyn Engine, random: &mut Random) {
    let mut entries = Vec::new();
    for number in 0..KEYS {
        if !random.chance(0.1) {
            continue;
        }
        let value = vec![b'v'; random.below(200)];
        entries.push(match random.below(4) {
            0 => delete(entry(number)),
            1 => put(entry(number), value),
            2 => put(record(number), value),
            _ => add(Address::new(area("counts"), format!("c{number}")), &[("n", 1)]),
        });
    }
    commit(engine, entries).await;
}

/// Pins several snapshots at once. So much is written in between that stores which keep some data
/// in memory have moved it to disk.
async fn every_moment_of_a_random_history_stays(mut it: Subject) {
    let mut held: Vec<(Arc<dyn Engine>, Everything)> = Vec::new();
    for round in 0..BATCHES * it.scale {
        write_at_random(&*it.engine, &mut it.random).await;
        if it.random.chance(0.02) {
            trim(&*it.engine).await;
        }
        if round % 37 == 0 {
            let pinned = it.engine.pin().await.expect("a moment is pinned");
            held.push((pinned, everything(&*it.engine).await));
        }
        if held.len() > 4 {
            let (pinned, before) = held.swap_remove(it.random.below(held.len()));
            assert_eq!(everything(&*pinned).await, before, "held since before round {round}");
        }
    }
    for (pinned, before) in held {
        assert_eq!(everything(&*pinned).await, before);
    }
}

const ACCOUNTS: usize = 5;
const TOTAL: i64 = 1_000;

fn account(number: usize) -> Address {
    at(format!("account:{}", number % ACCOUNTS))
}

/// Each transfer keeps the total, logs itself and counts itself. A reader reads the accounts one by
/// one in separate calls, and then the log, and must find the right total and count.
async fn a_moment_is_of_one_instant(it: Subject) {
    let opened = |number| add(account(number), &[("money", TOTAL / ACCOUNTS as i64)]);
    commit(&*it.engine, (0..ACCOUNTS).map(opened).chain([add(at("count"), &[("n", 1)])]).collect())
        .await;
    let effort = it.effort(MOMENTS);
    let writers = (0..WRITERS).map(|writer| {
        let engine = it.engine.clone();
        async move {
            for number in effort.rounds() {
                let (from, to) = (account(writer + number), account(writer + number + 1));
                let transfer = [add(from, &[("money", -7)]), add(to, &[("money", 7)])];
                commit(&*engine, [&transfer[..], &[add(at("count"), &[("n", 1)])]].concat()).await;
                tokio::task::yield_now().await;
            }
        }
    });
    let readers = (0..READERS).map(|_| {
        let engine = it.engine.clone();
        async move {
            for _ in effort.rounds() {
                let pinned = engine.pin().await.expect("a moment is pinned");
                let mut total = 0;
                let integer = |cell: Option<Cell>, name: &str| {
                    cell.expect("it is there").integers().expect("integers")[name]
                };
                for number in 0..ACCOUNTS {
                    let cell = pinned.get_one(&space(), &account(number)).await.expect("a get");
                    total += integer(cell, "money");
                    tokio::task::yield_now().await;
                }
                assert_eq!(total, TOTAL, "money appeared or vanished");
                if pinned.capabilities().keeps_log {
                    let count = pinned.get_one(&space(), &at("count")).await.expect("a get");
                    let next = pinned.log_bounds(&space()).await.expect("bounds").next.number();
                    assert_eq!(
                        integer(count, "n") as u64,
                        next - 1,
                        "the log is of another moment"
                    );
                }
            }
        }
    });
    tokio::join!(at_once(writers), at_once(readers));
}

async fn what_was_acknowledged_is_in_it(it: Subject) {
    for number in 0..50 {
        commit(&*it.engine, vec![put(at("k"), number.to_string())]).await;
        let pinned = it.engine.pin().await.expect("a moment is pinned");
        let found = pinned.get_one(&space(), &at("k")).await.expect("a get succeeds");
        assert_eq!(bytes_of(found.as_ref()), number.to_string().as_bytes());
    }
}

async fn nothing_about_a_moment_changes(it: Subject) {
    commit(&*it.engine, vec![put(at("k"), "v")]).await;
    let pinned = it.engine.pin().await.expect("a moment is pinned");
    let before = everything(&*it.engine).await;
    let read_only = ErrorKind::ReadOnly;
    for entries in [
        vec![put(at("k"), "w")],
        vec![put(at("new"), "v")],
        vec![add(at("n"), &[("x", 1)])],
        vec![delete(at("k"))],
        vec![when(at("k"), Condition::Present)],
    ] {
        refused(pinned.commit(Batch { entries, ..Batch::new(space()) }).await, read_only);
    }
    if pinned.capabilities().keeps_log {
        let next = before.log.as_ref().expect("a log").bounds.next;
        refused(pinned.trim_log(&space(), next, 9).await, read_only);
        refused(pinned.extend_log(&space(), next, &[Bytes::from_static(b"e")]).await, read_only);
        refused(pinned.wait_log(&space(), next).await, read_only);
        let passed = pinned.wait_log(&space(), Position::FIRST).await;
        assert_eq!(passed.expect("it is there already"), next);
    }
    assert_eq!(everything(&*pinned).await, before);
    assert_eq!(everything(&*it.engine).await, before);
}

async fn a_moment_is_let_go_of_by_itself(it: Subject) {
    commit(&*it.engine, vec![put(at("k"), "v")]).await;
    let (first, second) = (it.engine.pin().await, it.engine.pin().await);
    let (first, second) = (first.expect("a moment"), second.expect("a moment"));
    first.close().await.expect("closing succeeds");
    first.close().await.expect("closing again succeeds");
    is_closed(&*first).await;
    assert_eq!(second.areas(&space()).await.expect("the other one stays"), [Area::default_area()]);
    drop(second);
    commit(&*it.engine, vec![put(at("k"), "w")]).await;
    assert_eq!(bytes_of(it.cell(&at("k")).await.as_ref()), "w");
}

async fn is_closed(pinned: &dyn Engine) {
    let closed = ErrorKind::Closed;
    refused(pinned.get(&space(), &[at("k")]).await, closed);
    let all = Range::all(Area::default_area());
    refused(pinned.scan_one(&space(), &all, 1, Direction::Forward).await, closed);
    refused(pinned.areas(&space()).await, closed);
    refused(pinned.pin().await.map(drop), closed);
    refused(pinned.commit(Batch::new(space())).await, closed);
    if pinned.capabilities().keeps_log {
        refused(pinned.read_log(&space(), Position::FIRST, 1, 1).await, closed);
        refused(pinned.trim_log(&space(), Position::FIRST, 1).await, closed);
        refused(pinned.wait_log(&space(), Position::FIRST).await, closed);
    }
}

async fn moments_end_with_the_store(it: Subject) {
    commit(&*it.engine, vec![put(at("k"), "v")]).await;
    let pinned = it.engine.pin().await.expect("a moment is pinned");
    let again = pinned.pin().await.expect("a moment is pinned");
    it.engine.close().await.expect("closing succeeds");
    is_closed(&*pinned).await;
    is_closed(&*again).await;
    refused(it.engine.pin().await.map(drop), ErrorKind::Closed);
    pinned.close().await.expect("closing succeeds");
}

async fn a_moment_can_be_pinned_again(it: Subject) {
    commit(&*it.engine, vec![put(at("k"), "v")]).await;
    let pinned = it.engine.pin().await.expect("a moment is pinned");
    commit(&*it.engine, vec![put(at("k"), "w")]).await;
    let again = pinned.pin().await.expect("a moment is pinned");
    drop(pinned);
    let found = again.get_one(&space(), &at("k")).await.expect("a get succeeds");
    assert_eq!(bytes_of(found.as_ref()), "v");
}
