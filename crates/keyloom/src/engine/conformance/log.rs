//! The log of a space: one order, the order of commits, and only whole batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::Barrier;

use super::super::{
    Area, Batch, Committed, Condition, Direction, Engine, EngineExt, Entry, LOG_ENTRY_BYTES_MAX,
    LogBounds, LogEntry, Outcome, Position, Range, Space,
};
use super::runner::{Check, checks};
use super::subject::{Subject, add, at, at_once, bytes_of, only_if, put, refused, space, when};
use crate::error::ErrorKind;

const WRITERS: usize = 8;
/// The least number of batches that each writer commits, multiplied by the scale.
const BATCHES: usize = 40;

pub(super) fn checks() -> Vec<Check> {
    let with_log = with_log().into_iter().map(|check| check.only(|can| can.keeps_log));
    let without_log = checks![an_engine_without_a_log_says_so].into_iter();
    without_log.map(|check| check.only(|can| !can.keeps_log)).chain(with_log).collect()
}

fn with_log() -> Vec<Check> {
    checks![
        what_is_appended_is_read,
        a_rejected_batch_takes_no_position,
        a_refused_batch_takes_no_position,
        spaces_have_logs_of_their_own,
        slices_end_where_they_are_told_to,
        what_is_trimmed_is_too_old,
        trimming_goes_step_by_step,
        positions_are_never_given_twice,
        the_order_is_the_order_of_commits,
        entries_and_cells_show_together,
        readers_miss_and_repeat_nothing,
        a_log_is_made_again_from_a_copy,
        a_log_is_extended_at_its_end_only,
        extensions_have_the_limits_of_entries,
        waiting_ends_with_an_extension,
        waiting_ends_with_the_next_entry,
        waiting_is_for_one_space,
        waiting_ends_with_the_store,
    ]
}

fn position(number: u64) -> Position {
    Position::from_number(number).expect("a number from 1 on")
}

fn appending(bytes: impl Into<Bytes>, entries: Vec<Entry>) -> Batch {
    Batch { entries, append: Some(bytes.into()), ..Batch::new(space()) }
}

async fn append(engine: &dyn Engine, batch: Batch) -> Committed {
    match engine.commit(batch).await.expect("a commit succeeds") {
        Outcome::Committed(committed) => committed,
        Outcome::Rejected(rejection) => panic!("a batch was rejected: {rejection:?}"),
    }
}

async fn append_many(it: &Subject, count: u64) {
    for number in 1..=count {
        let committed = append(&*it.engine, appending(number.to_string(), Vec::new())).await;
        assert_eq!(committed.position, Some(position(number)));
    }
}

async fn whole_log(engine: &dyn Engine, space: &Space) -> Vec<LogEntry> {
    let from = engine.log_bounds(space).await.expect("the bounds are read").oldest;
    let slice = engine.read_log(space, from, usize::MAX, usize::MAX).await;
    slice.expect("the log is read").entries
}

async fn bounds(it: &Subject) -> (u64, u64) {
    let LogBounds { oldest, next } =
        it.engine.log_bounds(&space()).await.expect("the bounds are read");
    (oldest.number(), next.number())
}

async fn an_engine_without_a_log_says_so(it: Subject) {
    let unsupported = ErrorKind::Unsupported;
    refused(it.engine.commit(appending("e", vec![put(at("k"), "v")])).await, unsupported);
    refused(it.engine.read_log(&space(), Position::FIRST, 1, 1).await, unsupported);
    refused(it.engine.trim_log(&space(), Position::FIRST, 1).await, unsupported);
    refused(it.engine.extend_log(&space(), Position::FIRST, &[]).await, unsupported);
    refused(it.engine.wait_log(&space(), Position::FIRST).await, unsupported);
    assert_eq!(it.everything().await, [], "a refused batch changed something");
}

async fn what_is_appended_is_read(it: Subject) {
    assert_eq!(bounds(&it).await, (1, 1));
    assert_eq!(whole_log(&*it.engine, &space()).await, []);
    let entries = [Bytes::new(), "text".into(), vec![0, 255, 0].into(), vec![7; 100_000].into()];
    for (place, bytes) in entries.iter().enumerate() {
        let cells = vec![put(at("k"), "v"), add(at("n"), &[("x", 1)])];
        let committed = append(&*it.engine, appending(bytes.clone(), cells)).await;
        assert_eq!(committed.position, Some(position(place as u64 + 1)));
        assert_eq!(committed.integers.len(), 1);
        assert_eq!(it.apply(vec![put(at("unlogged"), "v")]).await, []);
    }
    let found = whole_log(&*it.engine, &space()).await;
    assert!(found.iter().map(|entry| &entry.bytes).eq(&entries));
    assert_eq!(bounds(&it).await, (1, 5));
}

