//! Every key in Keyloom's own area `~`, as one enum.
//!
//! | kind | key | example |
//! | --- | --- | --- |
//! | catalog | `catalog` | `catalog` |
//! | epoch | `epoch` | `epoch` |
//! | task | `task:{kind}:{collection}:{name}` | `task:build:note:by_day` |
//! | notes of a task | `task:{kind}:{collection}:{name}:{page}` | `task:verify:::0000` |
//! | counters | `counter:{area}:{key}`, the area and the key of the record | `counter::flow:stats:mail` |
//! | cell of an aggregate | `aggregate:{collection}:{name}:{generation}{group}{number}` | `aggregate:run:seconds:1:nightly!:done!:0` |
//! | mark of an aggregate | `aggregate-mark:{collection}:{name}:{generation}:{hash}`, of the record's key | `aggregate-mark:run:seconds:2:9f86d0…` |
//! | version of a history | `history:version:{collection}:{incarnation}:{revision}` | `history:version:note:0199c0e2a1b27f3c…:00000000000000000003` |
//! | trace of a history | `history:left:{collection}:{text}:{time}:{incarnation}:{revision}`, the text is the record's key | `history:left:note:note%3A1:1700000000000:0199c0e2a1b27f3c…:00000000000000000004` |
//! | lease | `lease:{collection}:{index}:{hash}`, of the entry's key | `lease:flow:due:9f86d0…` |
//! | idempotency key | `idempotency:{text}:{text}`, the acting user and the key | `idempotency:ana:order-17` |
//! | the same, too long | `idempotency:%sha256.{hash}`, of both | `idempotency:%sha256.9f86d0…` |
//! | end of a record | `expiry:{collection}:{entry}`, as the index over the ends says | `expiry:note:1700000000000:note:1` |
//!
//! | part | form | example |
//! | --- | --- | --- |
//! | a name, an area | as declared; it has no `:` | `note` |
//! | generation, number | decimal, without leading zeros | `12` |
//! | group | a `:` before and behind each value of a group | `:nightly!:done!:` |
//! | page | decimal, at least 4 digits, so that pages lie in order | `0003` |
//! | incarnation | 32 lower-case hex digits | `0199c0e2a1b27f3c…` |
//! | revision | 20 digits, so that versions lie in order | `00000000000000000003` |
//! | time | milliseconds since 1970, 13 digits, so that traces lie in order | `1700000000000` |
//! | text | any bytes, `%XX` for `:`, `%` and control bytes; where a trace's key would be too long, `%sha256.` and a hash | `note%3A1` |
//! | hash | SHA-256, 64 lower-case hex digits | `9f86d0…` |
//!
//! No kind's first words begin those of another, so that the ranges of kinds are disjoint. An
//! escaped text never begins with `%sha256.`, since two upper-case hex digits follow each `%`.

mod decode;
mod parts;
mod ranges;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bytes::Bytes;

use self::parts::Writer;
pub(crate) use self::parts::{Digest, Text};
pub(crate) use self::ranges::OwnRange;
use crate::engine::{Address, Area, KEY_BYTES_MAX, Range, Stamp, after_prefix, percent, successor};

/// What a key in Keyloom's own area names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnKey<'k> {
    /// The schema, and the states of its indexes.
    Catalog,
    /// What readers of indexes compare the catalog's state with.
    Epoch,
    /// The progress of a task over the whole store.
    Task { kind: &'k str, collection: &'k str, name: &'k str },
    /// A page of what a task has found.
    TaskNotes { kind: &'k str, collection: &'k str, name: &'k str, page: u32 },
    /// The counters of a record.
    Counters { area: &'k str, record: &'k [u8] },
    /// A number of one group of an aggregate.
    AggregateCell {
        collection: &'k str,
        name: &'k str,
        generation: u32,
        group: &'k [u8],
        number: u16,
    },
    /// That a record is counted.
    AggregateMark { collection: &'k str, name: &'k str, generation: u32, record: Digest },
    /// One version of a record, which has this stamp.
    HistoryVersion { collection: &'k str, version: Stamp },
    /// Where a record was until the version with this stamp.
    HistoryTrace { collection: &'k str, record: Text<'k>, at: u64, version: Stamp },
    /// Who works on an entry of an index.
    Lease { collection: &'k str, index: &'k str, entry: Digest },
    /// The answer to the write of a user, empty for none, with an idempotency key.
    Answer { user: Cow<'k, [u8]>, key: Cow<'k, [u8]> },
    /// The same, of a user and a key that are too long together.
    HashedAnswer(Digest),
    /// An entry of the index over the ends of records.
    End { collection: &'k str, entry: &'k [u8] },
}

/// The kinds of keys, each with the words that begin it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnKind {
    Catalog,
    Epoch,
    Task,
    Counters,
    AggregateCell,
    AggregateMark,
    HistoryVersion,
    HistoryTrace,
    Lease,
    Answer,
    End,
}

/// The highest time that 13 digits hold.
pub(crate) const TIME_MAX: u64 = 9_999_999_999_999;

/// What follows the text in the key of a trace: time, incarnation and revision, each after a colon.
const TRACE_TAIL_BYTES: usize = 1 + 13 + 1 + 32 + 1 + 20;

impl OwnKind {
    pub(crate) const ALL: [Self; 11] = [
        OwnKind::Catalog,
        OwnKind::Epoch,
        OwnKind::Task,
        OwnKind::Counters,
        OwnKind::AggregateCell,
        OwnKind::AggregateMark,
        OwnKind::HistoryVersion,
        OwnKind::HistoryTrace,
        OwnKind::Lease,
        OwnKind::Answer,
        OwnKind::End,
    ];

    /// What every key of the kind begins with, and no other key.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            OwnKind::Catalog => "catalog",
            OwnKind::Epoch => "epoch",
            OwnKind::Task => "task:",
            OwnKind::Counters => "counter:",
            OwnKind::AggregateCell => "aggregate:",
            OwnKind::AggregateMark => "aggregate-mark:",
            OwnKind::HistoryVersion => "history:version:",
            OwnKind::HistoryTrace => "history:left:",
            OwnKind::Lease => "lease:",
            OwnKind::Answer => "idempotency:",
            OwnKind::End => "expiry:",
        }
    }

    /// Whether the words are the whole key.
    const fn is_one_key(self) -> bool {
        matches!(self, OwnKind::Catalog | OwnKind::Epoch)
    }

    /// The keys of the kind.
    pub(crate) fn range(self) -> Range {
        let start = Bytes::from_static(self.words().as_bytes());
        let end = if self.is_one_key() { Some(successor(&start)) } else { after_prefix(&start) };
        Range { area: Area::own(), start, end }
    }

    /// The kind in whose range a key of the own area lies.
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| match kind.is_one_key() {
            true => key == kind.words().as_bytes(),
            false => key.starts_with(kind.words().as_bytes()),
        })
    }
}

