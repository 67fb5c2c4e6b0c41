//! Counts and sums, kept by the batch that changes the records.
//!
//! A record has at most one share in an aggregate: one in the number of its group, and its value in
//! the sum. A change takes the old share away and adds the new one, by additions without a
//! condition, so that writers of one group never fail because of each other.
//!
//! While a generation of cells is being counted, not every record is in it yet. A mark tells which
//! are, and every batch that counts a record for the first time puts its mark:
//!
//! | record before | its mark | what a change does |
//! | --- | --- | --- |
//! | not there | none | adds the new share, puts the mark |
//! | there | there, and stays | takes the old share away, adds the new one |
//! | there | none, and is put | adds the new share: the old one was never counted |
//! | there, and cannot be counted, as it cannot afterwards | none | nothing: who counts must meet it |
//! | deleted by the change | there, and goes | takes the old share away |
//! | deleted by the change | none | nothing |
//!
//! The second to last column is a condition of the batch wherever the record was there before, and
//! the builder's batches rest on the record's version and on the absence of its mark. So each
//! record is counted once, whoever comes first.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::engine::{Addition, Address, Cause, Cell, Condition, Effect, Rejection, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{shortened, whole_of};
use crate::record::{Version, is_about_what_stays};
use crate::schema::{Aggregate, COUNT, Collection, Generation, SUM, SUMMED_MAX};
use crate::side::kind::{CellRole, SideCell};
use crate::side::work::{Change, Refused, Work};
use crate::space::Loaded;

/// What a record gives to one aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) group: Bytes,
    /// Zero for a count, and for a record without the summed field.
    pub(crate) amount: i64,
}

/// What a record gives to an aggregate; nothing when it does not meet the condition, or lacks a
/// field of the group.
pub(crate) fn share(
    collection: &Collection,
    aggregate: &Aggregate,
    record: &Value,
) -> Result<Option<Share>> {
    if aggregate.condition.as_ref().is_some_and(|condition| !condition.holds(record)) {
        return Ok(None);
    }
    let values: Option<Vec<&Value>> =
        aggregate.group.iter().map(|path| collection.value(path, record)).collect();
    let Some(values) = values else { return Ok(None) };
    let group = aggregate.group_of(&values).map_err(|refusal| {
        let error = refusal.into_error().with("collection", &collection.name);
        error.with("aggregate", &aggregate.name)
    })?;
    aggregate.check_room(&group)?;
    let summed = aggregate.summed.as_ref().and_then(|path| collection.value(path, record));
    let amount = summed.map_or(Ok(0), |value| amount(aggregate, value))?;
    Ok(Some(Share { group, amount }))
}

fn amount(aggregate: &Aggregate, value: &Value) -> Result<i64> {
    let summable = |amount: &i64| (-SUMMED_MAX..=SUMMED_MAX).contains(amount);
    whole_of(value).filter(summable).ok_or_else(|| {
        let message = "a summed field holds a whole number of at most 62 bits";
        let error = aggregate.about(ErrorKind::InvalidRecord, message);
        let error = error.with("value", shortened(value));
        aggregate.summed.iter().fold(error, |error, path| error.with("field", path))
    })
}

/// Additions to the cells of aggregates. Most writes make a handful of them, for which a list is
/// cheaper than a map: they are put together by cell at the end.
#[derive(Default)]
pub(crate) struct Additions<'a> {
    shares: Vec<(Address, Sum<'a>)>,
}

struct Sum<'a> {
    aggregate: &'a Arc<Aggregate>,
    count: i64,
    amount: i128,
    record: &'a [u8],
    /// Whether several records take part in it.
    is_shared: bool,
}

impl<'a> Additions<'a> {
    /// Adds a record's share, or takes it away. A record always uses the same cell of a group, so
    /// that no cell is ever negative, not even where cells are read at different moments.
    pub(crate) fn add(
        &mut self,
        aggregate: &'a Arc<Aggregate>,
        generation: Generation,
        record: &'a [u8],
        share: &Share,
        times: i64,
    ) {
        let number = cell_number(record, generation.cells);
        let address = aggregate.cell(generation.number, &share.group, number);
        let amount = i128::from(times) * i128::from(share.amount);
        self.shares
            .push((address, Sum { aggregate, count: times, amount, record, is_shared: false }));
    }

