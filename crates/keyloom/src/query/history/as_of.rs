//! One state of a record: by its version, or by a time.

use bytes::Bytes;

use super::subject::{Present, Subject, read};
use crate::engine::{Direction, Range};
use crate::error::Result;
use crate::record::{Document, Version};
use crate::schema::Collection;
use crate::side::{HistoryKind, Past, versions_of};
use crate::space::Session;

/// Into how many parts a search divides the versions with each round trip.
const PARTS: u64 = 16;

/// The record in this version; `None` when it ended the record, or is not known under this key.
pub(crate) async fn at_version(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    version: Version,
) -> Result<Option<Document>> {
    let subject = Subject::new(session, name, key).await?;
    let Some(next) = version.revision().checked_add(1) else { return Ok(None) };
    let asked = [
        subject.record_address(),
        subject.version_address(version),
        subject.version_address(version.at_revision(next)),
    ];
    let retry = subject.patience();
    for made in 1.. {
        let cells = subject.get(&asked).await?;
        let past = |place: usize| cells.get(place)?.as_ref().and_then(Past::from_cell);
        let present = Subject::present(cells.first().and_then(Option::as_ref));
        if let Some(present) = present.as_ref().filter(|present| present.version == version) {
            return Ok(Some(document(&subject.key, version, &present.text)));
        }
        let is_own = present.as_ref().is_some_and(|present| {
            present.version.is_same_incarnation(version) && present.version > version
        });
        if !is_own && !was_here(&subject, version).await? {
            return Ok(None);
        }
        let (this, following) = (past(1), past(2));
        if this.as_ref().is_some_and(|this| this.kind.is_end()) {
            return Ok(None);
        }
        if let Some(following) = following {
            let key = this.map(|this| this.key).or(following.from).unwrap_or(following.key);
            // A record that was moved here may have been somebody else's before.
            let text = following.before.filter(|_| subject.shows(key.as_bytes()));
            return Ok(text.map(|text| document(&Bytes::from(key), version, &text)));
        }
        if !retry.pause(made).await {
            break;
        }
    }
    Ok(None)
}

/// Whether a record that had this version left a trace under the key later.
async fn was_here(subject: &Subject<'_>, version: Version) -> Result<bool> {
    let mut later = None;
    while let Some(trace) = subject.trace_before(later.as_ref()).await? {
        if trace.version.is_same_incarnation(version) && trace.version > version {
            return Ok(true);
        }
        later = Some(crate::side::trace_address(subject.name(), &subject.key, trace));
    }
    Ok(false)
}

/// The record as it was at a time; `None` when it was not there.
pub(crate) async fn as_of(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    time: u64,
) -> Result<Option<Document>> {
    let subject = Subject::new(session, name, key).await?;
    let retry = subject.patience();
    let mut made = 0;
    loop {
        made += 1;
        match attempt(&subject, time).await? {
            // What had expired at that time was absent to everybody, swept or not.
            Answer::Record(document) => {
                let is_over = subject.collection.is_text_expired(document.text(), time);
                return Ok((!is_over).then_some(document));
            }
            Answer::Absent => return Ok(None),
            Answer::Unknown if retry.pause(made).await => {}
            Answer::Unknown => return Err(subject.not_kept().with("time", time)),
        }
    }
}

/// What one look at the history gave.
enum Answer {
    Record(Document),
    /// It was not there.
    Absent,
    /// It cannot be told from what is kept.
    Unknown,
}

