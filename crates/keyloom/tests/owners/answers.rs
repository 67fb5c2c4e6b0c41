//! Answers as text that is the same for the same answer: without versions and seals, which are
//! different each time.

use std::collections::BTreeMap;

use keyloom::{
    Counted, Counters, Document, Error, GroupPage, GroupTotal, HistoryEntry, Key, Listing, Load,
    Nearby, OwnedKey, Page, Result, Stored, TopGroups, Version, Written,
};
use serde_json::Value;

/// An answer without what is drawn at random.
pub trait Told {
    fn told(&self) -> String;
}

impl Told for Error {
    fn told(&self) -> String {
        let context: Vec<_> = self.context().filter(|(name, _)| *name != "version").collect();
        let carried = (self.holder(), self.current().told());
        format!("{:?} {} {:?} {context:?} {carried:?}", self.kind(), self.message(), self.fate())
    }
}

impl<T: Told> Told for Result<T> {
    fn told(&self) -> String {
        match self {
            Ok(answer) => answer.told(),
            Err(error) => error.told(),
        }
    }
}

impl<T: Told> Told for Option<T> {
    fn told(&self) -> String {
        self.as_ref().map_or_else(|| "nothing".to_owned(), Told::told)
    }
}

impl<T: Told> Told for &T {
    fn told(&self) -> String {
        (**self).told()
    }
}

impl<T: Told> Told for Vec<T> {
    fn told(&self) -> String {
        self.iter().map(Told::told).collect::<Vec<_>>().join(", ")
    }
}

impl Told for Stored<Value> {
    fn told(&self) -> String {
        format!("{}: {} (revision {})", self.key, self.value, self.version.revision())
    }
}

impl Told for Document {
    fn told(&self) -> String {
        format!("{}: {}", self.key, self.json().unwrap())
    }
}

impl Told for Counters {
    fn told(&self) -> String {
        format!("{}: {:?}", self.key, self.values)
    }
}

impl Told for Version {
    fn told(&self) -> String {
        format!("revision {}", self.revision())
    }
}

impl Told for Load {
    fn told(&self) -> String {
        let refused = self.refused.iter().map(|one| format!("{} {}", one.place, one.error.told()));
        format!("{} of {}: {:?}", self.inserted, self.refused_count, refused.collect::<Vec<_>>())
    }
}

impl Told for Written<Value> {
    fn told(&self) -> String {
        format!("{:?} {}", self.effect, self.clone().into_document().told())
    }
}

impl<R: Told> Told for Nearby<R> {
    fn told(&self) -> String {
        format!("{} at {}", self.record.told(), self.distance_m)
    }
}

impl<R: Told> Told for Page<R> {
    fn told(&self) -> String {
        // Freshness tells of changes, and nothing of what is in the page.
        let Page { records, next, previous, stopped, read, problems, swept_until, freshness: _ } =
            self;
        let cursors = (next.is_some(), previous.is_some());
        format!("[{}] {cursors:?} {stopped:?} {read} {problems:?} {swept_until:?}", records.told())
    }
}

impl Told for HistoryEntry<Value> {
    fn told(&self) -> String {
        let HistoryEntry { version, kind, by, key, renamed_from, record, changes, .. } = self;
        let version = version.revision();
        format!("{version} {kind:?} {by:?} {key} {renamed_from:?} {record:?} {changes:?}")
    }
}

impl Told for Listing {
    fn told(&self) -> String {
        let keys: Vec<_> = self.entries.iter().map(|entry| (&entry.key, &entry.value)).collect();
        format!("{keys:?} {} {:?} {:?}", self.next.is_some(), self.stopped, self.problems)
    }
}

impl Told for Key {
    fn told(&self) -> String {
        self.to_string()
    }
}

impl Told for String {
    fn told(&self) -> String {
        self.clone()
    }
}

macro_rules! shown {
    ($($kind:ty),*) => {$(
        impl Told for $kind {
            fn told(&self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}

shown!((), Counted, GroupTotal, TopGroups, OwnedKey, Value, bool, i64, usize, bytes::Bytes, BTreeMap<String, i64>);

impl Told for GroupPage {
    fn told(&self) -> String {
        format!("{:?} {} {:?}", self.groups, self.next.is_some(), self.swept_until)
    }
}

/// What was there, and in no other respect.
pub fn is_there<T>(answer: Result<Option<T>>) -> Result<bool> {
    answer.map(|found| found.is_some())
}
