//! Conditions and the fence: which hold, which fail, and what the rejection says.

use super::super::{
    Address, Area, Batch, Cause, Cell, Committed, Condition, Fence, Outcome, Rejection, Space,
};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, area, at, cell_after, delete, only_if, put, space, stamp, when,
};

pub(super) fn checks() -> Vec<Check> {
    checks![
        each_condition_on_each_cell,
        a_condition_guards_its_own_effect,
        a_condition_guards_other_addresses,
        conditions_do_not_see_their_own_batch,
        every_write_counts_as_a_change,
        recreating_is_a_change,
        the_first_failure_in_order_is_reported,
        conditions_see_one_space_and_area_only,
        a_fence_lets_through_or_rejects,
        a_fence_is_reported_before_any_entry,
    ]
}

/// An address with bytes, one with integers, and an absent one.
async fn three_addresses(it: &Subject) -> [(Address, Option<Cell>); 3] {
    it.apply(vec![put(at("bytes"), "v"), add(at("integers"), &[("x", 1)])]).await;
    let bytes = it.cell(&at("bytes")).await;
    let integers = it.cell(&at("integers")).await;
    assert!(bytes.is_some() && integers.is_some());
    [(at("bytes"), bytes), (at("integers"), integers), (at("nothing"), None)]
}

async fn each_condition_on_each_cell(it: Subject) {
    for (address, cell) in three_addresses(&it).await {
        let current = cell.as_ref().map_or(stamp(), |cell| cell.stamp);
        for (condition, holds) in [
            (Condition::Absent, cell.is_none()),
            (Condition::Present, cell.is_some()),
            (Condition::Unchanged(current), cell.is_some()),
            (Condition::Unchanged(stamp()), false),
        ] {
            let entries = vec![when(address.clone(), condition)];
            if holds {
                assert_eq!(it.commit(entries).await, Outcome::Committed(Committed::default()));
            } else {
                it.rejects(entries, Cause::Condition { entry: 0 }, cell.clone()).await;
            }
        }
        assert_eq!(it.cell(&address).await, cell, "a condition alone changes nothing");
    }
}

async fn a_condition_guards_its_own_effect(it: Subject) {
    for (address, cell) in three_addresses(&it).await {
        let fails = if cell.is_some() { Condition::Absent } else { Condition::Present };
        let effects =
            [put(address.clone(), "w"), delete(address.clone()), add(address, &[("x", 1)])];
        for entry in effects {
            let cause = Cause::Condition { entry: 0 };
            it.rejects(vec![only_if(fails, entry)], cause, cell.clone()).await;
        }
    }
    let created = put(at("new"), "1");
    it.apply(vec![only_if(Condition::Absent, created.clone())]).await;
    let changed = put(at("new"), "2");
    let unchanged = |entry| Condition::Unchanged(cell_after(entry).stamp);
    it.apply(vec![only_if(unchanged(&created), changed.clone())]).await;
    it.apply(vec![only_if(unchanged(&changed), delete(at("new")))]).await;
    assert_eq!(it.cell(&at("new")).await, None);
    it.apply(vec![only_if(Condition::Present, add(at("integers"), &[("x", 1)]))]).await;
}

async fn a_condition_guards_other_addresses(it: Subject) {
    let read = put(at("read"), "1");
    it.apply(vec![read.clone()]).await;
    let unchanged = when(at("read"), Condition::Unchanged(cell_after(&read).stamp));
    it.apply(vec![put(at("written"), "1"), unchanged.clone()]).await;
    let newer = put(at("read"), "2");
    it.apply(vec![newer.clone()]).await;
    let entries = vec![put(at("written"), "2"), unchanged];
    it.rejects(entries, Cause::Condition { entry: 1 }, Some(cell_after(&newer))).await;
}

async fn conditions_do_not_see_their_own_batch(it: Subject) {
    it.apply(vec![
        only_if(Condition::Absent, put(at("a"), "1")),
        when(at("b"), Condition::Absent),
        only_if(Condition::Absent, add(at("c"), &[("x", 1)])),
    ])
    .await;
    it.apply(vec![
        only_if(Condition::Present, delete(at("a"))),
        only_if(Condition::Present, delete(at("c"))),
    ])
    .await;
    assert_eq!(it.everything().await, []);
}

async fn every_write_counts_as_a_change(it: Subject) {
    let before = put(at("k"), "same");
    it.apply(vec![before.clone()]).await;
    let same_bytes = put(at("k"), "same");
    it.apply(vec![same_bytes.clone()]).await;
    let stale = Condition::Unchanged(cell_after(&before).stamp);
    let cause = Cause::Condition { entry: 0 };
    it.rejects(vec![when(at("k"), stale)], cause, Some(cell_after(&same_bytes))).await;

    it.apply(vec![add(at("n"), &[("x", 1)])]).await;
    let before = it.cell(&at("n")).await.expect("a cell is there");
    it.apply(vec![add(at("n"), &[("x", 0)])]).await;
    let after = it.cell(&at("n")).await.expect("a cell is there");
    assert_eq!(after.content, before.content);
    let stale = Condition::Unchanged(before.stamp);
    it.rejects(vec![when(at("n"), stale)], Cause::Condition { entry: 0 }, Some(after)).await;
}