    /// The sum for each cell, in the order of the cells.
    fn sums(self) -> Vec<(Address, Sum<'a>)> {
        let mut sums = self.shares;
        sums.sort_by(|(address, _), (other, _)| address.cmp(other));
        sums.dedup_by(|(address, next), (last, sum)| {
            let is_same = address == last;
            if is_same {
                sum.count += next.count;
                sum.amount += next.amount;
                sum.is_shared |= sum.record != next.record;
            }
            is_same
        });
        sums
    }

    /// The additions as effects, one for each cell. One that comes to nothing is left out, unless
    /// several records take part in it: then the cell's stamp tells that it is not the same records
    /// as before.
    pub(crate) fn effects(
        self,
        stamp: Stamp,
    ) -> impl Iterator<Item = Result<(Address, Effect, &'a Arc<Aggregate>)>> {
        let left =
            |(_, sum): &(Address, Sum<'_>)| sum.count != 0 || sum.amount != 0 || sum.is_shared;
        self.sums().into_iter().filter(left).map(move |(address, sum)| {
            let addition =
                |name: &str, delta| Addition { name: name.to_owned(), delta, min: None, max: None };
            let mut additions = vec![addition(COUNT, sum.count)];
            if sum.aggregate.summed.is_some() {
                let amount = i64::try_from(sum.amount).map_err(|_| overflow(sum.aggregate))?;
                additions.push(addition(SUM, amount));
            }
            Ok((address, Effect::Add { stamp, additions }, sum.aggregate))
        })
    }
}

/// Which of a group's cells counts a record: FNV-1a of its key, modulo the number of cells.
fn cell_number(record: &[u8], cells: u16) -> u16 {
    let hash = record.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The remainder is below the number of cells.
    (hash % u64::from(cells.max(1))) as u16
}

/// One change of one record, as one generation of one aggregate sees it.
struct Job<'a> {
    change: &'a Change<'a>,
    aggregate: &'a Arc<Aggregate>,
    generation: Generation,
    /// Where the record is marked, in a generation that is not complete yet.
    mark: Option<Address>,
}

/// A number of the aggregate, or the mark of a record that it counts. Aggregates are numbered as
/// [`aggregates_of`] gives them.
static ROLE: CellRole = CellRole { explain, is_renewed: true, is_answered: false };

/// The marks that tell which of the changed records are counted. One that is only now created is
/// not.
pub(super) fn reads(loaded: &Loaded, work: &Work<'_>, asked: &mut Vec<Address>) {
    for change in work.changes.iter().filter(|change| change.before.there().is_some()) {
        for aggregate in change.collection.aggregates.values() {
            let marked = loaded.maintained(aggregate).filter(|(_, is_marked)| *is_marked);
            asked.extend(marked.map(|(of, _)| aggregate.mark(of.number, &change.key)));
        }
    }
}

/// The cells that keep the aggregates of the changed records up to date.
pub(super) fn write(
    loaded: &Loaded,
    work: &Work<'_>,
    marks: &[Option<Cell>],
    cells: &mut Vec<SideCell>,
) -> Result<()> {
    let jobs = jobs(loaded, work.changes);
    if jobs.is_empty() {
        return Ok(());
    }
    let mut marks = marks.iter();
    let stamp = Version::first().stamp();
    let mut additions = Additions::default();
    for Job { change, aggregate, generation, mark } in &jobs {
        let is_asked = mark.is_some() && change.before.there().is_some();
        let is_marked = is_asked && marks.next().is_some_and(Option::is_some);
        let is_counted = mark.is_none() || is_marked;
        if let Some((_, value, _)) = change.before.there()
            && is_counted
            // A stored record that does not fit was never counted.
            && let Ok(Some(share)) = share(&change.collection, aggregate, value)
        {
            additions.add(aggregate, *generation, &change.key, &share, -1);
        }
        let after = match &change.after {
            Some(after) => written_share(change, aggregate, &after.value)?,
            None => Written::Counted(None),
        };
        if let Written::Counted(Some(share)) = &after {
            additions.add(aggregate, *generation, &change.key, share, 1);
        }
        if let Some(address) = mark {
            let is_unfit = after == Written::Unfit;
            let step = mark_step(change, is_marked, is_unfit, stamp);
            cells.extend(step.map(|(condition, effect)| SideCell {
                address: address.clone(),
                condition,
                effect,
                role: &ROLE,
                number: number_of(work, aggregate),
            }));
        }
    }
    for effect in additions.effects(stamp) {
        let (address, effect, aggregate) = effect?;
        let (effect, number) = (Some(effect), number_of(work, aggregate));
        cells.push(SideCell { address, condition: None, effect, role: &ROLE, number });
    }
    Ok(())
}

