//! Lists every key that one record owns, as stored.

use bytes::Bytes;

use super::collection::{Collection, if_there, key_of};
use super::fields::KeyFields;
use crate::engine::{Address, Cell, Content, Direction, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::own::own_address;
use crate::schema::{Collection as Declared, Index};
use crate::side::{Current, counter_address, lease_address, versions_of};
use crate::space::{Loaded, Retry};
use crate::write::{self, Image, Lenience, entries_of};

/// How many versions of a record's history are listed; the newest.
const HISTORY_MAX: usize = 100;

/// A key that a record owns: its own, an index entry's, or one beside the record. All of them come
/// and go with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnedKey {
    /// The area that it lies in; empty for the default one, `~` for Keyloom's own.
    pub area: String,
    /// The key as people read it: bytes that are not text are shown as `\xNN`.
    pub key: String,
    /// Its value as text; integers as JSON. If the key is missing, the value that it should have.
    pub value: String,
    /// How the record uses the key.
    pub kind: OwnedKind,
    /// Whether the key was just found in the store with the right value.
    pub is_present: bool,
}

/// How a record uses a key that it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnedKind {
    /// The record itself.
    Record,
    /// An index entry. It is missing from the store only if something went wrong.
    Entry {
        /// The index.
        index: String,
    },
    /// The counters beside the record, if there are any.
    Counters,
    /// One version of the record's history.
    History,
    /// A worker's lease on one of the record's entries.
    Lease {
        /// The index of that entry.
        index: String,
    },
    /// Marks a record that an aggregate has already counted, while the aggregate is counted anew.
    Mark {
        /// The aggregate.
        aggregate: String,
    },
}

/// A key that a record should have, or may have.
struct Wanted {
    address: Address,
    kind: OwnedKind,
    /// The value that it should have; `None` for keys that may be absent.
    expected: Option<Bytes>,
}

impl<T> Collection<T> {
    /// Every key that the record with this key owns, as stored: the record, its entries in every
    /// maintained index, its counters, its leases, and the newest 100 versions of its history. On
    /// engines that read snapshots, everything but the history comes from one snapshot. `None` if
    /// there is no such record, or if the acting user may not see it.
    ///
    /// An acting user sees the record and its entries in the indexes that serve them, and nothing
    /// of Keyloom's own area.
    pub async fn owned_keys(&self, key: impl KeyFields) -> Result<Option<Vec<OwnedKey>>> {
        let values = key.into_values();
        let retry = Retry::eager();
        for made in 1.. {
            let loaded = self.session.live.loaded().await?;
            let declared = loaded.schema.collection(&self.name)?;
            let Some(key) = if_there(key_of(&self.session, declared, &values))? else {
                return Ok(None);
            };
            let Some(current) = write::read(&self.session, declared, &key).await? else {
                return Ok(None);
            };
            let wanted = self.wanted(&loaded, declared, &key, &current)?;
            let addresses: Vec<Address> = wanted.iter().map(|it| it.address.clone()).collect();
            let cells = self.session.live.get(&addresses).await?;
            let record = cells.first().and_then(Option::as_ref);
            // If the record has changed meanwhile, these entries belong to another version.
            if record.is_some_and(|cell| cell.stamp == current.version.stamp()) {
                let found = wanted.into_iter().zip(cells).filter_map(|(it, cell)| it.found(cell));
                let mut owned: Vec<OwnedKey> = found.collect();
                owned.extend(self.versions(declared, &current).await?);
                return Ok(Some(owned));
            }
            if !retry.pause(made).await {
                break;
            }
        }
        let message = "the record changed at every attempt to read it with its keys";
        Err(Error::new(ErrorKind::Contention, message).with("collection", &*self.name))
    }

    /// The keys to look for, the record's own first.
    fn wanted(
        &self,
        loaded: &Loaded,
        declared: &Declared,
        key: &Bytes,
        current: &Current,
    ) -> Result<Vec<Wanted>> {
        let record = Address::new(declared.area.clone(), key.clone());
        let expected = Some(current.text.clone());
        let mut wanted = vec![Wanted { address: record, kind: OwnedKind::Record, expected }];
        let image = Image { key, value: &current.value, text: &current.text };
        let is_shown =
            |index: &Index| loaded.is_maintained(declared, index) && self.may_see(declared, index);
        let entries = entries_of(declared, is_shown, image, Lenience::Lenient)?;
        let mut beside = Vec::new();
        for entry in entries {
            let index = entry.index.name.clone();
            beside.push(Wanted::beside(
                lease_address(&declared.name, &index, &entry.key),
                OwnedKind::Lease { index: index.clone() },
            ));
            let address = Address::new(entry.index.area.clone(), entry.key);
            let (kind, expected) = (OwnedKind::Entry { index }, Some(entry.value));
            wanted.push(Wanted { address, kind, expected });
        }
        if self.session.actor().is_some() {
            return Ok(wanted);
        }
        let counters = counter_address(declared, key);
        wanted.extend(counters.map(|address| Wanted::beside(address, OwnedKind::Counters)));
        wanted.extend(beside);
        for aggregate in declared.aggregates.values() {
            for (generation, is_counting) in loaded.maintained(aggregate) {
                if is_counting {
                    let kind = OwnedKind::Mark { aggregate: aggregate.name.clone() };
                    wanted.push(Wanted::beside(aggregate.mark(generation.number, key), kind));
                }
            }
        }
        Ok(wanted)
    }

    fn may_see(&self, declared: &Declared, index: &Index) -> bool {
        let is_user = self.session.actor().is_some();
        !(is_user && index.is_own()) && self.session.confine(declared, Some(index)).is_ok()
    }

    /// The newest versions of the record's history.
    async fn versions(&self, declared: &Declared, current: &Current) -> Result<Vec<OwnedKey>> {
        if declared.history.is_none() || self.session.actor().is_some() {
            return Ok(Vec::new());
        }
        let range = versions_of(&declared.name, current.version, 1, u64::MAX);
        let live = &self.session.live;
        let found = live.scan_one(&range, HISTORY_MAX, Direction::Backward).await?;
        let owned = found.rows.into_iter().filter_map(|row| {
            Wanted::beside(own_address(row.key), OwnedKind::History).found(Some(row.cell))
        });
        Ok(owned.collect())
    }
}

impl Wanted {
    /// A key that may be absent.
    fn beside(address: Address, kind: OwnedKind) -> Self {
        Wanted { address, kind, expected: None }
    }

    /// The key as it was found; `None` for a key that may be absent and is.
    fn found(self, cell: Option<Cell>) -> Option<OwnedKey> {
        let Wanted { address, kind, expected } = self;
        let is_present = match (&cell, &expected) {
            (Some(cell), Some(expected)) => cell.bytes() == Some(expected),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return None,
        };
        let value = match cell.map(|cell| cell.content) {
            Some(content) => content_text(&content),
            None => expected.map(|bytes| bytes_text(&bytes)).unwrap_or_default(),
        };
        let (area, key) = (address.area.name().to_owned(), ShowKey(&address.key).to_string());
        Some(OwnedKey { area, key, value, kind, is_present })
    }
}

/// The content of a cell, for people to read.
pub(super) fn content_text(content: &Content) -> String {
    match content {
        Content::Bytes(bytes) => bytes_text(bytes),
        // Names and numbers can always be written as JSON.
        Content::Integers(integers) => serde_json::to_string(integers).unwrap_or_default(),
    }
}

fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => ShowKey(bytes).to_string(),
    }
}