async fn recreating_is_a_change(it: Subject) {
    let first = put(at("k"), "v");
    it.apply(vec![first.clone()]).await;
    it.apply(vec![delete(at("k"))]).await;
    let second = put(at("k"), "v");
    it.apply(vec![second.clone()]).await;
    let stale = Condition::Unchanged(cell_after(&first).stamp);
    let entries = vec![only_if(stale, put(at("k"), "w"))];
    it.rejects(entries, Cause::Condition { entry: 0 }, Some(cell_after(&second))).await;
}

async fn the_first_failure_in_order_is_reported(it: Subject) {
    let held = put(at("m"), "v");
    it.apply(vec![held.clone()]).await;
    // The order is that of the entries, not of the keys.
    let entries = vec![
        put(at("z"), "1"),
        when(at("y"), Condition::Absent),
        only_if(Condition::Absent, put(at("m"), "2")),
        when(at("a"), Condition::Present),
        add(at("b"), &[("x", 1)]),
    ];
    it.rejects(entries.clone(), Cause::Condition { entry: 2 }, Some(cell_after(&held))).await;
    let entries = entries.into_iter().rev().collect();
    it.rejects(entries, Cause::Condition { entry: 1 }, None).await;
    // Conditions and additions share one order of failures.
    let add_to_bytes = add(at("m"), &[("x", 1)]);
    let present = when(at("a"), Condition::Present);
    let found = Some(cell_after(&held));
    let both = vec![add_to_bytes.clone(), present.clone()];
    it.rejects(both, Cause::NotIntegers { entry: 0 }, found).await;
    it.rejects(vec![present, add_to_bytes], Cause::Condition { entry: 0 }, None).await;
}

async fn conditions_see_one_space_and_area_only(it: Subject) {
    it.apply(vec![put(at("k"), "v")]).await;
    it.apply(vec![when(Address::new(area("x"), "k"), Condition::Absent)]).await;
    it.apply(vec![when(Address::new(Area::own(), "k"), Condition::Absent)]).await;
    let mut elsewhere = Batch::new(Space::new("elsewhere").expect("a valid name"));
    elsewhere.entries.push(when(at("k"), Condition::Absent));
    let outcome = it.engine.commit(elsewhere).await.expect("a commit succeeds");
    assert_eq!(outcome, Outcome::Committed(Committed::default()));
}

fn fenced(fence: Fence, entries: Vec<super::super::Entry>) -> Batch {
    Batch { fence: Some(fence), entries, ..Batch::new(space()) }
}

async fn a_fence_lets_through_or_rejects(it: Subject) {
    let catalog = || Address::new(Area::own(), "catalog");
    let write = || vec![put(at("k"), "v"), add(at("n"), &[("x", 1)])];
    let missing = Fence { address: catalog(), stamp: stamp() };
    let outcome = it.engine.commit(fenced(missing, write())).await.expect("a commit succeeds");
    assert_eq!(outcome, Outcome::Rejected(Rejection { cause: Cause::Fence, found: None }));

    let first = put(catalog(), "epoch 1");
    it.apply(vec![first.clone()]).await;
    let fence = Fence { address: catalog(), stamp: cell_after(&first).stamp };
    let outcome = it.engine.commit(fenced(fence.clone(), write())).await;
    assert!(matches!(outcome, Ok(Outcome::Committed(done)) if done.integers.len() == 1));
    let outcome = it.engine.commit(fenced(fence.clone(), Vec::new())).await;
    assert_eq!(outcome.expect("a commit succeeds"), Outcome::Committed(Committed::default()));

    let second = put(catalog(), "epoch 2");
    it.apply(vec![second.clone()]).await;
    let before = it.everything().await;
    for entries in [write(), Vec::new()] {
        let outcome = it.engine.commit(fenced(fence.clone(), entries)).await;
        let found = Some(cell_after(&second));
        let rejected = Outcome::Rejected(Rejection { cause: Cause::Fence, found });
        assert_eq!(outcome.expect("a commit succeeds"), rejected);
    }
    assert_eq!(it.everything().await, before);
}

async fn a_fence_is_reported_before_any_entry(it: Subject) {
    let fence = Fence { address: at("catalog"), stamp: stamp() };
    let entries = vec![when(at("missing"), Condition::Present)];
    let outcome = it.engine.commit(fenced(fence, entries)).await.expect("a commit succeeds");
    assert_eq!(outcome, Outcome::Rejected(Rejection { cause: Cause::Fence, found: None }));
}
