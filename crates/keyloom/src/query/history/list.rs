//! The versions of a record, newest first.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::subject::{Subject, read};
use crate::engine::{Direction, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::query::cursor::{Binding, Cursor, Position, Question};
use crate::query::page::{Page, Problem, ProblemKind, Stopped};
use crate::query::predicate::TAKE_MAX;
use crate::record::{Document, Version};
use crate::schema::Collection;
use crate::side::{Difference, HistoryKind, Past, Trace, trace_address, trace_of};
use crate::space::Session;

/// One version of a record, as its history has it.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry<R> {
    /// The version. That of a deletion is one more than the last of the record.
    pub version: Version,
    /// How it came about.
    pub kind: HistoryKind,
    /// When, in milliseconds since 1970, by the clock of the store that wrote it.
    pub at_ms: u64,
    /// The acting user, if there was one.
    pub by: Option<String>,
    /// The record's key then: the new one of a rename.
    pub key: String,
    /// The old key of a rename.
    pub renamed_from: Option<String>,
    /// The record as the version left it. `None` for an end, and for a rename that is listed under
    /// the old key.
    pub record: Option<R>,
    /// What the version changed, unless it created or ended the record.
    pub changes: Vec<Difference>,
}

impl<R> HistoryEntry<R> {
    /// The same with the record as something else.
    pub(crate) fn map<S, E>(
        self,
        turn: impl FnOnce(R) -> Result<S, E>,
    ) -> Result<HistoryEntry<S>, E> {
        let HistoryEntry { version, kind, at_ms, by, key, renamed_from, record, changes } = self;
        let record = record.map(turn).transpose()?;
        Ok(HistoryEntry { version, kind, at_ms, by, key, renamed_from, record, changes })
    }
}

/// Where a listing is.
#[derive(Clone, Debug, PartialEq)]
struct ListPosition {
    /// The last version of the stretch, and when the record left the key with it. For a record
    /// that is there, a time after all traces.
    trace: Trace,
    /// The lowest version that was listed; `None` at the start of the stretch.
    listed: Option<u64>,
    /// What the last version left, for a record that is there.
    text: Option<Bytes>,
}

/// A page of the versions of the record at a key, newest first. Records that were there before
/// it follow.
pub(crate) async fn history(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    take: usize,
    cursor: Option<&str>,
) -> Result<Page<HistoryEntry<Document>>> {
    if !(1..=TAKE_MAX).contains(&take) {
        return Err(Error::new(ErrorKind::InvalidQuery, "a page takes 1 to 10000 versions")
            .with("collection", name)
            .with("take", take));
    }
    let subject = Subject::new(session, name, key).await?;
    let binding = Arc::new(bind(&subject));
    let place = match cursor {
        Some(text) => Some(open(&subject, text, &binding)?),
        None => first(&subject).await?,
    };
    let mut listing =
        Listing { subject: &subject, take, entries: Vec::new(), problems: Vec::new() };
    let mut read = 0;
    let mut next = place;
    let mut stopped = Stopped::End;
    let mut left_off = None;
    while let Some(mut place) = next {
        match listing.stretch(&mut place, &mut read).await? {
            Stretched::Full => {
                stopped = Stopped::Take;
                left_off = Some(place);
                break;
            }
            Stretched::Over => next = older(&subject, &place).await?,
        }
    }
    let next = left_off.map(|place| Cursor::new(position(&subject, &place), binding));
    let Listing { entries, problems, .. } = listing;
    Ok(Page { records: entries, next, stopped, read, problems, ..Page::nothing() })
}

/// Where the listing of a key starts; `None` when nothing is known of it.
async fn first(subject: &Subject<'_>) -> Result<Option<ListPosition>> {
    let retry = subject.patience();
    for made in 1.. {
        let cell = subject.get(&[subject.record_address()]).await?.pop().flatten();
        let Some(present) = Subject::present(cell.as_ref()) else { break };
        let version = present.version;
        let revisions = (version.revision(), version.revision());
        let (rows, _) = subject.versions(version, revisions, 1, Direction::Forward).await?;
        // The version may not show yet where cells of one answer are of different moments.
        if rows.is_empty() && retry.pause(made).await {
            continue;
        }
        let newest = subject.trace_before(None).await?.map_or(0, |trace| trace.at);
        let at = newest.max(subject.session.now()).saturating_add(1);
        let text = (!rows.is_empty()).then_some(present.text);
        return Ok(Some(ListPosition { trace: Trace { at, version }, listed: None, text }));
    }
    let trace = subject.trace_before(None).await?;
    Ok(trace.map(|trace| ListPosition { trace, listed: None, text: None }))
}

/// The stretch before this one.
async fn older(subject: &Subject<'_>, place: &ListPosition) -> Result<Option<ListPosition>> {
    let address = |trace| trace_address(subject.name(), &subject.key, trace);
    let mut later = address(place.trace);
    while let Some(trace) = subject.trace_before(Some(&later)).await? {
        // A record that left since the listing began was listed as one that is there.
        let is_listed = trace.version.is_same_incarnation(place.trace.version)
            && trace.version > place.trace.version;
        if !is_listed {
            return Ok(Some(ListPosition { trace, listed: None, text: None }));
        }
        later = address(trace);
    }
    Ok(None)
}

