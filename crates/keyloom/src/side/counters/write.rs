//! Counters: what a commit adds to them, and how they follow their records.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::key::{counter_address, required_counter_address};
use super::read::Counted;
use crate::engine::{
    Addition, Address, Cause, Cell, Condition, Effect, Integers, Rejection, ShowKey,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::schema::Collection;
use crate::side::kind::{CellRole, SideCell};
use crate::side::work::{Before, Change, Refused, Work};

/// What a commit does to counters besides letting them follow their records.
#[derive(Default)]
pub(crate) struct Counting {
    /// What is added, each record once.
    pub(crate) addends: Vec<Addend>,
    /// The counters that move with their record from the first change to the second.
    pub(crate) moved: Option<Moved>,
}

/// Nothing is done to counters.
pub(crate) static NO_COUNTING: Counting = Counting { addends: Vec::new(), moved: None };

/// What is added to the counters of one record.
#[derive(Clone, Debug)]
pub(crate) struct Addend {
    pub(crate) collection: Arc<Collection>,
    pub(crate) key: Bytes,
    pub(crate) deltas: BTreeMap<String, i64>,
    pub(crate) start: Start,
}

/// What an addition begins from.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    /// Whatever the values are.
    Present,
    /// Zero: the record is created anew over one that had these counters.
    Anew(Option<Counted>),
}

/// The counters of a record that gets another key, as they were read.
pub(crate) struct Moved {
    pub(crate) counted: Option<Counted>,
}

impl Addend {
    /// Nothing added yet.
    pub(crate) fn new(collection: &Arc<Collection>, key: Bytes) -> Self {
        let collection = collection.clone();
        Addend { collection, key, deltas: BTreeMap::new(), start: Start::Present }
    }

    /// Adds to a counter, also to one that is added to already.
    pub(crate) fn add(&mut self, name: &str, delta: i64) -> Result<()> {
        self.collection.counters.addition(name, delta).map_err(|error| self.about(error))?;
        let sum = self.deltas.get(name).copied().unwrap_or(0).checked_add(delta);
        let Some(sum) = sum else {
            let message = "what is added to one counter does not fit into 64 bits";
            let error = Error::new(ErrorKind::OutOfBounds, message).with("counter", name);
            return Err(self.about(error).with("delta", delta));
        };
        self.deltas.insert(name.to_owned(), sum);
        Ok(())
    }

    pub(crate) fn record_address(&self) -> Address {
        Address::new(self.collection.area.clone(), self.key.clone())
    }

    pub(crate) fn not_found(&self) -> Error {
        let message = "there is no record with this key, and so no counters of it";
        self.about(Error::new(ErrorKind::NotFound, message))
    }

    fn about(&self, error: Error) -> Error {
        error.with("collection", &self.collection.name).with("key", ShowKey(&self.key))
    }

    fn additions(&self) -> Result<Vec<Addition>> {
        let counters = &self.collection.counters;
        let Start::Anew(Some(before)) = &self.start else {
            let add = |(name, delta): (&String, &i64)| counters.addition(name, *delta);
            return self.deltas.iter().map(add).collect();
        };
        // What was counted before is taken away again, since a cell cannot be set.
        let names = before.values.keys().chain(self.deltas.keys());
        let names: BTreeSet<&String> = names.collect();
        names
            .into_iter()
            .map(|name| {
                let delta = self.deltas.get(name).copied().unwrap_or(0);
                let before = before.values.get(name).copied().unwrap_or(0);
                let delta = delta.checked_sub(before).ok_or_else(|| {
                    let message = "what is added to one counter does not fit into 64 bits";
                    self.about(Error::new(ErrorKind::OutOfBounds, message).with("counter", name))
                })?;
                let undeclared = Addition { name: name.clone(), delta, min: None, max: None };
                Ok(counters.addition(name, delta).unwrap_or(undeclared))
            })
            .collect()
    }
}

/// The counters of the addend with this number.
static ADDED: CellRole = CellRole { explain: not_added, is_renewed: false, is_answered: true };

/// The record of the addend with this number, which must be there.
static HOLDER: CellRole = CellRole::explained(|number, work, rejection| {
    let addend = work.counting.addends.get(number);
    addend.map_or_else(|| changed(rejection), |addend| Refused::Final(addend.not_found()))
});

/// Counters that leave with their record.
static DEPARTED: CellRole = CellRole::explained(|_, _, rejection| changed(rejection));

/// Counters that come with their record.
static ARRIVED: CellRole = CellRole::explained(|_, _, _| {
    let message = "counters without a record are at the new key; run repair";
    Refused::Final(Error::new(ErrorKind::Corrupt, message))
});

/// The cells of counters that a commit touches.
pub(super) fn cells(work: &Work<'_>, cells: &mut Vec<SideCell>) -> Result<()> {
    for change in work.changes {
        follow(work, change, cells)?;
    }
    for (number, addend) in work.counting.addends.iter().enumerate() {
        add(work, number, addend, cells)?;
    }
    Ok(())
}