async fn a_rejected_batch_takes_no_position(it: Subject) {
    append_many(&it, 2).await;
    for entries in [
        vec![when(at("missing"), Condition::Present)],
        vec![put(at("k"), "v"), only_if(Condition::Present, put(at("missing"), "v"))],
    ] {
        let outcome = it.engine.commit(appending("rejected", entries)).await;
        assert!(matches!(outcome, Ok(Outcome::Rejected(_))), "{outcome:?}");
    }
    assert_eq!(bounds(&it).await, (1, 3));
    let committed = append(&*it.engine, appending("3", Vec::new())).await;
    assert_eq!(committed.position, Some(position(3)));
    assert_eq!(whole_log(&*it.engine, &space()).await.len(), 3);
}

async fn a_refused_batch_takes_no_position(it: Subject) {
    let twice = vec![put(at("k"), "v"), put(at("k"), "w")];
    refused(it.engine.commit(appending("e", twice)).await, ErrorKind::Internal);
    let large = vec![7; LOG_ENTRY_BYTES_MAX + 1];
    refused(it.engine.commit(appending(large, Vec::new())).await, ErrorKind::LimitExceeded);
    append_many(&it, 1).await;
    let largest = vec![7; LOG_ENTRY_BYTES_MAX];
    let committed = append(&*it.engine, appending(largest.clone(), Vec::new())).await;
    assert_eq!(committed.position, Some(position(2)));
    assert_eq!(whole_log(&*it.engine, &space()).await[1].bytes, largest);
}

async fn spaces_have_logs_of_their_own(it: Subject) {
    // Names with common prefixes, in case a space's name becomes the prefix of a key.
    let spaces = ["a", "a.", "a-b", "ab", "suite"].map(|name| Space::new(name).expect("a name"));
    for number in 1..=3 {
        for space in &spaces {
            let bytes = format!("{} {number}", space.name());
            let batch = Batch { append: Some(bytes.into()), ..Batch::new(space.clone()) };
            assert_eq!(append(&*it.engine, batch).await.position, Some(position(number)));
        }
    }
    it.engine.trim_log(&spaces[0], position(3), 10).await.expect("trimming succeeds");
    for (space, first) in spaces.iter().zip([3, 1, 1, 1, 1]) {
        let expected = (first..=3).map(|number| format!("{} {number}", space.name()));
        let found = whole_log(&*it.engine, space).await;
        assert!(
            found.iter().map(|entry| entry.bytes.to_vec()).eq(expected.map(String::into_bytes))
        );
    }
    assert_eq!(it.everything().await, [], "a log shows among the cells");
}

async fn slices_end_where_they_are_told_to(it: Subject) {
    append_many(&it, 9).await;
    let numbers = async |from, entries_max, bytes_max| {
        let slice = it.engine.read_log(&space(), position(from), entries_max, bytes_max).await;
        let slice = slice.expect("the log is read");
        assert_eq!(slice.bounds, LogBounds { oldest: position(1), next: position(10) });
        for entry in &slice.entries {
            assert_eq!(entry.bytes, entry.position.to_string());
        }
        slice.entries.iter().map(|entry| entry.position.number()).collect::<Vec<u64>>()
    };
    let all: Vec<u64> = (1..=9).collect();
    assert_eq!(numbers(1, usize::MAX, usize::MAX).await, all);
    assert_eq!(numbers(1, 9, 9).await, all);
    assert_eq!(numbers(4, 3, 100).await, [4, 5, 6]);
    assert_eq!(numbers(4, 100, 3).await, [4, 5, 6], "each entry has one byte");
    assert_eq!(numbers(4, 100, 0).await, [4], "one entry is always given");
    assert_eq!(numbers(9, 5, 100).await, [9]);
    for beyond in [10, 11, u64::MAX] {
        assert_eq!(numbers(beyond, 5, 100).await, [0; 0], "from {beyond}");
    }
    assert_eq!(numbers(1, 0, 100).await, [0; 0]);
}

