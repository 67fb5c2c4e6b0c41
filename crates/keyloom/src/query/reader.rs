//! Gets records from the entries that a walk finds, and checks that the entries belong to them.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::page::{Problem, ProblemKind};
use super::plan::{Branch, Plan};
use super::walk::{Followed, Found};
use crate::engine::{Address, Cell, Reading, Row, ShowKey};
use crate::error::Result;
use crate::record::{Document, Version};
use crate::schema::{Collection, Holds, Index, followed_key_of};
use crate::space::Session;
use crate::write::stored_keys_of;

/// How often an entry and its record are read again before they count as inconsistent, on engines
/// that do not read them from one snapshot.
const RECHECKS: u32 = 9;

/// The pause before the first of these reads. Each further pause is twice as long: a quarter of a
/// second in all, for a batch that takes its time to become visible as a whole.
const RECHECK_PAUSE: Duration = Duration::from_micros(500);

/// The outcome of following an entry.
pub(super) enum Resolved {
    Record(Document),
    /// The entry no longer exists or was never completely visible, or its record has expired.
    Gone,
    Problem(Problem),
}

/// An entry and the cell at the key that it names, possibly read at different times.
pub(super) struct Doubt<'f> {
    index: &'f Index,
    entry: Bytes,
    key: Bytes,
    cell: Option<Cell>,
}

/// Gets records from the entries that a walk finds.
pub(super) struct Reader<'p> {
    session: &'p Session,
    plan: &'p Plan,
    /// The time of the whole answer: records that expired before it are left out.
    now: u64,
}

impl<'p> Reader<'p> {
    pub(super) fn new(session: &'p Session, plan: &'p Plan) -> Self {
        Reader { session, plan, now: session.now() }
    }

    /// Whether filters may drop records.
    pub(super) fn filters(&self) -> bool {
        self.plan.filters()
    }

    /// Whether a record passes the filters of the branch that found it.
    pub(super) fn passes(&self, branch: &Branch, document: &Document) -> Result<bool> {
        if branch.filters.is_empty() {
            return Ok(true);
        }
        let record: Value = document.json()?;
        Ok(branch.filters.iter().all(|filter| filter.passes(&record)))
    }

    /// The record's key, taken from the entry alone.
    pub(super) fn key_only(&self, found: &Found<'_>) -> Resolved {
        let key = match &found.branch.index {
            None => Some(found.entry.key.clone()),
            Some(index) => self.target(index, &found.entry.key, found.entry.cell.bytes()),
        };
        match key {
            Some(key) => {
                let version = Version::from_stamp(found.entry.cell.stamp);
                Resolved::Record(Document::new(key, version, Bytes::new()))
            }
            None => Resolved::Problem(malformed(&found.entry.key)),
        }
    }

    fn record(&self, key: Bytes, cell: &Cell) -> Resolved {
        match cell.bytes() {
            Some(text) if self.plan.collection.is_text_expired(text, self.now) => Resolved::Gone,
            Some(text) if std::str::from_utf8(&key).is_ok() => {
                let version = Version::from_stamp(cell.stamp);
                Resolved::Record(Document::new(key, version, text.clone()))
            }
            _ => Resolved::Problem(unreadable(&key, "it is not a record")),
        }
    }

    fn target(&self, index: &Index, key: &[u8], value: Option<&Bytes>) -> Option<Bytes> {
        let target = followed_key_of(&self.plan.collection, index, key, value?);
        target.filter(|key| self.admits(key))
    }

    /// Whether the caller may read the record that an entry leads to. A caller's own entry leads to
    /// a record of theirs, unless the entry is corrupt.
    fn admits(&self, key: &[u8]) -> bool {
        self.session.may_read(&self.plan.collection, key)
    }

    pub(super) async fn resolve(&self, found: Found<'_>) -> Result<Resolved> {
        match self.resolve_at_once(found) {
            Ok(resolved) => Ok(resolved),
            Err(doubt) => self.validate(doubt).await,
        }
    }

