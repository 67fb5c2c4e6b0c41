//! Batches: all or nothing, each address once, and as large as the engine says.

use bytes::Bytes;

use super::super::{
    Address, Area, Batch, Cause, Committed, Condition, Direction, Effect, Entry, Fence, Outcome,
    Range,
};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, area, at, bytes_of, cell_after, delete, integers, only_if, put, refused, space,
    stamp, when,
};
use crate::error::ErrorKind;

pub(super) fn checks() -> Vec<Check> {
    checks![
        an_empty_batch_is_committed,
        all_effects_of_a_batch_are_applied,
        nothing_of_a_rejected_batch_is_applied,
        a_batch_spans_areas,
        each_address_at_most_once,
        the_fence_is_no_entry,
        the_largest_batch_is_applied_whole,
        the_largest_batch_is_rejected_whole,
    ]
}

async fn an_empty_batch_is_committed(it: Subject) {
    assert_eq!(it.commit(Vec::new()).await, Outcome::Committed(Committed::default()));
    assert_eq!(it.everything().await, []);
}

async fn all_effects_of_a_batch_are_applied(it: Subject) {
    it.apply(vec![put(at("old"), "1"), put(at("kept"), "2"), add(at("n"), &[("x", 1)])]).await;
    let (new, kept) = (put(at("new"), "3"), put(at("kept"), "4"));
    let sums = it
        .apply(vec![delete(at("old")), new.clone(), kept.clone(), add(at("n"), &[("x", 1)])])
        .await;
    assert_eq!(sums, [integers(&[("x", 2)])]);
    assert_eq!(it.cell(&at("old")).await, None);
    assert_eq!(it.cell(&at("new")).await, Some(cell_after(&new)));
    assert_eq!(it.cell(&at("kept")).await, Some(cell_after(&kept)));
}

/// The failing entry is first, in the middle and last, to detect engines that apply the entries
/// before it.
async fn nothing_of_a_rejected_batch_is_applied(it: Subject) {
    let held = put(at("held"), "1");
    it.apply(vec![held.clone(), add(at("n"), &[("x", 1)])]).await;
    for place in 0..=4 {
        let mut entries = vec![
            put(at("new"), "2"),
            delete(at("held2")),
            add(at("n"), &[("x", 1)]),
            add(at("n2"), &[("x", 1)]),
        ];
        entries.insert(place, only_if(Condition::Absent, put(at("held"), "3")));
        let cause = Cause::Condition { entry: place };
        it.rejects(entries, cause, Some(cell_after(&held))).await;
    }
}

async fn a_batch_spans_areas(it: Subject) {
    let places = [Area::default_area(), area("x"), Area::own()];
    let entries = |value: &str, condition| {
        let put_in = |area: &Area| put(Address::new(area.clone(), "same"), value);
        places.iter().map(put_in).map(|entry| only_if(condition, entry)).collect::<Vec<Entry>>()
    };
    it.apply(entries("one", Condition::Absent)).await;
    it.apply(entries("two", Condition::Present)).await;
    let mut entries = entries("three", Condition::Present);
    entries.push(when(Address::new(area("y"), "same"), Condition::Present));
    assert_eq!(it.rejection(entries).await.cause, Cause::Condition { entry: 3 });
    for area in places {
        let rows = it.rows(&Range::all(area), Direction::Forward).await;
        assert_eq!(rows.len(), 1);
        assert_eq!(bytes_of(Some(&rows[0].cell)), "two");
    }
}

async fn each_address_at_most_once(it: Subject) {
    it.apply(vec![put(at("k"), "v")]).await;
    let of_every_sort = || {
        [
            put(at("k"), "w"),
            delete(at("k")),
            add(at("k"), &[("x", 1)]),
            when(at("k"), Condition::Present),
            only_if(Condition::Present, delete(at("k"))),
        ]
    };
    for first in of_every_sort() {
        for second in of_every_sort() {
            let entries = vec![put(at("other"), "o"), first.clone(), second];
            it.refuses(entries, ErrorKind::Internal).await;
        }
    }
}

async fn the_fence_is_no_entry(it: Subject) {
    let catalog = put(at("catalog"), "1");
    it.apply(vec![catalog.clone()]).await;
    let fence = Some(Fence { address: at("catalog"), stamp: cell_after(&catalog).stamp });
    let entries = vec![put(at("a"), "1"), put(at("catalog"), "2")];
    let outcome =
        it.engine.commit(Batch { fence: fence.clone(), entries, ..Batch::new(space()) }).await;
    refused(outcome, ErrorKind::Internal);
    assert_eq!(it.everything().await.len(), 1);
    // The same key in another area is another address.
    let entries = vec![put(Address::new(area("x"), "catalog"), "2")];
    let outcome = it.engine.commit(Batch { fence, entries, ..Batch::new(space()) }).await;
    assert_eq!(outcome.expect("a commit succeeds"), Outcome::Committed(Committed::default()));
}

/// The most entries that the engine accepts, of a size that stays within its limit of bytes.
fn largest(it: &Subject) -> Vec<Entry> {
    let capabilities = it.engine.capabilities();
    let count = capabilities.batch_entries_max.min(10_000);
    let key_bytes = "key:00000".len();
    let bytes = Bytes::from(vec![7; (capabilities.batch_bytes_max / count - key_bytes).min(200)]);
    let entry = |number: usize| Entry {
        address: at(format!("key:{number:05}")),
        condition: Some(Condition::Absent),
        effect: Some(Effect::Put { stamp: stamp(), bytes: bytes.clone() }),
    };
    (0..count).map(entry).collect()
}

async fn the_largest_batch_is_applied_whole(it: Subject) {
    let entries = largest(&it);
    it.apply(entries.clone()).await;
    let rows = it.everything().await;
    assert_eq!(rows.len(), entries.len());
    for (row, entry) in rows.iter().zip(&entries) {
        assert_eq!((&row.key, &row.cell), (&entry.address.key, &cell_after(entry)));
    }
}

async fn the_largest_batch_is_rejected_whole(it: Subject) {
    let entries = largest(&it);
    let last = entries.len() - 1;
    let there = put(entries[last].address.clone(), "already");
    it.apply(vec![there.clone()]).await;
    it.rejects(entries, Cause::Condition { entry: last }, Some(cell_after(&there))).await;
}