async fn what_is_trimmed_is_too_old(it: Subject) {
    append_many(&it, 5).await;
    let kept = it.engine.trim_log(&space(), position(4), 100).await.expect("trimming succeeds");
    assert_eq!(kept, LogBounds { oldest: position(4), next: position(6) });
    for from in 1..4 {
        let error = refused(
            it.engine.read_log(&space(), position(from), 1, 1).await,
            ErrorKind::LogTrimmed,
        );
        assert_eq!(error.context_value("oldest kept"), Some("4"));
        assert_eq!(error.context_value("position"), Some(&*from.to_string()));
        let told = it.engine.read_log(&space(), position(from), 0, 1).await;
        assert_eq!(told.expect("only the bounds are asked for").bounds, kept);
    }
    let found = whole_log(&*it.engine, &space()).await;
    assert!(found.iter().map(|entry| entry.position.number()).eq([4, 5]));
    for before in [1, 4] {
        let again = it.engine.trim_log(&space(), position(before), 100).await;
        assert_eq!(again.expect("trimming succeeds"), kept, "nothing is before {before}");
    }
}

async fn trimming_goes_step_by_step(it: Subject) {
    append_many(&it, 7).await;
    for (entries_max, oldest) in [(0, 1), (3, 4), (2, 6), (9, 7), (9, 7)] {
        let kept = it.engine.trim_log(&space(), position(7), entries_max).await;
        let expected = LogBounds { oldest: position(oldest), next: position(8) };
        assert_eq!(kept.expect("trimming succeeds"), expected);
        assert_eq!(whole_log(&*it.engine, &space()).await.len() as u64, 8 - oldest);
    }
}

async fn positions_are_never_given_twice(it: Subject) {
    for beyond in [1, u64::MAX] {
        let kept = it.engine.trim_log(&space(), position(beyond), 10).await;
        assert_eq!(kept.expect("there is nothing to trim"), LogBounds::EMPTY);
    }
    append_many(&it, 3).await;
    for number in 4..8 {
        let kept = it.engine.trim_log(&space(), position(u64::MAX), usize::MAX).await;
        let nothing = LogBounds { oldest: position(number), next: position(number) };
        assert_eq!(kept.expect("trimming succeeds"), nothing);
        assert_eq!(whole_log(&*it.engine, &space()).await, []);
        let committed = append(&*it.engine, appending("e", Vec::new())).await;
        assert_eq!(committed.position, Some(position(number)));
    }
}

/// Every batch adds one to a shared counter and one to its writer's counter. So the sums in the
/// answer show its place in the order of commits.
async fn the_order_is_the_order_of_commits(it: Subject) {
    let effort = it.effort(BATCHES);
    let start = Arc::new(Barrier::new(WRITERS));
    let told = at_once((0..WRITERS).map(|writer| {
        let (engine, start) = (it.engine.clone(), start.clone());
        async move {
            start.wait().await;
            let mut told = Vec::new();
            for number in effort.rounds() {
                let entries = vec![add(at("all"), &[("n", 1)])];
                let batch = appending(format!("{writer} {number}"), entries);
                let Committed { integers, position } = append(&*engine, batch).await;
                let position = position.expect("a batch that appends is told its position");
                assert_eq!(integers[0]["n"] as u64, position.number());
                told.push((position, format!("{writer} {number}")));
                tokio::task::yield_now().await;
            }
            told
        }
    }))
    .await;
    assert!(told.iter().all(|told| told.is_sorted()), "a writer's own order is kept");
    let mut told: Vec<_> = told.into_iter().flatten().collect();
    told.sort_unstable();
    let found = whole_log(&*it.engine, &space()).await;
    assert!(found.iter().map(|entry| entry.position.number()).eq(1..=told.len() as u64));
    for (entry, (position, text)) in found.iter().zip(told) {
        assert_eq!((entry.position, &entry.bytes[..]), (position, text.as_bytes()));
    }
}

