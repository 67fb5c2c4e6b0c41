//! The record whose history is asked for.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Address, Cell, Direction, Reading, Row};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::schema::{Collection, HistoryDeclaration};
use crate::side::{Past, Trace, trace_of, traces_of, version_address, version_of, versions_of};
use crate::space::Loaded;
use crate::space::{Retry, Session};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// A key of a collection that keeps a history.
pub(super) struct Subject<'s> {
    pub(super) session: &'s Session,
    pub(super) loaded: Arc<Loaded>,
    pub(super) collection: Arc<Collection>,
    pub(super) bounds: HistoryDeclaration,
    pub(super) key: Bytes,
}

/// The record that is there.
pub(super) struct Present {
    pub(super) version: Version,
    pub(super) text: Bytes,
}

impl<'s> Subject<'s> {
    pub(super) async fn new(
        session: &'s Session,
        name: &str,
        key: impl Fn(&Collection) -> Result<Bytes>,
    ) -> Result<Self> {
        let decided = session.live.decide(|loaded| {
            let collection = loaded.schema.collection(name)?.clone();
            let bounds = collection.history.ok_or_else(|| {
                let message = "the collection keeps no history; declare it in the schema";
                Error::new(ErrorKind::InvalidQuery, message).with("collection", name)
            })?;
            let key = key(&collection)?;
            Ok(Subject { session, loaded: loaded.clone(), collection, bounds, key })
        });
        decided.await
    }

    pub(super) fn name(&self) -> &str {
        &self.collection.name
    }

    /// Whether the caller may see versions that the record had at this key.
    pub(super) fn shows(&self, key: &[u8]) -> bool {
        *key == self.key[..] || self.session.may_read(&self.collection, key)
    }

    pub(super) fn record_address(&self) -> Address {
        Address::new(self.collection.area.clone(), self.key.clone())
    }

    pub(super) fn version_address(&self, version: Version) -> Address {
        version_address(self.name(), version)
    }

    pub(super) fn present(cell: Option<&Cell>) -> Option<Present> {
        let cell = cell?;
        Some(Present { version: Version::from_stamp(cell.stamp), text: cell.bytes()?.clone() })
    }

    pub(super) async fn get(&self, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        self.session.live.get(addresses).await
    }

    /// Some versions of an incarnation from one revision to another, and whether there are more.
    pub(super) async fn versions(
        &self,
        of: Version,
        revisions: (u64, u64),
        limit: usize,
        direction: Direction,
    ) -> Result<(Vec<Row>, bool)> {
        let range = versions_of(self.name(), of, revisions.0, revisions.1);
        let live = &self.session.live;
        let stretch = live.scan_one(&range, limit, direction).await?;
        Ok((stretch.rows, stretch.more))
    }

    /// The first trace under the key that was left after this time.
    pub(super) async fn trace_after(&self, time: u64) -> Result<Option<Trace>> {
        let range = traces_of(self.name(), &self.key, Some(time));
        let live = &self.session.live;
        let stretch = live.scan_one(&range, 1, Direction::Forward).await?;
        Ok(stretch.rows.first().and_then(|row| trace_of(&row.key)).map(|(_, trace)| trace))
    }

    /// The last trace under the key before another, or of all.
    pub(super) async fn trace_before(&self, later: Option<&Address>) -> Result<Option<Trace>> {
        let mut range = traces_of(self.name(), &self.key, None);
        let live = &self.session.live;
        if let Some(later) = later {
            range = range.after(&later.key, Direction::Backward);
        }
        loop {
            let stretch = live.scan_one(&range, 1, Direction::Backward).await?;
            let Some(row) = stretch.rows.first() else { return Ok(None) };
            if let Some((_, trace)) = trace_of(&row.key) {
                return Ok(Some(trace));
            }
            // Verify tells of keys that are none of ours.
            range = range.after(&row.key, Direction::Backward);
        }
    }

    /// Whether everything that happened to the key from this time on is kept, counts apart.
    pub(super) fn reaches_back_to(&self, time: u64) -> bool {
        let since = self.loaded.catalog.history_since.get(self.name()).copied().unwrap_or(0);
        let days = self.bounds.days.and_then(|days| u64::try_from(days).ok());
        let now = self.session.now();
        let oldest = days.map_or(0, |days| now.saturating_sub(days.saturating_mul(DAY_MS)));
        time >= since.max(oldest)
    }

    /// How often a read is repeated that may have met a batch half-way: on engines that read one
    /// moment, never.
    pub(super) fn patience(&self) -> Retry {
        match self.session.live.engine.capabilities().reading {
            Reading::Snapshot => Retry::never(),
            Reading::Validated => Retry { attempts: 6, ..Retry::eager() },
        }
    }

    pub(super) fn not_kept(&self) -> Error {
        Error::new(ErrorKind::NotKept, "the history does not reach back so far")
            .with("collection", self.name())
            .with("key", crate::engine::ShowKey(&self.key))
    }
}

/// The version in a row, with its number.
pub(super) fn read(row: &Row) -> Option<(Version, Past)> {
    let (_, version) = version_of(&row.key)?;
    Some((version, Past::from_cell(&row.cell)?))
}
