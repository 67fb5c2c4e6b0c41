//! Cells of named integers: sums, bounds, the limits of 64 bits, and the kind of a cell.

use super::super::{Addition, Cause, Cell, Condition, Content};
use super::runner::{Check, checks};
use super::subject::{
    Subject, add, adding, addition, at, cell_after, delete, integers, only_if, put, when,
};

pub(super) fn checks() -> Vec<Check> {
    checks![
        absent_cells_and_names_count_as_zero,
        the_answer_has_every_integer_of_each_cell,
        many_sums_come_in_the_order_of_the_batch,
        integers_are_exact_to_the_ends_of_64_bits,
        overflow_rejects_and_changes_nothing,
        bounds_reject_and_change_nothing,
        one_failed_addition_rejects_all,
        adding_to_bytes_is_rejected,
        a_put_replaces_integers_and_a_delete_forgets_them,
        additions_take_conditions_and_stamps,
        names_of_any_text,
    ]
}

async fn integers_at(it: &Subject, key: &str) -> Vec<(String, i64)> {
    let cell = it.cell(&at(key)).await.expect("a cell is there");
    cell.integers().expect("the cell holds integers").clone().into_iter().collect()
}

async fn absent_cells_and_names_count_as_zero(it: Subject) {
    assert_eq!(it.apply(vec![add(at("n"), &[("x", 5)])]).await, [integers(&[("x", 5)])]);
    let sums = it.apply(vec![add(at("n"), &[("y", -2)])]).await;
    assert_eq!(sums, [integers(&[("x", 5), ("y", -2)])]);
    let sums = it.apply(vec![add(at("n"), &[("x", -5), ("z", 0)])]).await;
    assert_eq!(sums, [integers(&[("x", 0), ("y", -2), ("z", 0)])]);
    let found = it.cell(&at("n")).await.expect("a cell is there");
    assert_eq!(found.integers(), Some(&sums[0]));
}

async fn the_answer_has_every_integer_of_each_cell(it: Subject) {
    it.apply(vec![add(at("a"), &[("kept", 1)]), add(at("b"), &[("kept", 2)])]).await;
    let sums = it
        .apply(vec![
            add(at("b"), &[("x", 10)]),
            put(at("between"), "v"),
            add(at("a"), &[("x", 20), ("kept", 1)]),
            add(at("new"), &[("x", 30)]),
        ])
        .await;
    let expected = [&[("kept", 2), ("x", 10)][..], &[("kept", 2), ("x", 20)], &[("x", 30)]];
    assert_eq!(sums, expected.map(integers));
}

/// The sums come in the order of the batch, not of its keys, with other effects in between.
async fn many_sums_come_in_the_order_of_the_batch(it: Subject) {
    let most = it.engine.capabilities().batch_entries_max.min(300) / 2;
    let key = |number: usize| format!("n{:03}", number * 7 % 151);
    let batch = (0..most).flat_map(|number| {
        let value = number as i64;
        [add(at(key(number)), &[("x", value)]), put(at(format!("p{number:03}")), "v")]
    });
    let sums = it.apply(batch.collect()).await;
    let expected: Vec<_> = (0..most).map(|number| integers(&[("x", number as i64)])).collect();
    assert_eq!(sums, expected);
    for number in 0..most {
        let found = integers_at(&it, &key(number)).await;
        assert_eq!(found, [("x".to_owned(), number as i64)], "at {}", key(number));
    }
}

/// Beyond 2^53 a double cannot distinguish neighbouring numbers.
async fn integers_are_exact_to_the_ends_of_64_bits(it: Subject) {
    const FLOAT_EXACT_MAX: i64 = 1 << 53;
    for value in [
        0,
        FLOAT_EXACT_MAX + 1,
        -FLOAT_EXACT_MAX - 1,
        i64::MAX - 1,
        i64::MAX,
        i64::MIN + 1,
        i64::MIN,
    ] {
        it.apply(vec![delete(at("n"))]).await;
        it.apply(vec![add(at("n"), &[("x", value)])]).await;
        assert_eq!(integers_at(&it, "n").await, [("x".to_owned(), value)]);
        let back = if value == 0 { 1 } else { -value.signum() };
        it.apply(vec![add(at("n"), &[("x", back)])]).await;
        assert_eq!(integers_at(&it, "n").await, [("x".to_owned(), value + back)]);
    }
}

async fn overflow_rejects_and_changes_nothing(it: Subject) {
    it.apply(vec![add(at("n"), &[("high", i64::MAX), ("low", i64::MIN)])]).await;
    let found = it.cell(&at("n")).await;
    for (name, delta) in [("high", 1), ("high", i64::MAX), ("low", -1), ("low", i64::MIN)] {
        let entries = vec![put(at("other"), "v"), add(at("n"), &[(name, delta)])];
        let cause = Cause::Overflow { entry: 1, name: name.to_owned() };
        it.rejects(entries, cause, found.clone()).await;
    }
    it.apply(vec![add(at("n"), &[("high", i64::MIN), ("low", i64::MAX)])]).await;
    assert_eq!(integers_at(&it, "n").await, [("high".to_owned(), -1), ("low".to_owned(), -1)]);
}