async fn attempt(subject: &Subject<'_>, time: u64) -> Result<Answer> {
    // Whoever left first after that time was there then, if anybody was.
    let (last, present) = match subject.trace_after(time).await? {
        Some(trace) => (trace.version, None),
        None => {
            let cell = subject.get(&[subject.record_address()]).await?.pop().flatten();
            match Subject::present(cell.as_ref()) {
                Some(present) => (present.version, Some(present)),
                None => return Ok(absent(subject, time)),
            }
        }
    };
    let oldest = subject.versions(last, (1, last.revision()), 1, Direction::Forward).await?.0;
    let Some((first, past)) = oldest.first().and_then(read) else {
        // Nothing happened to it since the history is kept.
        return Ok(match present {
            Some(present) if subject.reaches_back_to(time) => of_present(subject, &present),
            _ => Answer::Unknown,
        });
    };
    if past.at > time {
        return before_all(subject, time, (first, past)).await;
    }
    let (version, past) = latest_until(subject, time, (first, past), last).await?;
    if past.kind.is_end() || past.key.as_bytes() != &subject.key[..] {
        return Ok(Answer::Absent);
    }
    if let Some(present) = present.filter(|present| present.version == version) {
        return Ok(of_present(subject, &present));
    }
    let following = version.at_revision(version.revision().saturating_add(1));
    let cell = subject.get(&[subject.version_address(following)]).await?.pop().flatten();
    let text = cell.as_ref().and_then(Past::from_cell).and_then(|past| past.before);
    Ok(text.map_or(Answer::Unknown, |text| Answer::Record(document(&subject.key, version, &text))))
}

fn of_present(subject: &Subject<'_>, present: &Present) -> Answer {
    Answer::Record(document(&subject.key, present.version, &present.text))
}

/// Nothing is known of a record at that time: it was not there, or that is no longer kept.
fn absent(subject: &Subject<'_>, time: u64) -> Answer {
    if subject.reaches_back_to(time) { Answer::Absent } else { Answer::Unknown }
}

/// The answer for a time before the first version that is kept.
async fn before_all(
    subject: &Subject<'_>,
    time: u64,
    (first, past): (Version, Past),
) -> Result<Answer> {
    if past.kind == HistoryKind::Created {
        return Ok(absent(subject, time));
    }
    if !subject.reaches_back_to(time) || is_counted_out(subject, first).await? {
        return Ok(Answer::Unknown);
    }
    // It was as the first change found it.
    let before = first.at_revision(first.revision().saturating_sub(1));
    let key = past.from.unwrap_or(past.key);
    if key.as_bytes() != &subject.key[..] {
        return Ok(Answer::Absent);
    }
    let text = past.before;
    Ok(text.map_or(Answer::Unknown, |text| Answer::Record(document(&subject.key, before, &text))))
}

/// Whether the version before the first that is kept may have been removed for its number.
async fn is_counted_out(subject: &Subject<'_>, first: Version) -> Result<bool> {
    let Some(kept) = subject.bounds.versions.and_then(|kept| u64::try_from(kept).ok()) else {
        return Ok(false);
    };
    let (newest, _) = subject.versions(first, (1, u64::MAX), 1, Direction::Backward).await?;
    let newest = newest.first().and_then(read).map_or(first, |(newest, _)| newest);
    Ok(first.revision().saturating_sub(1).saturating_add(kept) <= newest.revision())
}

/// The last version up to a time, among those from one that is up to it to another. Each round
/// trip leaves a part of what there was.
async fn latest_until(
    subject: &Subject<'_>,
    time: u64,
    first: (Version, Past),
    last: Version,
) -> Result<(Version, Past)> {
    let mut latest = first;
    // Everything from this revision on is later.
    let mut end = last.revision().saturating_add(1);
    loop {
        let start = latest.0.revision().saturating_add(1);
        if start >= end {
            return Ok(latest);
        }
        let width = (end - start).div_ceil(PARTS);
        let starts: Vec<u64> =
            (0..PARTS).map(|part| start + part * width).filter(|start| *start < end).collect();
        let ranges: Vec<Range> = starts
            .iter()
            .map(|start| versions_of(subject.name(), last, *start, (start + width).min(end) - 1))
            .collect();
        let live = &subject.session.live;
        let stretches = live.scan(&ranges, 1, Direction::Forward).await?;
        let firsts = stretches.iter().map(|stretch| stretch.rows.first().and_then(read));
        let known = firsts.enumerate().filter_map(|(part, first)| Some((part, first?)));
        let Some((part, later)) = known.take_while(|(_, (_, past))| past.at <= time).last() else {
            return Ok(latest);
        };
        latest = later;
        end = starts.get(part + 1).copied().unwrap_or(end);
    }
}

fn document(key: &Bytes, version: Version, text: &Bytes) -> Document {
    Document::new(key.clone(), version, text.clone())
}