/// The aggregates of all changed records, again for each change.
fn aggregates_of<'w>(work: &Work<'w>) -> impl Iterator<Item = &'w Arc<Aggregate>> {
    work.changes.iter().flat_map(|change| change.collection.aggregates.values())
}

fn number_of(work: &Work<'_>, aggregate: &Arc<Aggregate>) -> usize {
    aggregates_of(work).position(|of| Arc::ptr_eq(of, aggregate)).unwrap_or_default()
}

/// What a record gives that is written now.
#[derive(PartialEq, Eq)]
enum Written {
    Counted(Option<Share>),
    /// It cannot be counted because of what was there before, and neither could the one before it:
    /// the aggregate was declared over it.
    Unfit,
}

fn written_share(change: &Change<'_>, aggregate: &Aggregate, after: &Value) -> Result<Written> {
    let of = |value| share(&change.collection, aggregate, value);
    of(after).map(Written::Counted).or_else(|refusal| {
        let Some((_, before, _)) = change.before.there() else { return Err(refusal) };
        match of(before) {
            Err(known)
                if known.says_the_same_as(&refusal)
                    || is_about_what_stays(&change.collection, &refusal, before, after) =>
            {
                Ok(Written::Unfit)
            }
            _ => Err(refusal),
        }
    })
}

fn jobs<'a>(loaded: &Loaded, changes: &'a [Change]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for change in changes {
        for aggregate in change.collection.aggregates.values() {
            for (generation, is_marked) in loaded.maintained(aggregate) {
                let mark = is_marked.then(|| aggregate.mark(generation.number, &change.key));
                jobs.push(Job { change, aggregate, generation, mark });
            }
        }
    }
    jobs
}

/// What becomes of a record's mark, and what the batch rests on. A record that cannot be counted
/// gets none, so that whoever counts meets it.
fn mark_step(
    change: &Change<'_>,
    is_marked: bool,
    is_unfit: bool,
    stamp: Stamp,
) -> Option<(Option<Condition>, Option<Effect>)> {
    let put = || Some(Effect::Put { stamp, bytes: Bytes::new() });
    let was_there = change.before.there().is_some();
    Some(match (was_there, &change.after) {
        (true, Some(_)) if is_marked => (Some(Condition::Present), None),
        (true, Some(_)) if is_unfit => (Some(Condition::Absent), None),
        (true, None) if is_marked => (Some(Condition::Present), Some(Effect::Delete)),
        (true, Some(_)) => (Some(Condition::Absent), put()),
        (true, None) => (Some(Condition::Absent), None),
        // That the record is not there is a condition already.
        (false, Some(_)) => (None, put()),
        (false, None) => return None,
    })
}

/// Why a batch was rejected at a cell of an aggregate.
fn explain(number: usize, work: &Work<'_>, rejection: &Rejection) -> Refused {
    let Some(aggregate) = aggregates_of(work).nth(number) else {
        let message = "a batch was rejected at an aggregate that it does not change";
        return Refused::Final(Error::new(ErrorKind::Internal, message));
    };
    match rejection.cause {
        Cause::Condition { .. } => Refused::Changed(
            aggregate.about(ErrorKind::VersionConflict, "the record was counted meanwhile"),
        ),
        Cause::Overflow { .. } => Refused::Final(overflow(aggregate)),
        _ => Refused::Final(aggregate.about(
            ErrorKind::Corrupt,
            "what lies at the place of an aggregate's number is none; run repair",
        )),
    }
}

