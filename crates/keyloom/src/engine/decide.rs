//! Decides a batch against the current cells: the pure half of every commit.
//!
//! All engines that check and write in this process share it. So they cannot differ in what they
//! reject, in what they report, or in the result of an addition. An engine calls it while nothing
//! can change the cells that it looks up, and then applies all writes at once.

use super::address::{Address, VALUE_BYTES_MAX};
use super::batch::{Addition, Batch, Cause, Condition, Effect, Entry, Rejection};
use super::cell::{Cell, Content, Integers};
use crate::error::Result;

/// The decision about a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Everything holds. The integers after each `Add`, in the order of the entries, as
    /// [`Outcome::Committed`](super::Outcome::Committed) has them.
    Apply(Vec<Integers>),
    /// Something does not hold, and nothing may be written.
    Reject(Rejection),
}

/// The part of a batch that needs a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    /// Its fence.
    Fence,
    /// The entry at this place.
    Entry(usize),
}

/// Decides a batch that [`Batch::check`] accepted.
///
/// `look_up` is called once for the fence, and once for each address with a condition or an
/// addition, in the order in which failures are reported. It is not called after the first failure,
/// nor for plain puts and deletes. If `look_up` fails, so does the decision.
pub(crate) fn decide(
    batch: &Batch,
    mut look_up: impl FnMut(Spot, &Address) -> Result<Option<Cell>>,
) -> Result<Decision> {
    if let Some(fence) = &batch.fence {
        let found = look_up(Spot::Fence, &fence.address)?;
        if !holds(Condition::Unchanged(fence.stamp), found.as_ref()) {
            return Ok(Decision::Reject(Rejection { cause: Cause::Fence, found }));
        }
    }
    let mut sums = Vec::new();
    for (place, entry) in batch.entries.iter().enumerate() {
        if !is_looked_up(entry) {
            continue;
        }
        let found = look_up(Spot::Entry(place), &entry.address)?;
        if entry.condition.is_some_and(|condition| !holds(condition, found.as_ref())) {
            let cause = Cause::Condition { entry: place };
            return Ok(Decision::Reject(Rejection { cause, found }));
        }
        if let Some(Effect::Add { additions, .. }) = &entry.effect {
            match add(place, found.as_ref(), additions) {
                Ok(sum) => sums.push(sum),
                Err(cause) => return Ok(Decision::Reject(Rejection { cause, found })),
            }
        }
    }
    Ok(Decision::Apply(sums))
}

/// Whether deciding an entry needs its cell.
pub(crate) fn is_looked_up(entry: &Entry) -> bool {
    entry.condition.is_some() || matches!(entry.effect, Some(Effect::Add { .. }))
}

/// The writes of a decided batch, in the order of its entries and each address once; `None` removes
/// the cell, if there is one. `sums` are those of the decision.
pub(crate) fn writes(
    batch: Batch,
    sums: &[Integers],
) -> impl Iterator<Item = (Address, Option<Cell>)> {
    let mut sums = sums.iter();
    batch.entries.into_iter().filter_map(move |Entry { address, effect, .. }| {
        let (stamp, content) = match effect? {
            Effect::Delete => return Some((address, None)),
            Effect::Put { stamp, bytes } => (stamp, Content::Bytes(bytes)),
            Effect::Add { stamp, .. } => (stamp, Content::Integers(sums.next()?.clone())),
        };
        Some((address, Some(Cell { stamp, content })))
    })
}

/// Whether a condition holds for the current cell.
fn holds(condition: Condition, found: Option<&Cell>) -> bool {
    match condition {
        Condition::Absent => found.is_none(),
        Condition::Present => found.is_some(),
        Condition::Unchanged(stamp) => found.is_some_and(|cell| cell.stamp == stamp),
    }
}