async fn bounds_reject_and_change_nothing(it: Subject) {
    let within =
        |delta, min, max| adding(at("n"), vec![Addition { min, max, ..addition("stock", delta) }]);
    it.apply(vec![within(10, Some(0), Some(10))]).await;
    let found = it.cell(&at("n")).await;
    for (delta, min, max) in [
        (1, None, Some(10)),
        (-11, Some(0), None),
        (0, Some(11), None),
        (0, None, Some(9)),
        (-1, Some(10), Some(20)),
    ] {
        let entries = vec![put(at("other"), "v"), within(delta, min, max)];
        let cause = Cause::Bound { entry: 1, name: "stock".to_owned() };
        it.rejects(entries, cause, found.clone()).await;
    }
    it.apply(vec![within(-10, Some(0), Some(10))]).await;
    it.apply(vec![within(0, Some(0), Some(0))]).await;
    assert_eq!(integers_at(&it, "n").await, [("stock".to_owned(), 0)]);
    let absent = Addition { min: Some(1), ..addition("stock", 0) };
    let cause = Cause::Bound { entry: 0, name: "stock".to_owned() };
    it.rejects(vec![adding(at("absent"), vec![absent])], cause, None).await;
    // A sum beyond 64 bits is an overflow, whatever its bounds.
    it.apply(vec![add(at("n"), &[("stock", i64::MAX)])]).await;
    let found = it.cell(&at("n")).await;
    let cause = Cause::Overflow { entry: 0, name: "stock".to_owned() };
    it.rejects(vec![within(1, Some(0), Some(10))], cause, found).await;
}

async fn one_failed_addition_rejects_all(it: Subject) {
    it.apply(vec![add(at("n"), &[("full", i64::MAX)]), add(at("m"), &[("x", 1)])]).await;
    let found = it.cell(&at("n")).await;
    let entries = vec![
        add(at("m"), &[("x", 1)]),
        add(at("n"), &[("a", 1), ("full", 1), ("z", 1)]),
        add(at("o"), &[("x", 1)]),
    ];
    let cause = Cause::Overflow { entry: 1, name: "full".to_owned() };
    it.rejects(entries, cause, found.clone()).await;
    // Of several failures in one cell, the first in the order of the additions is reported.
    let bounded = Addition { max: Some(0), ..addition("a", 1) };
    let additions = vec![addition("full", 1), bounded];
    let cause = Cause::Overflow { entry: 0, name: "full".to_owned() };
    it.rejects(vec![adding(at("n"), additions.clone())], cause, found.clone()).await;
    let additions = additions.into_iter().rev().collect();
    let cause = Cause::Bound { entry: 0, name: "a".to_owned() };
    it.rejects(vec![adding(at("n"), additions)], cause, found).await;
}

async fn adding_to_bytes_is_rejected(it: Subject) {
    for value in ["", "1", "{\"x\":1}"] {
        let there = put(at("k"), value);
        it.apply(vec![there.clone()]).await;
        let entries = vec![put(at("other"), "v"), add(at("k"), &[("x", 1)])];
        it.rejects(entries, Cause::NotIntegers { entry: 1 }, Some(cell_after(&there))).await;
    }
}

async fn a_put_replaces_integers_and_a_delete_forgets_them(it: Subject) {
    it.apply(vec![add(at("n"), &[("x", 1), ("y", 1)])]).await;
    let bytes = put(at("n"), "bytes");
    it.apply(vec![bytes.clone()]).await;
    assert_eq!(it.cell(&at("n")).await, Some(cell_after(&bytes)));
    it.apply(vec![delete(at("n"))]).await;
    it.apply(vec![add(at("n"), &[("x", 7)])]).await;
    assert_eq!(integers_at(&it, "n").await, [("x".to_owned(), 7)]);
    it.apply(vec![delete(at("n"))]).await;
    it.apply(vec![add(at("n"), &[("z", 8)])]).await;
    assert_eq!(integers_at(&it, "n").await, [("z".to_owned(), 8)]);
}

async fn additions_take_conditions_and_stamps(it: Subject) {
    it.apply(vec![only_if(Condition::Absent, add(at("n"), &[("x", 1)]))]).await;
    let first = it.cell(&at("n")).await.expect("a cell is there");
    let unchanged = Condition::Unchanged(first.stamp);
    let second = add(at("n"), &[("x", 1)]);
    it.apply(vec![only_if(unchanged, second.clone())]).await;
    let found = it.cell(&at("n")).await.expect("a cell is there");
    assert_ne!(found.stamp, first.stamp);
    let Some(super::super::Effect::Add { stamp, .. }) = second.effect else {
        panic!("the entry adds");
    };
    let expected = Cell { stamp, content: Content::Integers(integers(&[("x", 2)])) };
    assert_eq!(found, expected);
    let stale = vec![only_if(unchanged, add(at("n"), &[("x", 1)]))];
    it.rejects(stale, Cause::Condition { entry: 0 }, Some(expected)).await;
    it.apply(vec![when(at("n"), Condition::Present)]).await;
}

async fn names_of_any_text(it: Subject) {
    let longest = "n".repeat(super::super::COUNTER_NAME_BYTES_MAX);
    let names = ["a", "a.b", "a:b", "order.created", " ", "\0", "%", "é", "日本", "\"", &longest];
    for (place, name) in (0..).zip(names) {
        it.apply(vec![add(at("n"), &[(name, place)])]).await;
    }
    let mut expected: Vec<(String, i64)> =
        names.iter().zip(0..).map(|(name, place)| ((*name).to_owned(), place)).collect();
    expected.sort();
    assert_eq!(integers_at(&it, "n").await, expected);
}