/// A reader reads the log and then the cell, or the other way round. What it reads second is never
/// older than what it reads first.
async fn entries_and_cells_show_together(it: Subject) {
    let effort = it.effort(BATCHES);
    append_many(&it, 1).await;
    it.apply(vec![put(at("last"), "1")]).await;
    let writer = {
        let engine = it.engine.clone();
        tokio::spawn(async move {
            let mut number = 1u64;
            for _ in effort.rounds() {
                number += 1;
                let text = number.to_string();
                append(&*engine, appending(text.clone(), vec![put(at("last"), text)])).await;
                tokio::task::yield_now().await;
            }
        })
    };
    let logged = async || it.engine.log_bounds(&space()).await.expect("bounds").next.number() - 1;
    let written = async || {
        let cell = it.cell(&at("last")).await;
        let text = String::from_utf8(bytes_of(cell.as_ref()).to_vec()).expect("digits");
        text.parse::<u64>().expect("digits")
    };
    while !writer.is_finished() {
        let first = logged().await;
        assert!(written().await >= first, "an entry showed before its batch");
        let first = written().await;
        assert!(logged().await >= first, "a batch showed before its entry");
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer succeeds");
}

/// Readers follow writers by waiting and reading, with different steps, while the log is trimmed up
/// to the slowest of them.
async fn readers_miss_and_repeat_nothing(it: Subject) {
    /// The step of the reader that trims.
    const TRIMMER: usize = 7;
    let total = (WRITERS * BATCHES * it.scale) as u64;
    let writers = at_once((0..WRITERS).map(|_| {
        let engine = it.engine.clone();
        let count = BATCHES * it.scale;
        async move {
            for number in 0..count {
                append(&*engine, appending(number.to_string(), Vec::new())).await;
                tokio::task::yield_now().await;
            }
        }
    }));
    let places: Arc<[AtomicU64; 3]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(1)));
    let steps = [1, TRIMMER, usize::MAX].into_iter().enumerate();
    let readers = at_once(steps.map(|(reader, entries_max)| {
        let (engine, places) = (it.engine.clone(), places.clone());
        async move {
            let mut from = Position::FIRST;
            while from.number() <= total {
                let next = engine.wait_log(&space(), from).await.expect("waiting succeeds");
                assert!(next > from);
                let slice = engine.read_log(&space(), from, entries_max, usize::MAX).await;
                let slice = slice.expect("the log is read");
                assert!(!slice.entries.is_empty(), "woken for nothing");
                for entry in slice.entries {
                    assert_eq!(entry.position, from);
                    from = from.next();
                }
                places[reader].store(from.number(), Ordering::Release);
                if entries_max == TRIMMER {
                    let slowest = places.iter().map(|place| place.load(Ordering::Acquire)).min();
                    let slowest = position(slowest.expect("there are readers"));
                    let kept = engine.trim_log(&space(), slowest, 50).await;
                    assert!(kept.expect("trimming succeeds").oldest <= slowest);
                }
            }
        }
    }));
    tokio::join!(writers, readers);
    assert_eq!(bounds(&it).await.1, total + 1);
}

fn texts(numbers: std::ops::Range<u64>) -> Vec<Bytes> {
    numbers.map(|number| number.to_string().into()).collect()
}

async fn extended(it: &Subject, at: u64, entries: &[Bytes]) -> (u64, u64) {
    let extended = it.engine.extend_log(&space(), position(at), entries).await;
    let LogBounds { oldest, next } = extended.expect("the log is extended");
    assert_eq!((oldest.number(), next.number()), bounds(it).await);
    (oldest.number(), next.number())
}

/// Restores a log in several pieces, beginning at a later position, and continues where the copy
/// ends.
async fn a_log_is_made_again_from_a_copy(it: Subject) {
    assert_eq!(extended(&it, 1, &[]).await, (1, 1));
    assert_eq!(extended(&it, 7, &[]).await, (7, 7), "a log of which all was trimmed");
    assert_eq!(extended(&it, 7, &texts(7..9)).await, (7, 9));
    assert_eq!(extended(&it, 9, &[]).await, (7, 9));
    assert_eq!(extended(&it, 9, &texts(9..12)).await, (7, 12));
    let committed = append(&*it.engine, appending("12", vec![put(at("k"), "v")])).await;
    assert_eq!(committed.position, Some(position(12)));
    assert_eq!(extended(&it, 13, &texts(13..14)).await, (7, 14));
    for (number, entry) in (7..).zip(whole_log(&*it.engine, &space()).await) {
        assert_eq!(
            (entry.position, &entry.bytes[..]),
            (position(number), number.to_string().as_bytes())
        );
    }
    refused(it.engine.read_log(&space(), position(6), 1, 1).await, ErrorKind::LogTrimmed);
    let other = Space::new("other").expect("a name");
    assert_eq!(it.engine.log_bounds(&other).await.expect("bounds"), LogBounds::EMPTY);
    assert_eq!(it.keys(&Range::all(Area::default_area()), Direction::Forward).await, ["k"]);
}

