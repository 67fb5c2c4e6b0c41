//! The portable limits: the same on every engine, with a clear error, and nothing written.

use bytes::Bytes;

use super::super::{
    Area, Batch, COUNTER_NAME_BYTES_MAX, Cause, Condition, Effect, Entry, Fence, KEY_BYTES_MAX,
    VALUE_BYTES_MAX,
};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, adding, addition, at, delete, put, refused, space, stamp, when,
};
use crate::error::ErrorKind;

pub(super) fn checks() -> Vec<Check> {
    checks![
        the_empty_key_is_refused_everywhere,
        keys_over_the_limit_are_refused_everywhere,
        values_over_the_limit_are_refused,
        batches_of_too_many_entries_are_refused,
        batches_of_too_many_bytes_are_refused,
        names_of_counters_have_limits,
        cells_of_integers_have_a_limit,
    ]
}

/// Passes a key that must be refused to every call that takes a key.
async fn key_is_refused(it: &Subject, key: &[u8], kind: ErrorKind) {
    it.apply(vec![put(at("there"), "v")]).await;
    refused(it.engine.get(&space(), &[at("there"), at(key)]).await, kind);
    for entry in [
        put(at(key), "v"),
        delete(at(key)),
        add(at(key), &[("x", 1)]),
        when(at(key), Condition::Absent),
    ] {
        it.refuses(vec![put(at("other"), "v"), entry], kind).await;
    }
    let fence = Some(Fence { address: at(key), stamp: stamp() });
    let entries = vec![put(at("other"), "v")];
    refused(it.engine.commit(Batch { fence, entries, ..Batch::new(space()) }).await, kind);
    assert_eq!(it.everything().await.len(), 1, "a refused batch wrote something");
}

async fn the_empty_key_is_refused_everywhere(it: Subject) {
    key_is_refused(&it, b"", ErrorKind::InvalidKey).await;
}

async fn keys_over_the_limit_are_refused_everywhere(it: Subject) {
    key_is_refused(&it, &[b'k'; KEY_BYTES_MAX + 1], ErrorKind::LimitExceeded).await;
    key_is_refused(&it, &[0xff; 10 * KEY_BYTES_MAX], ErrorKind::LimitExceeded).await;
    let longest = at([b'k'; KEY_BYTES_MAX]);
    it.apply(vec![put(longest.clone(), "v")]).await;
    assert!(it.cell(&longest).await.is_some());
}

async fn values_over_the_limit_are_refused(it: Subject) {
    let entries = vec![put(at("other"), "v"), put(at("k"), vec![b'v'; VALUE_BYTES_MAX + 1])];
    let error = refused(it.try_commit(entries.clone()).await, ErrorKind::LimitExceeded);
    assert_eq!(error.context_value("key"), Some("k"), "the error names the key: {error}");
    it.refuses(entries, ErrorKind::LimitExceeded).await;
}

async fn batches_of_too_many_entries_are_refused(it: Subject) {
    let count = it.engine.capabilities().batch_entries_max + 1;
    let entries = (0..count).map(|number| put(at(format!("{number}")), ""));
    it.refuses(entries.collect(), ErrorKind::LimitExceeded).await;
}

async fn batches_of_too_many_bytes_are_refused(it: Subject) {
    let capabilities = it.engine.capabilities();
    let count = capabilities.batch_bytes_max / VALUE_BYTES_MAX + 1;
    assert!(count <= capabilities.batch_entries_max, "the limit of bytes can be reached");
    // All values share their bytes, so the check itself needs little memory.
    let bytes = Bytes::from(vec![b'v'; VALUE_BYTES_MAX]);
    let entry = |number: usize| Entry {
        address: at(format!("{number}")),
        condition: None,
        effect: Some(Effect::Put { stamp: stamp(), bytes: bytes.clone() }),
    };
    it.refuses((0..count).map(entry).collect(), ErrorKind::LimitExceeded).await;
}

async fn names_of_counters_have_limits(it: Subject) {
    let long = "n".repeat(COUNTER_NAME_BYTES_MAX + 1);
    for name in ["", &long] {
        let entries = vec![put(at("other"), "v"), add(at("n"), &[("x", 1), (name, 1)])];
        it.refuses(entries, ErrorKind::LimitExceeded).await;
    }
    let twice = vec![addition("x", 1), addition("y", 1), addition("x", 1)];
    it.refuses(vec![adding(at("n"), twice)], ErrorKind::Internal).await;
    it.refuses(vec![adding(at("n"), Vec::new())], ErrorKind::Internal).await;
}

/// A name of 248 bytes and its value count as 256 bytes, so 1,520 of them fill a value exactly.
async fn cells_of_integers_have_a_limit(it: Subject) {
    const NAME_BYTES: usize = 256 - size_of::<i64>();
    const COUNT: usize = VALUE_BYTES_MAX / 256;
    let names: Vec<String> = (0..=COUNT).map(|number| format!("{number:0NAME_BYTES$}")).collect();
    for names in names[..COUNT].chunks(COUNT / 4) {
        let additions = names.iter().map(|name| addition(name, 1)).collect();
        it.apply(vec![adding(at("n"), additions)]).await;
    }
    let full = it.cell(&at("n")).await.expect("a cell is there");
    assert_eq!(full.integers().map(|integers| integers.len()), Some(COUNT));
    let one_more = vec![put(at("other"), "v"), add(at("n"), &[(&names[COUNT], 1)])];
    let rejection = it.rejection(one_more).await;
    assert_eq!(rejection.cause, Cause::TooLarge { entry: 1 });
    assert!(rejection.found.as_ref() == Some(&full), "the rejection carries the cell");
    assert!(it.cell(&at("n")).await == Some(full), "a rejected addition changed the cell");
    assert_eq!(it.cell(&at("other")).await, None);
    it.apply(vec![add(at("n"), &[(&names[0], 1)])]).await;
    let all = super::super::Range::all(Area::default_area());
    assert_eq!(it.keys(&all, super::super::Direction::Forward).await, ["n"]);
}
