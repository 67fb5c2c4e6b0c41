//! The history of the records that a commit changes: one cell for each new version, and a trace
//! where a record is no longer. None of them needs a read or a condition: the condition on the
//! record makes the revision this commit's own.

use bytes::Bytes;

use super::keys::{Trace, trace_address, version_address};
use super::past::{HistoryKind, Past};
use crate::engine::{Address, Effect};
use crate::error::{Error, ErrorKind};
use crate::record::Version;
use crate::schema::HistoryDeclaration;
use crate::side::kind::{CellRole, SideCell};
use crate::side::work::{Before, Change, Refused};
use crate::space::Session;

static ROLE: CellRole = CellRole::explained(|_, _, _| {
    Refused::Final(Error::new(ErrorKind::Internal, "a cell without a condition failed one"))
});

pub(super) fn cells(session: &Session, changes: &[Change<'_>], cells: &mut Vec<SideCell>) {
    if changes.iter().all(|change| change.collection.history.is_none()) {
        return;
    }
    // One commit is one moment, also where it moves a record from one key to another.
    let now = session.now();
    let kept = changes.iter().filter_map(|change| Some((change, change.collection.history?)));
    cells
        .extend(kept.flat_map(|(change, bounds)| of_change(session, now, changes, change, bounds)));
}

fn of_change(
    session: &Session,
    now: u64,
    changes: &[Change<'_>],
    change: &Change<'_>,
    bounds: HistoryDeclaration,
) -> Vec<SideCell> {
    let name = &change.collection.name;
    let past = |kind, before| Past {
        at: now,
        by: session.actor().map(str::to_owned),
        kind,
        key: text(&change.key),
        from: None,
        before,
    };
    let trace = |version| {
        let address = trace_address(name, &change.key, Trace { at: now, version });
        let key = serde_json::Value::String(text(&change.key)).to_string();
        put(address, version, key.into())
    };
    let ended = |kind, version: Version, before: &Bytes| {
        let (end, mut past) = (version.next(), past(kind, Some(before.clone())));
        // Time ends what expires, whoever was in want of its place.
        past.by = past.by.filter(|_| kind != HistoryKind::Expired);
        version_cells(name, end, &past, bounds).chain([trace(end)]).collect::<Vec<_>>()
    };
    let began = |version: Version| {
        let past = match origin(changes, change, version) {
            None => past(HistoryKind::Created, None),
            Some((from, before)) => Past {
                from: Some(text(&from.key)),
                ..past(HistoryKind::Renamed, Some(before.clone()))
            },
        };
        version_cells(name, version, &past, bounds).collect::<Vec<_>>()
    };
    match (&change.before, &change.after) {
        // A record that came and went within one transaction leaves no trace.
        (Before::Absent | Before::SeenAbsent, None) => Vec::new(),
        (Before::Absent | Before::SeenAbsent, Some(after)) => began(after.version),
        (Before::Read { version, text, .. }, None) => {
            match continuation(changes, change, *version) {
                // The new key has the version; only the trace is left here.
                Some(moved) => vec![trace(moved)],
                None => ended(HistoryKind::Deleted, *version, text),
            }
        }
        (Before::Read { version, text, .. }, Some(after))
            if after.version.is_same_incarnation(*version) =>
        {
            let past = past(HistoryKind::Updated, Some(text.clone()));
            version_cells(name, after.version, &past, bounds).collect()
        }
        // It was deleted, and another record began at its key, in one transaction.
        (Before::Read { version, text, .. }, Some(after)) => {
            let mut cells = ended(HistoryKind::Deleted, *version, text);
            cells.extend(began(after.version));
            cells
        }
        (Before::Expired(current), after) => {
            let mut cells = ended(HistoryKind::Expired, current.version, &current.text);
            cells.extend(after.iter().flat_map(|after| began(after.version)));
            cells
        }
    }
}

/// The cell of a new version; and where versions are counted, the end of the one that is too many.
fn version_cells(
    collection: &str,
    version: Version,
    past: &Past,
    bounds: HistoryDeclaration,
) -> impl Iterator<Item = SideCell> {
    let made = put(version_address(collection, version), version, past.to_bytes());
    let kept = bounds.versions.and_then(|kept| u64::try_from(kept).ok());
    let oldest = kept.and_then(|kept| version.revision().checked_sub(kept));
    let gone = oldest.filter(|revision| *revision > 0).map(|revision| SideCell {
        address: version_address(collection, version.at_revision(revision)),
        condition: None,
        effect: Some(Effect::Delete),
        role: &ROLE,
        number: 0,
    });
    std::iter::once(made).chain(gone)
}

fn put(address: Address, version: Version, bytes: Bytes) -> SideCell {
    let effect = Some(Effect::Put { stamp: version.stamp(), bytes });
    SideCell { address, condition: None, effect, role: &ROLE, number: 0 }
}

/// The version in which a record that ends here goes on at another key of the same batch.
fn continuation(changes: &[Change<'_>], end: &Change<'_>, version: Version) -> Option<Version> {
    let goes_on = |change: &Change<'_>| {
        let after = change.version().filter(|after| after.is_same_incarnation(version))?;
        (change.collection.name == end.collection.name && change.key != end.key).then_some(after)
    };
    changes.iter().find_map(goes_on)
}

/// The end, at another key of the same batch, of a record that goes on here, and what it was.
fn origin<'c>(
    changes: &'c [Change<'_>],
    here: &Change<'_>,
    version: Version,
) -> Option<(&'c Change<'c>, &'c Bytes)> {
    changes.iter().find_map(|change| match &change.before {
        Before::Read { version: ended, text, .. }
            if change.after.is_none()
                && ended.is_same_incarnation(version)
                && change.collection.name == here.collection.name =>
        {
            Some((change, text))
        }
        _ => None,
    })
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