    /// Resolves an entry without further reads, if it can. On an engine that reads entries and
    /// records from one snapshot it always can, which is why this step is separate.
    pub(super) fn resolve_at_once<'f>(&self, found: Found<'f>) -> Result<Resolved, Box<Doubt<'f>>> {
        let Found { branch, entry, followed, .. } = found;
        let Some(index) = &branch.index else {
            return Ok(self.record(entry.key, &entry.cell));
        };
        let Followed { target, record: cell, in_one_call } = followed.unwrap_or_else(|| Followed {
            target: self.target(index, &entry.key, entry.cell.bytes()),
            record: None,
            in_one_call: false,
        });
        let Some(key) = target.filter(|key| self.admits(key)) else {
            return Ok(Resolved::Problem(malformed(&entry.key)));
        };
        if index.holds == Holds::Record {
            return Ok(self.record(key, &entry.cell));
        }
        let together =
            in_one_call && self.session.live.engine.capabilities().reading == Reading::Snapshot;
        match cell {
            Some(cell) if together && self.is_foreign(index, &entry, &cell) => {
                Ok(Resolved::Problem(wrong(&entry.key, &key)))
            }
            Some(cell) if together => Ok(self.record(key, &cell)),
            None if together => Ok(Resolved::Problem(dangling(&entry.key, &key))),
            cell => Err(Box::new(Doubt { index, entry: entry.key, key, cell })),
        }
    }

    /// Whether an entry does not belong to the record that was read with it, so that something else
    /// wrote it. Writers stamp an entry with the version of its record. So an entry of the record's
    /// own incarnation is trusted, and any other is compared with the entries that the record has.
    /// A record that cannot be decoded proves nothing here, and is reported as unreadable.
    fn is_foreign(&self, index: &Index, entry: &Row, record: &Cell) -> bool {
        let incarnation = Version::from_stamp(record.stamp);
        !incarnation.is_same_incarnation(Version::from_stamp(entry.cell.stamp))
            && value_of(record)
                .is_some_and(|value| !gives(&self.plan.collection, index, &value, &entry.key))
    }

    /// Accepts a record that has the entry that led to it. Otherwise reads both again, since they
    /// may have been read at different times.
    pub(super) async fn validate(&self, doubt: Box<Doubt<'_>>) -> Result<Resolved> {
        let Doubt { index, entry, mut key, mut cell } = *doubt;
        let (collection, entry) = (&self.plan.collection, &entry);
        for recheck in 0..=RECHECKS {
            if let Some(cell) = cell.take_if(|cell| has_entry(collection, index, entry, cell)) {
                return Ok(self.record(key, &cell));
            }
            if recheck == RECHECKS {
                break;
            }
            tokio::time::sleep(RECHECK_PAUSE * 2_u32.pow(recheck)).await;
            let both = [
                Address::new(index.area.clone(), entry.clone()),
                Address::new(collection.area.clone(), key.clone()),
            ];
            let mut cells =
                self.session.live.get_under(&self.plan.loaded, &both).await?.into_iter();
            let Some(entry_now) = cells.next().flatten() else { return Ok(Resolved::Gone) };
            match self.target(index, entry, entry_now.bytes()) {
                None => return Ok(Resolved::Problem(malformed(entry))),
                Some(target) if target == key => cell = cells.next().flatten(),
                // The unique value now belongs to another record, which the next turn reads.
                Some(target) => (key, cell) = (target, None),
            }
        }
        Ok(Resolved::Problem(match cell {
            None => dangling(entry, &key),
            Some(_) => wrong(entry, &key),
        }))
    }
}

/// Whether the record in the cell has this entry in the index.
pub(crate) fn has_entry(
    collection: &Collection,
    index: &Index,
    entry: &Bytes,
    cell: &Cell,
) -> bool {
    value_of(cell).is_some_and(|value| gives(collection, index, &value, entry))
}

/// The record in a cell; `None` if it cannot be decoded.
fn value_of(cell: &Cell) -> Option<Value> {
    serde_json::from_slice(cell.bytes()?).ok()
}

/// Whether a record with these values has this entry in the index.
fn gives(collection: &Collection, index: &Index, value: &Value, entry: &Bytes) -> bool {
    stored_keys_of(collection, index, value).is_ok_and(|keys| keys.contains(entry))
}

fn malformed(entry: &[u8]) -> Problem {
    Problem::new(ProblemKind::Unreadable, entry, "the entry does not name a record")
}

fn dangling(entry: &[u8], record: &[u8]) -> Problem {
    Problem::new(
        ProblemKind::Dangling,
        entry,
        format_args!("its record {} is not there", ShowKey(record)),
    )
}

fn wrong(entry: &[u8], record: &[u8]) -> Problem {
    Problem::new(
        ProblemKind::Wrong,
        entry,
        format_args!("its record {} does not have this entry", ShowKey(record)),
    )
}

pub(crate) fn unreadable(key: &[u8], reason: impl fmt::Display) -> Problem {
    Problem::new(ProblemKind::Unreadable, key, reason)
}
