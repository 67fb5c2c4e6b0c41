//! Reads what has changed in a space, from its log.

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

/// The approximate limit of log bytes in one answer.
pub(super) const SLICE_BYTES: usize = 4 << 20;

/// One commit in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// Its position in the log. [`Position::next`] is where to continue after it.
    pub position: Position,
    /// When it was made, in milliseconds since 1970, by the clock of the writer.
    pub at: u64,
    /// The acting user, if there was one.
    pub by: Option<String>,
    /// The records that it changed. The list may be empty: the log also has builds of indexes,
    /// plain keys and changes of the schema.
    pub changes: Vec<LoggedChange>,
    /// Whether it changed the schema, or the state of an index.
    pub is_schema_change: bool,
}

/// A record that a commit changed.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedChange {
    /// The collection.
    pub collection: String,
    /// The record's key, as its template writes it.
    pub key: String,
    /// The version before the commit; `None` if the record did not exist.
    pub before: Option<Version>,
    /// What the commit did to the record.
    pub became: Became,
    /// The increments of its counters, by the counters' names.
    pub increments: BTreeMap<String, i64>,
}

/// What a commit did to a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Became {
    /// It created or changed the record, which is now this.
    Written(Document),
    /// It deleted the record.
    Deleted,
    /// It left the record as it was, and changed only its counters.
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
    /// The part of the log that is kept. If `next` is its end, there is nothing more yet.
    pub bounds: LogBounds,
}

impl Changes {
    /// Whether this reaches the end of the log, as it was at the time of the read.
    pub fn is_end(&self) -> bool {
        self.next >= self.bounds.next
    }
}

/// The change log of the space, in spaces whose schema declares one (`[log]`).
impl Store {
    /// The commits from a position on, in order: at most `limit` (1 to 10,000) and about 4 MiB.
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

    /// Which part of the log is kept: from the oldest position to the position of the next commit.
    pub async fn log_bounds(&self) -> Result<LogBounds> {
        declared_log(self.session()).await?;
        self.engine().log_bounds(&self.session().live.space).await
    }

    /// Removes what the schema no longer asks to keep from the log, in bounded steps. Writers also
    /// do such a step now and then, so this call is for logs that nobody writes to any more.
    pub async fn trim_log(&self) -> Result<Trimmed> {
        let keep = declared_log(self.session()).await?;
        let (space, now) = (&self.session().live.space, self.session().now());
        trim(&**self.engine(), space, keep, now, u64::MAX).await
    }
}

/// The declaration of the log; an error if the schema declares none.
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

/// Log entries from a position on. The log must still keep that position, or it is the next one.
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

/// A log entry as watchers and readers of changes see it.
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
