//! What a commit is asked to do: changes of records, what they rest on, and why they are refused.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::counters::{Counted, Counting, Fetched, NO_COUNTING};
use super::leases::LeaseHold;
use crate::engine::{Address, Cell, Integers, ShowKey, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Document, Version, check_size, read_record, show, shown};
use crate::schema::{Collection, Index};

/// A record as it was read from the store.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    pub(crate) version: Version,
    pub(crate) value: Value,
    pub(crate) text: Bytes,
    /// What was counted beside it, if anything.
    pub(crate) counted: Option<Counted>,
}

impl Current {
    /// What is at the key of a record. If it is no record, or one of another key, nobody can tell
    /// from it which entries it has, so that it must not be written over.
    pub(crate) fn from_cell(
        collection: &Collection,
        key: &Bytes,
        cell: &Cell,
        counted: Option<Counted>,
    ) -> Result<Self> {
        let (value, text) = read_record(collection, key, cell).map_err(|reason| {
            let message = "a stored record cannot be read; it can only be deleted";
            Error::new(ErrorKind::Corrupt, message)
                .with("collection", &collection.name)
                .with("key", ShowKey(key))
                .with("reason", reason)
        })?;
        Ok(Current { version: Version::from_stamp(cell.stamp), value, text, counted })
    }

    /// The record that was fetched, if it was there.
    pub(crate) fn of(
        collection: &Collection,
        key: &Bytes,
        fetched: Fetched,
    ) -> Result<Option<Self>> {
        let Fetched { cell, counted } = fetched;
        cell.map(|cell| Current::from_cell(collection, key, &cell, counted)).transpose()
    }

    pub(crate) fn into_before(self) -> Before {
        Before::Read { version: self.version, value: self.value, text: self.text }
    }

    /// The record as it is read, with its counters.
    pub(crate) fn document(&self, collection: &Collection, key: &Bytes) -> Document {
        let document = Document::new(key.clone(), self.version, self.text.clone());
        shown(&collection.counters, document, self.values())
    }

    /// The record with its counters in place, as a program sees it.
    pub(crate) fn seen(&self, collection: &Collection) -> Value {
        let mut value = self.value.clone();
        show(&collection.counters, &mut value, self.values());
        value
    }

    /// What was counted.
    pub(crate) fn values(&self) -> Option<&Integers> {
        self.counted.as_ref().map(|counted| &counted.values)
    }
}

/// What is known of a record before it changes.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    /// It must not be there: it is being created.
    Absent,
    /// It was looked for, and was not there.
    SeenAbsent,
    /// It was read in this state, and must still be in it.
    Read {
        /// The version that was read.
        version: Version,
        /// The record that was read.
        value: Value,
        /// Its JSON text.
        text: Bytes,
    },
    /// It was read in this state, had expired, and must still be in it. To everybody it is absent:
    /// with the change it ends, and what comes after it, if anything, is another record.
    Expired(Current),
}

impl Before {
    /// What lies in the store, if anything does.
    pub(crate) fn there(&self) -> Option<(Version, &Value, &Bytes)> {
        match self {
            Before::Absent | Before::SeenAbsent => None,
            Before::Read { version, value, text }
            | Before::Expired(Current { version, value, text, .. }) => {
                Some((*version, value, text))
            }
        }
    }
}

/// One record that changes: with an `after` it is written, without it is deleted.
#[derive(Clone, Debug)]
pub(crate) struct Change<'v> {
    pub(crate) collection: Arc<Collection>,
    pub(crate) key: Bytes,
    pub(crate) before: Before,
    pub(crate) after: Option<After<'v>>,
}

/// What a record becomes. Its JSON may still be its writer's.
#[derive(Clone, Debug)]
pub(crate) struct After<'v> {
    pub(crate) version: Version,
    pub(crate) value: Cow<'v, Value>,
    pub(crate) text: Bytes,
    /// What its writer saw counted beside it, for the answer.
    pub(crate) counted: Option<Counted>,
}

impl<'v> After<'v> {
    /// A record about to be written.
    pub(crate) fn new(
        collection: &Collection,
        version: Version,
        value: Cow<'v, Value>,
    ) -> Result<Self> {
        let text = record_text(&value);
        After::with_text(collection, version, value, text)
    }

    /// The same for one whose text is at hand.
    pub(crate) fn with_text(
        collection: &Collection,
        version: Version,
        value: Cow<'v, Value>,
        text: Bytes,
    ) -> Result<Self> {
        check_size(collection, &text)?;
        Ok(After { version, value, text, counted: None })
    }

    /// The record as its writer hears of it.
    pub(crate) fn document(&self, collection: &Collection, key: &Bytes) -> Document {
        let document = Document::new(key.clone(), self.version, self.text.clone());
        let counted = self.counted.as_ref().map(|counted| &counted.values);
        shown(&collection.counters, document, counted)
    }
}

/// A record as JSON text, in a buffer that is long enough for most.
pub(crate) fn record_text(value: &Value) -> Bytes {
    const TYPICAL_BYTES: usize = 512;
    let mut text = Vec::with_capacity(TYPICAL_BYTES);
    // JSON that is in memory is written into memory: neither can fail.
    let _ = serde_json::to_writer(&mut text, value);
    text.into()
}

impl Change<'_> {
    /// Where the record lies.
    pub(crate) fn address(&self) -> Address {
        Address::new(self.collection.area.clone(), self.key.clone())
    }

    /// Whether it only removes a record that has expired.
    pub(crate) fn is_expiry(&self) -> bool {
        matches!((&self.before, &self.after), (Before::Expired(_), None))
    }

    /// The end of a record that has expired.
    pub(crate) fn expiry(collection: &Arc<Collection>, key: Bytes, record: Current) -> Self {
        let collection = collection.clone();
        Change { collection, key, before: Before::Expired(record), after: None }
    }

    /// The version after the change, if the record is there then.
    pub(crate) fn version(&self) -> Option<Version> {
        self.after.as_ref().map(|after| after.version)
    }
}

/// What one commit is asked to do.
#[derive(Clone, Copy)]
pub(crate) struct Work<'w> {
    /// The records that change, each once.
    pub(crate) changes: &'w [Change<'w>],
    /// Cells that must still be as they were read; those that a change writes itself are covered
    /// by the change.
    pub(crate) reads: &'w [(Address, Option<Stamp>)],
    /// The leases under which it is done.
    pub(crate) leases: &'w [LeaseHold],
    /// What is done to counters.
    pub(crate) counting: &'w Counting,
}

impl<'w> Work<'w> {
    /// Changes that rest on nothing but what they know of their own records.
    pub(crate) fn of(changes: &'w [Change<'w>]) -> Self {
        Work { changes, reads: &[], leases: &[], counting: &NO_COUNTING }
    }
}

/// Why a batch was rejected, in terms of records.
pub(crate) enum Refused {
    /// A record that was read has changed; reading it again may help.
    Changed(Error),
    /// Counters that were read have changed, and are this now.
    Counted(Error, Option<Counted>),
    /// Another record holds this key of this index.
    Taken(Arc<Index>, Address, Error),
    /// Trying again does not help.
    Final(Error),
}