/// Lets the counters of a record follow it: away with it, or to its new key.
fn follow(work: &Work<'_>, change: &Change, cells: &mut Vec<SideCell>) -> Result<()> {
    let Change { collection, key, before, after } = change;
    if collection.counters.is_empty() {
        return Ok(());
    }
    let mut push = |address, condition, effect, role: &'static CellRole| {
        cells.push(SideCell { address, condition, effect: Some(effect), role, number: 0 });
    };
    match (before, after, &work.counting.moved) {
        (Before::Read { .. }, None, moved) => {
            let Some(address) = counter_address(collection, key) else { return Ok(()) };
            let condition = moved.as_ref().map(|moved| as_read(moved.counted.as_ref()));
            push(address, condition, Effect::Delete, &DEPARTED);
        }
        (Before::Absent | Before::SeenAbsent, Some(_), moved) => {
            // Refused here, before anything is counted for the record.
            let address = required_counter_address(collection, key)?;
            let counted = moved.as_ref().and_then(|moved| moved.counted.as_ref());
            let Some(counted) = counted.filter(|counted| !counted.values.is_empty()) else {
                return Ok(());
            };
            let unbounded = |(name, delta): (&String, &i64)| Addition {
                name: name.clone(),
                delta: *delta,
                min: None,
                max: None,
            };
            let additions = counted.values.iter().map(unbounded).collect();
            let add = Effect::Add { stamp: Version::first().stamp(), additions };
            push(address, Some(Condition::Absent), add, &ARRIVED);
        }
        // Another record begins where one has expired; if anything is added to its counters, that
        // takes care of the old ones.
        (Before::Expired(_), after, _) => {
            let Some(address) = counter_address(collection, key) else { return Ok(()) };
            let is_added_to = work
                .counting
                .addends
                .iter()
                .any(|addend| addend.key == *key && addend.collection.area == collection.area);
            if after.is_none() || !is_added_to {
                push(address, None, Effect::Delete, &DEPARTED);
            }
        }
        _ => {}
    }
    Ok(())
}

fn add(work: &Work<'_>, number: usize, addend: &Addend, cells: &mut Vec<SideCell>) -> Result<()> {
    let record = addend.record_address();
    let is_covered = work.reads.iter().any(|(address, _)| *address == record)
        || work.changes.iter().any(|change| {
            change.key == addend.key && change.collection.area == addend.collection.area
        });
    if !is_covered {
        cells.push(SideCell {
            address: record,
            condition: Some(Condition::Present),
            effect: None,
            role: &HOLDER,
            number,
        });
    }
    let address = required_counter_address(&addend.collection, &addend.key)?;
    let expired = work.changes.iter().find_map(|change| match &change.before {
        Before::Expired(current)
            if change.key == addend.key && change.collection.area == addend.collection.area =>
        {
            Some(Addend { start: Start::Anew(current.counted.clone()), ..addend.clone() })
        }
        _ => None,
    });
    let addend = expired.as_ref().unwrap_or(addend);
    let (condition, effect) = match &addend.start {
        // Created anew, and nothing is added yet: what was counted goes.
        Start::Anew(_) if addend.deltas.is_empty() => (None, Effect::Delete),
        start => {
            let condition = match start {
                Start::Present => None,
                Start::Anew(before) => Some(as_read(before.as_ref())),
            };
            let (stamp, additions) = (Version::first().stamp(), addend.additions()?);
            (condition, Effect::Add { stamp, additions })
        }
    };
    cells.push(SideCell { address, condition, effect: Some(effect), role: &ADDED, number });
    Ok(())
}

fn as_read(counted: Option<&Counted>) -> Condition {
    counted.map_or(Condition::Absent, |counted| Condition::Unchanged(counted.stamp))
}

/// Why nothing could be added to the counters of an addend.
fn not_added(number: usize, work: &Work<'_>, rejection: &Rejection) -> Refused {
    let Some(addend) = work.counting.addends.get(number) else { return changed(rejection) };
    let refused = |kind, message| Refused::Final(addend.about(Error::new(kind, message)));
    match &rejection.cause {
        Cause::Condition { .. } => changed(rejection),
        Cause::Overflow { name, .. } | Cause::Bound { name, .. } => {
            Refused::Final(beyond(addend, name, rejection))
        }
        Cause::TooLarge { .. } => refused(
            ErrorKind::LimitExceeded,
            "the counters of one record have at most 389120 bytes (380 KiB)",
        ),
        _ => refused(ErrorKind::Corrupt, "the counters of this record cannot be read; run verify"),
    }
}

fn changed(rejection: &Rejection) -> Refused {
    let message = "the counters changed since they were read";
    let now = rejection.found.clone().and_then(Counted::from_cell);
    Refused::Counted(Error::new(ErrorKind::VersionConflict, message), now)
}

/// The error for a sum that a counter cannot have.
fn beyond(addend: &Addend, name: &str, rejection: &Rejection) -> Error {
    let is_overflow = matches!(rejection.cause, Cause::Overflow { .. });
    let message = match is_overflow {
        true => "a counter does not fit into 64 bits",
        false => "a counter would leave its declared bounds",
    };
    let before = match &addend.start {
        Start::Anew(_) => 0,
        Start::Present => {
            let values = rejection.found.as_ref().and_then(Cell::integers);
            values.and_then(|values: &Integers| values.get(name)).copied().unwrap_or(0)
        }
    };
    let delta = addend.deltas.get(name).copied().unwrap_or(0);
    let error = addend
        .about(Error::new(ErrorKind::OutOfBounds, message))
        .with("counter", name)
        .with("delta", delta)
        .with("value", before);
    let bounds = addend.collection.counters.bounds(name).unwrap_or_default();
    let sum = i128::from(before) + i128::from(delta);
    match (bounds.min, bounds.max) {
        (Some(min), _) if sum < i128::from(min) => error.with("min", min),
        (_, Some(max)) if sum > i128::from(max) => error.with("max", max),
        _ => error,
    }
}