/// What came of a stretch.
enum Stretched {
    /// The page is full, and there is more.
    Full,
    /// There is nothing more in it.
    Over,
}

struct Listing<'l> {
    subject: &'l Subject<'l>,
    take: usize,
    entries: Vec<HistoryEntry<Document>>,
    problems: Vec<Problem>,
}

impl Listing<'_> {
    /// Lists the versions of one stretch from where it is.
    async fn stretch(
        &mut self,
        place: &mut ListPosition,
        read_count: &mut usize,
    ) -> Result<Stretched> {
        let subject = self.subject;
        let last = place.trace.version;
        let mut after = place.text.take();
        loop {
            // The version that was listed last has what the one before it left.
            let from = place.listed.unwrap_or(last.revision());
            let limit = self.take - self.entries.len() + 2;
            let (rows, more) =
                subject.versions(last, (1, from), limit, Direction::Backward).await?;
            let rows_read = rows.len();
            for row in rows {
                let Some((version, past)) = read(&row) else {
                    let reason = "the version cannot be read";
                    self.problems.push(Problem::new(ProblemKind::Unreadable, &row.key, reason));
                    after = None;
                    continue;
                };
                if place.listed == Some(version.revision()) {
                    after = past.before;
                    continue;
                }
                // The version that would tell what this one left may be gone.
                let expected = place.listed.map_or(last.revision(), |listed| listed - 1);
                if version.revision() != expected {
                    after = None;
                }
                // Here it left the key another time, and has a trace of that.
                let left_before =
                    past.from.as_ref().map(String::as_bytes) == Some(&subject.key[..]);
                if left_before && version != last {
                    return Ok(Stretched::Over);
                }
                if !left_before && !subject.shows(past.key.as_bytes()) {
                    // Then it was somebody else's.
                    place.listed = Some(version.revision());
                    after = past.before;
                    continue;
                }
                if self.entries.len() == self.take {
                    return Ok(Stretched::Full);
                }
                *read_count += 1;
                place.listed = Some(version.revision());
                let before = past.before.clone();
                self.entries.push(entry(version, self.shown(past), after.take()));
                after = before;
            }
            let is_stuck = rows_read < 2 && place.listed == Some(from);
            if !more || is_stuck {
                return Ok(Stretched::Over);
            }
        }
    }

    /// A version without what it tells of the key of somebody else: where a record was moved to,
    /// or where it came from and what it was there.
    fn shown(&self, mut past: Past) -> Past {
        let subject = self.subject;
        if past.from.as_ref().is_some_and(|from| !subject.shows(from.as_bytes())) {
            (past.from, past.before) = (None, None);
        }
        if !subject.shows(past.key.as_bytes()) {
            past.key = String::from_utf8_lossy(&subject.key).into_owned();
        }
        past
    }
}

fn entry(version: Version, past: Past, after: Option<Bytes>) -> HistoryEntry<Document> {
    let Past { at, by, kind, key, from, before } = past;
    let after = after.filter(|_| !kind.is_end());
    let parsed =
        |text: &Option<Bytes>| -> Option<Value> { serde_json::from_slice(text.as_ref()?).ok() };
    let changes = match (parsed(&before), parsed(&after)) {
        (Some(before), Some(after)) => Difference::between(&before, &after),
        _ => Vec::new(),
    };
    let record = after.map(|text| Document::new(Bytes::from(key.clone()), version, text));
    HistoryEntry { version, kind, at_ms: at, by, key, renamed_from: from, record, changes }
}

fn bind(subject: &Subject<'_>) -> Binding {
    Binding {
        secret: subject.loaded.catalog.cursor_secret.0.to_vec(),
        space: subject.session.live.space.name().to_owned(),
        collection: subject.name().to_owned(),
        actor: subject.session.actor().map(str::to_owned),
        // A query is a JSON text, and never begins so.
        query: Question::Words(format!("history {}", subject.key.escape_ascii())),
    }
}

/// A place as the key of its trace, with the revision that was listed last in front.
fn position(subject: &Subject<'_>, place: &ListPosition) -> Position {
    let address = trace_address(subject.name(), &subject.key, place.trace);
    let mut key = place.listed.unwrap_or(0).to_be_bytes().to_vec();
    key.extend(&address.key[..]);
    Position { indexes: String::new(), key: key.into(), towards_start: false, inclusive: false }
}

fn open(subject: &Subject<'_>, text: &str, binding: &Binding) -> Result<ListPosition> {
    let Position { key, .. } = Cursor::open(text, binding)?;
    let read = || {
        let (listed, address) = key.split_first_chunk::<8>()?;
        let (_, trace) = trace_of(address)?;
        // Revisions are from 1; none is listed of a stretch that comes next.
        let listed = Some(u64::from_be_bytes(*listed)).filter(|listed| *listed > 0);
        Some(ListPosition { trace, listed, text: None })
    };
    read().ok_or_else(|| {
        Error::new(ErrorKind::InvalidCursor, "the cursor has another format")
            .with("key", ShowKey(&subject.key))
    })
}
