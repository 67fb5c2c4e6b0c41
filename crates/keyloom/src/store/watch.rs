//! Waits for changes and gives them commit by commit.

use std::collections::VecDeque;

use super::Store;
use super::change_log::{Logged, LoggedChange, declared_log, logged, read};
use crate::engine::{EngineExt, Position};
use crate::error::Result;
use crate::space::Session;

/// The most commits, and roughly the most bytes, that a watch reads ahead of its caller. The rest
/// stays in the log.
const AHEAD_ENTRIES: usize = 256;
const AHEAD_BYTES: usize = 1 << 20;

/// What to watch, and from where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    from: Option<Position>,
    collections: Vec<String>,
    key_prefixes: Vec<String>,
}

impl WatchOptions {
    /// Every commit after the watch has begun.
    pub fn from_now() -> Self {
        WatchOptions::default()
    }

    /// Every commit from a position on. To continue after a commit, give the position after it.
    pub fn from_position(position: Position) -> Self {
        WatchOptions { from: Some(position), ..WatchOptions::default() }
    }

    /// Only records of this collection. May be called again for more collections.
    #[must_use]
    pub fn collection(mut self, name: impl Into<String>) -> Self {
        self.collections.push(name.into());
        self
    }

    /// Only records whose keys begin with this prefix. May be called again for more prefixes.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefixes.push(prefix.into());
        self
    }

    fn is_filtered(&self) -> bool {
        !self.collections.is_empty() || !self.key_prefixes.is_empty()
    }

    fn wants(&self, change: &LoggedChange) -> bool {
        let is_one_of = |name: &String| *name == change.collection;
        let begins = |prefix: &String| change.key.starts_with(prefix);
        (self.collections.is_empty() || self.collections.iter().any(is_one_of))
            && (self.key_prefixes.is_empty() || self.key_prefixes.iter().any(begins))
    }

    /// The commit with the wanted changes; `None` if it has none. Without a filter, changes of the
    /// schema are wanted too.
    fn filtered(&self, mut commit: Logged) -> Option<Logged> {
        commit.changes.retain(|change| self.wants(change));
        let is_wanted =
            !commit.changes.is_empty() || (commit.is_schema_change && !self.is_filtered());
        is_wanted.then_some(commit)
    }
}

/// The commits of a space as they happen, each once and in order.
///
/// It reads from the log only as its caller asks for more, so a slow reader takes no memory for the
/// changes that it has not reached. If the log is trimmed before a reader has read it, the reader
/// gets [`ErrorKind::LogTrimmed`](crate::ErrorKind::LogTrimmed).
pub struct Watch {
    session: Session,
    options: WatchOptions,
    /// Commits that were read from the log and not given to the caller yet.
    ahead: VecDeque<Logged>,
    /// The position after the last commit that was read.
    next: Position,
}

impl Store {
    /// Watches the space. See [`Watch::next`].
    pub async fn watch(&self, options: WatchOptions) -> Result<Watch> {
        let session = self.session().clone();
        declared_log(&session).await?;
        let next = match options.from {
            // Fails now, and not at the first change, if the position is trimmed or was never
            // reached.
            Some(from) => {
                read(&session, from, 1, 1).await?;
                from
            }
            None => session.live.engine.log_bounds(&session.live.space).await?.next,
        };
        Ok(Watch { session, options, ahead: VecDeque::new(), next })
    }
}

impl Watch {
    /// The next commit that passes the filter, with only the changes that pass it. Waits until
    /// there is one. Dropping the future loses nothing.
    ///
    /// An error leaves the watch at its position. After a retryable error, the next call may give
    /// the next commit, without a gap.
    pub async fn next(&mut self) -> Result<Logged> {
        loop {
            if let Some(commit) = self.ahead.pop_front() {
                return Ok(commit);
            }
            self.session.live.engine.wait_log(&self.session.live.space, self.next).await?;
            self.read_ahead().await?;
        }
    }

    /// Where another watch continues after the last commit of this one: a position for
    /// [`WatchOptions::from_position`].
    pub fn position(&self) -> Position {
        self.ahead.front().map_or(self.next, |commit| commit.position)
    }

    async fn read_ahead(&mut self) -> Result<()> {
        let slice = read(&self.session, self.next, AHEAD_ENTRIES, AHEAD_BYTES).await?;
        let mut ahead = VecDeque::new();
        let mut next = self.next;
        for entry in &slice.entries {
            ahead.extend(self.options.filtered(logged(entry)?));
            next = entry.position.next();
        }
        self.ahead = ahead;
        self.next = next;
        Ok(())
    }
}
