//! Builds a store from the log of another.

use super::Store;
use super::change_log::{declared_log, read};
use crate::engine::{
    Address, Batch, Condition, Effect, EngineExt, LogBounds, LogEntry, Outcome, Position,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Entry;
use crate::record::Version;
use crate::space::catalog_address;

/// How much of the log one read asks for.
const SLICE_ENTRIES: usize = 512;
const SLICE_BYTES: usize = 4 << 20;

/// The outcome of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many commits were replayed.
    pub commits: u64,
    /// What the log of the new store keeps: the same as the old log had, up to the end of the
    /// replay.
    pub bounds: LogBounds,
}

impl Store {
    /// Builds this space, which must be empty, from the log of another: every record with its
    /// version, every index entry, the schema, and the log itself. It ends where the log ended when
    /// the replay began.
    ///
    /// The log must go back to the very first change of its space: the first schema declared it,
    /// and nothing was trimmed since. Nobody else may write to this space meanwhile. If a replay
    /// was interrupted, start again with an empty store.
    pub async fn replay(&self, log: &Store) -> Result<Replayed> {
        self.session().program()?;
        let end = log.log_bounds().await?.next;
        self.replay_before(log, end).await
    }

    /// As [`replay`](Self::replay), up to and including the commit at this position.
    pub async fn replay_until(&self, log: &Store, last: Position) -> Result<Replayed> {
        self.session().program()?;
        let end = log.log_bounds().await?.next;
        if last >= end {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "the log has not come to this position; it may belong to another store",
            )
            .with("position", last)
            .with("next position", end));
        }
        self.replay_before(log, last.next()).await
    }

    async fn replay_before(&self, log: &Store, end: Position) -> Result<Replayed> {
        declared_log(log.session()).await?;
        let schema = log.session().live.reload().await?.schema.clone();
        schema.check_against(self.engine().capabilities())?;
        self.refuse_unless_empty().await?;
        let mut next = Position::FIRST;
        while next < end {
            let slice = read(log.session(), next, SLICE_ENTRIES, SLICE_BYTES).await?;
            let entries = slice.entries.into_iter().take_while(|entry| entry.position < end);
            for entry in entries {
                next = entry.position.next();
                self.redo(entry).await?;
            }
        }
        self.session().live.reload().await?;
        let bounds = self.engine().log_bounds(&self.session().live.space).await?;
        Ok(Replayed { commits: next.number() - 1, bounds })
    }

    /// Replays one commit: the same cells, and the same entry at the same position.
    async fn redo(&self, entry: LogEntry) -> Result<()> {
        let LogEntry { position, bytes } = entry;
        let cells = Entry::decode(&bytes).map_err(|error| error.with("position", position))?.cells;
        let is_first = position == Position::FIRST;
        if is_first && !begins_space(&cells) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "the log was declared when the space was in use already, and does not tell all",
            )
            .with("advice", "a replay needs a log that was declared with the first schema"));
        }
        let catalog = catalog_address();
        let mut batch =
            Batch { append: Some(bytes), ..Batch::new(self.session().live.space.clone()) };
        for (address, effect) in cells {
            let condition = (is_first && address == catalog).then_some(Condition::Absent);
            batch.push(address, condition, Some(effect));
        }
        match self.engine().commit(batch).await? {
            Outcome::Committed(committed) if committed.position == Some(position) => Ok(()),
            Outcome::Committed(_) | Outcome::Rejected(_) => {
                Err(not_empty(self).with("reason", "somebody else wrote to it during the replay"))
            }
        }
    }

    async fn refuse_unless_empty(&self) -> Result<()> {
        let space = &self.session().live.space;
        if self.engine().log_bounds(space).await? != LogBounds::EMPTY {
            return Err(not_empty(self).with("reason", "it has a log"));
        }
        match self.engine().areas(space).await?.is_empty() {
            true => Ok(()),
            false => Err(not_empty(self)),
        }
    }
}

fn not_empty(store: &Store) -> Error {
    Error::new(ErrorKind::InvalidArgument, "only an empty space can be made from a log")
        .with("space", store.space_name())
}

/// Whether a batch created the catalog, so that nothing in the space is older.
fn begins_space(cells: &[(Address, Effect)]) -> bool {
    let catalog = catalog_address();
    cells.iter().any(|(address, effect)| match effect {
        Effect::Put { stamp, .. } => {
            *address == catalog && Version::from_stamp(*stamp).revision() == 1
        }
        Effect::Delete | Effect::Add { .. } => false,
    })
}