fn overflow(aggregate: &Aggregate) -> Error {
    aggregate.about(ErrorKind::LimitExceeded, "the sum of the group would not fit into 64 bits")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;
    use crate::engine::ShowKey;
    use crate::schema::Schema;

    const SCHEMA: &str = r#"
        [collection.run]
        key = "run:{id}"
        fields = { id = "text", flow = "text", late = "boolean", seconds = "integer" }
        sum.seconds = { field = "seconds", group = ["flow", "late"], where = { id = { present = true } } }
    "#;

    fn collection() -> Arc<Collection> {
        Schema::from_toml(SCHEMA).unwrap().collection("run").unwrap().clone()
    }

    /// The effects of adding and taking away shares in groups, as text.
    fn effects(cells: u16, steps: &[(&'static str, &str, i64, i64)]) -> Vec<String> {
        let collection = collection();
        let aggregate = collection.aggregate("seconds").unwrap();
        let generation = Generation { number: 7, cells };
        let mut additions = Additions::default();
        for (record, flow, amount, times) in steps {
            let value = json!({ "id": record, "flow": flow, "late": true, "seconds": amount });
            let share = share(&collection, aggregate, &value).unwrap().unwrap();
            additions.add(aggregate, generation, record.as_bytes(), &share, *times);
        }
        let shown = |effect: Result<(Address, Effect, &Arc<Aggregate>)>| match effect {
            Ok((address, Effect::Add { additions, .. }, _)) => {
                let deltas: Vec<i64> = additions.iter().map(|addition| addition.delta).collect();
                format!("{} {deltas:?}", ShowKey(&address.key))
            }
            Ok(_) => "another effect".to_owned(),
            Err(error) => format!("{:?}", error.kind()),
        };
        additions.effects(Version::first().stamp()).map(shown).collect()
    }

    #[test]
    fn additions_to_one_cell_are_one() {
        let moved = effects(1, &[("r", "a", 5, -1), ("r", "b:", 7, 1), ("s", "b:", 1, 1)]);
        assert_eq!(
            moved,
            ["aggregate:run:seconds:7:a!:1:0 [-1, -5]", "aggregate:run:seconds:7:b:!:1:0 [2, 8]"]
        );
        let same_group = effects(1, &[("r", "a", 5, -1), ("r", "a", 7, 1)]);
        assert_eq!(same_group, ["aggregate:run:seconds:7:a!:1:0 [0, 2]"]);
    }

    #[test]
    fn what_comes_to_nothing_is_left_out_unless_the_records_are_others() {
        assert_eq!(effects(1, &[("r", "a", 5, -1), ("r", "a", 5, 1)]), [""; 0]);
        let renamed = effects(1, &[("r", "a", 5, -1), ("s", "a", 5, 1)]);
        assert_eq!(renamed, ["aggregate:run:seconds:7:a!:1:0 [0, 0]"]);
    }

    #[test]
    fn a_record_uses_one_cell_and_records_use_all() {
        let numbers = |records: std::ops::Range<u32>| -> std::collections::BTreeSet<u16> {
            records.map(|n| cell_number(format!("run:{n}").as_bytes(), 4)).collect()
        };
        assert_eq!(numbers(0..50).into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(cell_number(b"run:1", 4), cell_number(b"run:1", 4));
        assert_eq!(cell_number(b"run:1", 1), 0);
        assert_eq!(cell_number(b"run:1", 0), 0);
        // The documented function, so that another program finds the same cell.
        assert_eq!(cell_number(b"", u16::MAX), (0xcbf2_9ce4_8422_2325_u64 % 65_535) as u16);
        assert_eq!(cell_number(b"a", u16::MAX), (0xaf63_dc4c_8601_ec8c_u64 % 65_535) as u16);
    }

    #[test]
    fn a_batch_whose_sums_do_not_fit_is_refused() {
        let most = SUMMED_MAX;
        let steps = [("r", "a", most, 1), ("s", "a", most, 1), ("t", "a", most, 1)];
        assert_eq!(effects(1, &steps), ["LimitExceeded"]);
    }
}