impl<'k> OwnKey<'k> {
    /// The trace of a record, whose time has 13 digits and whose key may be of any length.
    pub(crate) fn trace(collection: &'k str, record: &'k [u8], at: u64, version: Stamp) -> Self {
        let (record, at) = (trace_text(collection, record), at.min(TIME_MAX));
        OwnKey::HistoryTrace { collection, record, at, version }
    }

    /// Where the answer to a write is, however long the user and the key are.
    pub(crate) fn answer(user: &'k str, key: &'k str) -> Self {
        let (user, key) = (user.as_bytes(), key.as_bytes());
        let length = OwnKind::Answer.words().len()
            + percent::escaped_len(user, Some(b':'))
            + 1
            + percent::escaped_len(key, Some(b':'));
        match length > KEY_BYTES_MAX {
            // The length keeps `ab` and `c` apart from `a` and `bc`.
            true => {
                OwnKey::HashedAnswer(Digest::of(&[&(user.len() as u64).to_be_bytes(), user, key]))
            }
            false => OwnKey::Answer { user: user.into(), key: key.into() },
        }
    }

    pub(crate) fn kind(&self) -> OwnKind {
        match self {
            OwnKey::Catalog => OwnKind::Catalog,
            OwnKey::Epoch => OwnKind::Epoch,
            OwnKey::Task { .. } | OwnKey::TaskNotes { .. } => OwnKind::Task,
            OwnKey::Counters { .. } => OwnKind::Counters,
            OwnKey::AggregateCell { .. } => OwnKind::AggregateCell,
            OwnKey::AggregateMark { .. } => OwnKind::AggregateMark,
            OwnKey::HistoryVersion { .. } => OwnKind::HistoryVersion,
            OwnKey::HistoryTrace { .. } => OwnKind::HistoryTrace,
            OwnKey::Lease { .. } => OwnKind::Lease,
            OwnKey::Answer { .. } | OwnKey::HashedAnswer(_) => OwnKind::Answer,
            OwnKey::End { .. } => OwnKind::End,
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let key = Writer::of(self.kind());
        match self {
            OwnKey::Catalog | OwnKey::Epoch => key,
            OwnKey::Task { kind, collection, name } => {
                key.name(kind).name(collection).text(name.as_bytes())
            }
            OwnKey::TaskNotes { kind, collection, name, page } => {
                key.name(kind).name(collection).name(name).page(*page)
            }
            OwnKey::Counters { area, record } => key.name(area).text(record),
            OwnKey::AggregateCell { collection, name, generation, group, number } => key
                .name(collection)
                .name(name)
                .number(u64::from(*generation))
                .text(group)
                .number(u64::from(*number)),
            OwnKey::AggregateMark { collection, name, generation, record } => key
                .name(collection)
                .name(name)
                .number(u64::from(*generation))
                .colon()
                .digest(record),
            OwnKey::HistoryVersion { collection, version } => {
                key.name(collection).version(*version)
            }
            OwnKey::HistoryTrace { collection, record, at, version } => {
                key.name(collection).any_text(record).colon().time(*at).colon().version(*version)
            }
            OwnKey::Lease { collection, index, entry } => {
                key.name(collection).name(index).digest(entry)
            }
            OwnKey::Answer { user, key: of } => key.escaped(user).colon().escaped(of),
            OwnKey::HashedAnswer(digest) => key.hashed(digest),
            OwnKey::End { collection, entry } => key.name(collection).text(entry),
        }
        .into_bytes()
    }

    /// Where it lies.
    pub(crate) fn address(&self) -> Address {
        own_address(self.encode())
    }
}

/// A record's key as it stands in the keys of its traces.
fn trace_text<'r>(collection: &str, record: &'r [u8]) -> Text<'r> {
    let names = OwnKind::HistoryTrace.words().len() + collection.len() + 1;
    Text::within(KEY_BYTES_MAX.saturating_sub(names + TRACE_TAIL_BYTES), record)
}

/// Where a key of the own area lies.
pub(crate) fn own_address(key: Bytes) -> Address {
    Address::new(Area::own(), key)
}

/// Whether a key speaks of this store alone, as it is now. It is neither logged, nor exported, nor
/// part of a backup.
pub(crate) fn is_of_this_store(address: &Address) -> bool {
    address.area == Area::own() && address.key.starts_with(OwnKind::Task.words().as_bytes())
}