async fn a_log_is_extended_at_its_end_only(it: Subject) {
    append_many(&it, 3).await;
    for wrong in [1, 2, 3, 5, 100, u64::MAX] {
        for entries in [&[][..], &texts(0..2)] {
            let refusal = it.engine.extend_log(&space(), position(wrong), entries).await;
            let error = refused(refusal, ErrorKind::InvalidArgument);
            assert_eq!(error.context_value("next position"), Some("4"));
        }
    }
    it.engine.trim_log(&space(), position(9), 9).await.expect("trimming succeeds");
    refused(it.engine.extend_log(&space(), position(3), &[]).await, ErrorKind::InvalidArgument);
    assert_eq!(bounds(&it).await, (4, 4), "no position is given twice");
    assert_eq!(extended(&it, 9, &texts(9..10)).await, (9, 10));
}

async fn extensions_have_the_limits_of_entries(it: Subject) {
    let too_large = Bytes::from(vec![7; LOG_ENTRY_BYTES_MAX + 1]);
    let limit = ErrorKind::LimitExceeded;
    refused(it.engine.extend_log(&space(), position(1), &[too_large]).await, limit);
    let large = Bytes::from(vec![7; LOG_ENTRY_BYTES_MAX]);
    let most = it.engine.capabilities().batch_bytes_max / LOG_ENTRY_BYTES_MAX;
    let too_many = vec![large.clone(); most + 1];
    refused(it.engine.extend_log(&space(), position(1), &too_many).await, limit);
    assert_eq!(bounds(&it).await, (1, 1));
    assert_eq!(extended(&it, 1, &[large]).await, (1, 2));
}

async fn waiting_ends_with_an_extension(it: Subject) {
    let engine = it.engine.clone();
    let waiter = tokio::spawn(async move { engine.wait_log(&space(), Position::FIRST).await });
    tokio::task::yield_now().await;
    extended(&it, 5, &texts(5..6)).await;
    assert_eq!(waiter.await.expect("no panic").expect("waiting succeeds"), position(6));
}

async fn waiting_ends_with_the_next_entry(it: Subject) {
    for number in it.effort(BATCHES).rounds().map(|round| round as u64 + 1) {
        let waiter = |beyond| {
            let engine = it.engine.clone();
            tokio::spawn(async move { engine.wait_log(&space(), position(beyond)).await })
        };
        let (first, second, given_up) = (waiter(number), waiter(number), waiter(number + 1));
        tokio::task::yield_now().await;
        append(&*it.engine, appending("e", Vec::new())).await;
        for woken in [first, second] {
            let next = woken.await.expect("no panic").expect("waiting succeeds");
            assert_eq!(next, position(number + 1));
        }
        given_up.abort();
        let already = it.engine.wait_log(&space(), position(number)).await;
        assert_eq!(already.expect("it is there already"), position(number + 1));
    }
}

async fn waiting_is_for_one_space(it: Subject) {
    let other = Space::new("other").expect("a valid name");
    let engine = it.engine.clone();
    let waiter = tokio::spawn(async move { engine.wait_log(&space(), Position::FIRST).await });
    for _ in 0..BATCHES {
        let batch = Batch { append: Some("e".into()), ..Batch::new(other.clone()) };
        append(&*it.engine, batch).await;
        it.apply(vec![put(at("k"), "v")]).await;
    }
    assert!(!waiter.is_finished(), "woken by what happened elsewhere");
    append_many(&it, 1).await;
    assert_eq!(waiter.await.expect("no panic").expect("waiting succeeds"), position(2));
}

async fn waiting_ends_with_the_store(it: Subject) {
    append_many(&it, 1).await;
    let engine = it.engine.clone();
    let waiter = tokio::spawn(async move { engine.wait_log(&space(), position(2)).await });
    tokio::task::yield_now().await;
    it.engine.close().await.expect("closing succeeds");
    refused(waiter.await.expect("no panic"), ErrorKind::Closed);
    let closed = ErrorKind::Closed;
    refused(it.engine.wait_log(&space(), position(2)).await, closed);
    refused(it.engine.wait_log(&space(), position(1)).await, closed);
    refused(it.engine.read_log(&space(), position(1), 1, 1).await, closed);
    refused(it.engine.trim_log(&space(), position(2), 1).await, closed);
    refused(it.engine.commit(appending("e", Vec::new())).await, closed);
}
