//! Ranges of keys within one kind.

use super::decode::Rest;
use super::parts::Writer;
use super::{OwnKind, TIME_MAX, trace_text};
use crate::engine::{Area, Range, Stamp, after_prefix};

/// What begins the words of versions and of traces.
const HISTORY: &str = "history:";

/// Keys that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnRange<'r> {
    /// The versions and traces of all histories, and what only begins like them.
    Histories,
    /// The tasks of one kind.
    Tasks { kind: &'r str },
    /// The cells or marks of an aggregate, of every generation.
    Aggregate { kind: OwnKind, collection: &'r str, name: &'r str },
    /// The cells or marks of one generation.
    Generation { kind: OwnKind, collection: &'r str, name: &'r str, generation: u32 },
    /// The cells of the groups that begin so.
    Groups { collection: &'r str, name: &'r str, generation: u32, groups: &'r [u8] },
    /// The versions of the incarnation of this one, in order, from one revision to another, both
    /// included.
    Versions { collection: &'r str, of: Stamp, first: u64, last: u64 },
    /// The traces under a record's key that were left after this time, in order of time.
    Traces { collection: &'r str, record: &'r [u8], after: Option<u64> },
}

impl<'r> OwnRange<'r> {
    pub(crate) fn range(&self) -> Range {
        match *self {
            OwnRange::Histories => Range::prefix(Area::own(), HISTORY),
            OwnRange::Tasks { kind } => prefix(Writer::of(OwnKind::Task).name(kind)),
            OwnRange::Aggregate { kind, collection, name } => {
                prefix(Writer::of(kind).name(collection).name(name))
            }
            OwnRange::Generation { kind, collection, name, generation } => {
                prefix(of_generation(kind, collection, name, generation).colon())
            }
            OwnRange::Groups { collection, name, generation, groups } => {
                let kind = OwnKind::AggregateCell;
                prefix(of_generation(kind, collection, name, generation).text(groups))
            }
            OwnRange::Versions { collection, of, first, last } => {
                let versions =
                    || Writer::of(OwnKind::HistoryVersion).name(collection).incarnation(of).colon();
                let start = versions().revision(first).into_bytes();
                let end = match last.checked_add(1) {
                    Some(end) => Some(versions().revision(end).into_bytes()),
                    None => after_prefix(&versions().into_bytes()),
                };
                Range { area: Area::own(), start, end }
            }
            OwnRange::Traces { collection, record, after } => {
                let record = trace_text(collection, record);
                let traces =
                    || Writer::of(OwnKind::HistoryTrace).name(collection).any_text(&record).colon();
                let all = prefix(traces());
                match after {
                    None => all,
                    Some(after) if after < TIME_MAX => {
                        Range { start: traces().time(after + 1).into_bytes(), ..all }
                    }
                    // Nothing is after the highest time.
                    Some(_) => Range { start: all.end.clone().unwrap_or_default(), ..all },
                }
            }
        }
    }

    /// The generation in whose range a key lies. What lies there need not be a key of it.
    pub(crate) fn generation_of(key: &'r [u8]) -> Option<Self> {
        let kind = OwnKind::of(key)?;
        if !matches!(kind, OwnKind::AggregateCell | OwnKind::AggregateMark) {
            return None;
        }
        let mut rest = Rest(&key[kind.words().len()..]);
        let (collection, name) = (rest.name()?, rest.name()?);
        let generation = rest.generation()?;
        Some(OwnRange::Generation { kind, collection, name, generation })
    }
}

fn prefix(start: Writer) -> Range {
    Range::prefix(Area::own(), start.into_bytes())
}

fn of_generation(kind: OwnKind, collection: &str, name: &str, generation: u32) -> Writer {
    Writer::of(kind).name(collection).name(name).number(u64::from(generation))
}
