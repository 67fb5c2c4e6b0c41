//! What has changed in a space, from its log.

use std::collections::BTreeMap;

use super::Store;
use crate::engine::{EngineExt, LogBounds, LogEntry, LogSlice, Position};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{self, Entry, Trimmed, trim};
use crate::query::TAKE_MAX;
use crate::record::{Document, Version};
use crate::schema::LogDeclaration;
use crate::space::Session;
use crate::space::catalog_address;

/// One answer has at most about so many bytes of the log.
pub(super) const SLICE_BYTES: usize = 4 << 20;

/// One commit, as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Where it stands in the log. [`Position::next`] is where to go on after it.
    pub position: Position,
    /// When it was made, in milliseconds since 1970, by the clock of whoever made it.
    pub at: u64,
    /// The acting user, if there was one.
    pub by: Option<String>,
    /// The records that it changed. There may be none: builds of indexes, plain keys and changes
    /// of the schema are in the log as well.
    pub changes: Vec<LoggedChange>,
    /// Whether it changed the schema, or the state of an index.
    pub is_schema_change: bool,
}

/// One record of a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedChange {
    /// The collection.
    pub collection: String,
    /// The record's key, as its template writes it.
    pub key: String,
    /// The version before; `None` when the record was not there.
    pub before: Option<Version>,
    /// What became of it.
    pub became: Became,
    /// What was added to its counters, by their names.
    pub increments: BTreeMap<String, i64>,
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Became {
    /// It was created or changed, and is this now.
    Written(Document),
    /// It is gone.
    Deleted,
    /// The record itself stayed as it was; only its counters changed.
    Untouched,
}

impl LoggedChange {
    /// The record after the change, if the change wrote it.
    pub fn document(&self) -> Option<&Document> {
        match &self.became {
            Became::Written(document) => Some(document),
            Became::Deleted | Became::Untouched => None,
        }
    }

    /// The version after the change, if the change wrote the record.
    pub fn after(&self) -> Option<Version> {
        self.document().map(|document| document.version)
    }
}

/// A part of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// The commits, in order and without a gap.
    pub commits: Vec<Logged>,
    /// Where to go on.
    pub next: Position,
    /// What the log keeps. When `next` is its end, there is nothing more yet.
    pub bounds: LogBounds,
}

impl Changes {
    /// Whether this is up to the end of the log, as it was then.
    pub fn is_end(&self) -> bool {
        self.next >= self.bounds.next
    }
}

/// The change log of the space, in spaces whose schema declares one (`[log]`).
impl Store {
    /// The commits from a position on, in order, at most `limit` (1 to 10,000) and about 4 MiB.
    ///
    /// A position before the oldest kept one is refused with [`ErrorKind::LogTrimmed`], since older
    /// changes are lost. A position beyond the end of the log is refused too: it belongs to another
    /// store, or to one that has lost its end.
    pub async fn changes(&self, from: Position, limit: usize) -> Result<Changes> {
        if !(1..=TAKE_MAX).contains(&limit) {
            return Err(Error::new(ErrorKind::InvalidArgument, "a call gives 1 to 10000 commits")
                .with("limit", limit));
        }
        declared_log(self.session()).await?;
        let LogSlice { bounds, entries } = read(self.session(), from, limit, SLICE_BYTES).await?;
        let next = entries.last().map_or(from, |entry| entry.position.next());
        let commits = entries.iter().map(logged).collect::<Result<_>>()?;
        Ok(Changes { commits, next, bounds })
    }

    /// Which part of the log is kept: from the oldest position to the one that the next commit
    /// will get.
    pub async fn log_bounds(&self) -> Result<LogBounds> {
        declared_log(self.session()).await?;
        self.engine().log_bounds(&self.session().live.space).await
    }

    /// Removes from the log what the schema does not ask to keep, in bounded steps. Writers do a
    /// step now and then, so this call is for logs that are no longer written to.
    pub async fn trim_log(&self) -> Result<Trimmed> {
        let keep = declared_log(self.session()).await?;
        let (space, now) = (&self.session().live.space, self.session().now());
        trim(&**self.engine(), space, keep, now, u64::MAX).await
    }
}

/// What the schema says of the log; an error where there is none.
pub(super) async fn declared_log(session: &Session) -> Result<LogDeclaration> {
    session.program()?;
    session
        .live
        .decide(|loaded| {
            loaded.schema.log.ok_or_else(|| {
                Error::new(ErrorKind::Unsupported, "the space keeps no log")
                    .with("space", session.live.space.name())
                    .with("advice", "declare [log] in its schema")
            })
        })
        .await
}

/// Entries from a position on, which must be one that the log keeps or its next one.
pub(super) async fn read(
    session: &Session,
    from: Position,
    entries_max: usize,
    bytes_max: usize,
) -> Result<LogSlice> {
    let slice =
        session.live.engine.read_log(&session.live.space, from, entries_max, bytes_max).await?;
    if from > slice.bounds.next {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "the log has not come to this position; it may belong to another store",
        )
        .with("space", session.live.space.name())
        .with("position", from)
        .with("next position", slice.bounds.next));
    }
    Ok(slice)
}

/// What an entry tells to those who watch.
pub(super) fn logged(entry: &LogEntry) -> Result<Logged> {
    let position = entry.position;
    let Entry { author, cells, changes } =
        Entry::decode(&entry.bytes).map_err(|error| error.with("position", position))?;
    let catalog = catalog_address();
    Ok(Logged {
        position,
        at: author.at,
        by: author.by,
        changes: changes.into_iter().map(|(told, became)| change(told, became)).collect(),
        is_schema_change: cells.iter().any(|(address, _)| *address == catalog),
    })
}

fn change(told: log::Told, became: log::Became) -> LoggedChange {
    let key = told.address.key;
    LoggedChange {
        collection: told.collection,
        // Templates write text only.
        key: String::from_utf8_lossy(&key).into_owned(),
        before: told.before,
        became: match became {
            log::Became::Written { version, text } => {
                Became::Written(Document::new(key, version, text))
            }
            log::Became::Deleted => Became::Deleted,
            log::Became::Untouched => Became::Untouched,
        },
        increments: told.increments,
    }
}