/// The integers after all additions to one cell, or the reason why they are impossible.
fn add(entry: usize, found: Option<&Cell>, additions: &[Addition]) -> Result<Integers, Cause> {
    let mut sums = match found.map(|cell| &cell.content) {
        None => Integers::new(),
        Some(Content::Integers(integers)) => integers.clone(),
        Some(Content::Bytes(_)) => return Err(Cause::NotIntegers { entry }),
    };
    for Addition { name, delta, min, max } in additions {
        let before = sums.get(name).copied().unwrap_or(0);
        let Some(sum) = before.checked_add(*delta) else {
            return Err(Cause::Overflow { entry, name: name.clone() });
        };
        if min.is_some_and(|min| sum < min) || max.is_some_and(|max| sum > max) {
            return Err(Cause::Bound { entry, name: name.clone() });
        }
        match sums.get_mut(name) {
            Some(value) => *value = sum,
            None => drop(sums.insert(name.clone(), sum)),
        }
    }
    if integers_bytes(&sums) > VALUE_BYTES_MAX {
        return Err(Cause::TooLarge { entry });
    }
    Ok(sums)
}

/// The size of a cell of integers, as [`VALUE_BYTES_MAX`] counts it on every engine, however it
/// stores them: the names, and 8 bytes for each value.
pub(crate) fn integers_bytes(integers: &Integers) -> usize {
    integers.keys().map(|name| name.len() + size_of::<i64>()).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use bytes::Bytes;

    use super::super::{Area, Fence, Space, Stamp};
    use super::*;
    use crate::error::{Error, ErrorKind};

    fn stamp(number: u8) -> Stamp {
        Stamp([number; Stamp::BYTES])
    }

    fn address(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn bytes_cell(number: u8, bytes: &'static str) -> Cell {
        Cell { stamp: stamp(number), content: Content::Bytes(Bytes::from_static(bytes.as_bytes())) }
    }

    fn integers_cell(number: u8, name: &str, value: i64) -> Cell {
        let integers = Integers::from([(name.to_owned(), value)]);
        Cell { stamp: stamp(number), content: Content::Integers(integers) }
    }

    fn put(bytes: &'static str) -> Option<Effect> {
        Some(Effect::Put { stamp: stamp(9), bytes: Bytes::from_static(bytes.as_bytes()) })
    }

    fn addition(name: &str, delta: i64) -> Addition {
        Addition { name: name.to_owned(), delta, min: None, max: None }
    }

    fn add_all(additions: Vec<Addition>) -> Option<Effect> {
        Some(Effect::Add { stamp: stamp(9), additions })
    }

    /// Decides against the given cells, and gives the addresses that were looked up.
    fn decided(batch: Batch, cells: &[(&'static str, Cell)]) -> (Decision, Vec<Address>) {
        let cells: BTreeMap<Address, Cell> =
            cells.iter().map(|(key, cell)| (address(key), cell.clone())).collect();
        let looked_up = RefCell::new(Vec::new());
        let decision = decide(&batch, |_, address| {
            looked_up.borrow_mut().push(address.clone());
            Ok(cells.get(address).cloned())
        });
        (decision.unwrap(), looked_up.into_inner())
    }

    fn batch(entries: Vec<(&'static str, Option<Condition>, Option<Effect>)>) -> Batch {
        let mut batch = Batch::new(Space::main());
        for (key, condition, effect) in entries {
            batch.push(address(key), condition, effect);
        }
        batch
    }

    fn cause(decision: Decision) -> Cause {
        match decision {
            Decision::Reject(rejection) => rejection.cause,
            Decision::Apply(_) => panic!("expected a rejection, but got {decision:?}"),
        }
    }

    #[test]
    fn plain_effects_look_nothing_up() {
        let plain = batch(vec![("a", None, put("x")), ("b", None, Some(Effect::Delete))]);
        let (decision, looked_up) = decided(plain.clone(), &[]);
        assert!(looked_up.is_empty());
        assert_eq!(decision, Decision::Apply(Vec::new()));
        let written: Vec<_> = writes(plain, &[]).collect();
        let expected = [(address("a"), Some(bytes_cell(9, "x"))), (address("b"), None)];
        assert_eq!(written, expected);
    }

    #[test]
    fn a_condition_and_an_addition_share_one_look_up() {
        let both = batch(vec![
            ("n", Some(Condition::Unchanged(stamp(1))), add_all(vec![addition("x", 2)])),
            ("r", Some(Condition::Present), None),
        ]);
        let cells = [("n", integers_cell(1, "x", 40)), ("r", bytes_cell(1, "r"))];
        let (decision, looked_up) = decided(both.clone(), &cells);
        assert_eq!(looked_up, [address("n"), address("r")]);
        let sums = vec![Integers::from([("x".to_owned(), 42)])];
        let written: Vec<_> = writes(both, &sums).collect();
        assert_eq!(written, [(address("n"), Some(integers_cell(9, "x", 42)))]);
        assert_eq!(decision, Decision::Apply(sums));
    }

    #[test]
    fn the_fence_fails_first_and_then_the_first_entry() {
        let entries =
            vec![("a", Some(Condition::Absent), None), ("b", Some(Condition::Present), None)];
        let cells = [("a", bytes_cell(1, "a")), ("catalog", bytes_cell(2, "c"))];
        let mut fenced = batch(entries.clone());
        fenced.fence = Some(Fence { address: address("catalog"), stamp: stamp(1) });
        let (decision, looked_up) = decided(fenced.clone(), &cells);
        assert_eq!(looked_up, [address("catalog")]);
        let found = Some(bytes_cell(2, "c"));
        assert_eq!(decision, Decision::Reject(Rejection { cause: Cause::Fence, found }));

        fenced.fence = Some(Fence { address: address("catalog"), stamp: stamp(2) });
        let (decision, _) = decided(fenced, &cells);
        assert_eq!(cause(decision), Cause::Condition { entry: 0 });
        let (decision, _) = decided(batch(entries), &[]);
        assert_eq!(cause(decision), Cause::Condition { entry: 1 });
    }

    #[test]
    fn sums_reach_the_ends_of_64_bits_and_their_bounds_but_not_beyond() {
        let bounded = |delta, min, max| Addition { min, max, ..addition("x", delta) };
        let overflow = Cause::Overflow { entry: 0, name: "x".into() };
        let bound = Cause::Bound { entry: 0, name: "x".into() };
        for (before, addition, expected) in [
            (i64::MAX - 1, addition("x", 1), None),
            (i64::MAX, addition("x", 1), Some(overflow.clone())),
            (i64::MIN + 1, addition("x", -1), None),
            (i64::MIN, addition("x", -1), Some(overflow)),
            (4, bounded(-4, Some(0), None), None),
            (4, bounded(-5, Some(0), None), Some(bound.clone())),
            (4, bounded(6, None, Some(10)), None),
            (4, bounded(7, None, Some(10)), Some(bound)),
        ] {
            let (decision, _) = decided(
                batch(vec![("n", None, add_all(vec![addition.clone()]))]),
                &[("n", integers_cell(1, "x", before))],
            );
            match (decision, expected) {
                (Decision::Apply(sums), None) => {
                    assert_eq!(sums[0]["x"], before + addition.delta);
                }
                (Decision::Reject(rejection), Some(cause)) => assert_eq!(rejection.cause, cause),
                (decision, expected) => panic!("{addition:?}: {decision:?} for {expected:?}"),
            }
        }
    }

    #[test]
    fn adding_to_bytes_or_beyond_the_size_of_a_value_is_rejected() {
        let (decision, _) = decided(
            batch(vec![("n", None, add_all(vec![addition("x", 1)]))]),
            &[("n", bytes_cell(1, "12"))],
        );
        assert_eq!(cause(decision), Cause::NotIntegers { entry: 0 });

        // A name of 248 bytes and its value count as 256 bytes, so 1,520 of them fill a value
        // exactly.
        let additions = |count| (0..count).map(|number| addition(&format!("{number:0248}"), 1));
        let full = VALUE_BYTES_MAX / 256;
        let (decision, _) =
            decided(batch(vec![("n", None, add_all(additions(full).collect()))]), &[]);
        assert!(matches!(decision, Decision::Apply(_)));
        let (decision, _) =
            decided(batch(vec![("n", None, add_all(additions(full + 1).collect()))]), &[]);
        assert_eq!(cause(decision), Cause::TooLarge { entry: 0 });
    }

    #[test]
    fn a_failed_look_up_decides_nothing() {
        let batch = batch(vec![("a", Some(Condition::Absent), put("x"))]);
        let error = decide(&batch, |_, _| Err(Error::new(ErrorKind::Unavailable, "no disk")));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
