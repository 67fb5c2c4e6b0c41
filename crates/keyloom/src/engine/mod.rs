//! Engines: stores of ordered bytes, with a small contract that all of Keyloom builds on.
//!
//! An engine knows nothing about records and schemas. To add one, write one folder and run one test
//! suite.

mod address;
mod batch;
mod capabilities;
mod cell;
pub mod conformance;
pub(crate) mod decide;
#[cfg(feature = "embedded")]
mod embedded;
mod extension;
mod figure;
mod log;
mod log_waiters;
mod memory;
mod open;
pub(crate) mod percent;
mod pin;
pub(crate) mod places;
mod quantum;
pub(crate) mod random;
mod range;
mod recipe;
mod witness;
mod wrappers;

pub use address::{Address, Area, KEY_BYTES_MAX, NAME_BYTES_MAX, ShowKey, Space, VALUE_BYTES_MAX};
pub use batch::{
    Addition, Batch, COUNTER_NAME_BYTES_MAX, Cause, Committed, Condition, Effect, Entry, Fence,
    Outcome, Rejection,
};
pub use capabilities::{Capabilities, Reading};
pub use cell::{Cell, Content, Integers, Stamp};
#[cfg(feature = "embedded")]
#[doc(hidden)]
pub use embedded::SyncGate;
#[cfg(feature = "embedded")]
pub use embedded::{Durability, Embedded, Options as EmbeddedOptions};
pub use extension::EngineExt;
pub use figure::{Figure, Unit};
pub use log::{LOG_ENTRY_BYTES_MAX, LogBounds, LogEntry, LogSlice, Position};
pub use memory::Memory;
pub(crate) use open::{Absent, open};
pub use range::{Direction, Link, Range, Row, Stretch, Trail, after_prefix, successor};
pub use recipe::{Cut, Part, Recipe};
pub use witness::{Evidence, Witness};
pub use wrappers::{CommitFault, Injected, Metered, Mirror, Torn, Unreliable, Usage};

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Result;

/// The contract of every engine. The conformance suite states it as tests.
///
/// All methods may be called from many tasks at once. Dropping the future of a read has no effect.
/// Dropping the future of a commit leaves it open whether the commit happens.
///
/// No call blocks the other tasks on its thread for long, however much it reads: an engine that
/// answers on that thread yields between two parts of its answer, or before it.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The capabilities of this engine, which never change.
    fn capabilities(&self) -> &Capabilities;

    /// Reads many cells in one round trip.
    ///
    /// The answer has one place for each address, in order; `None` for an absent cell. The same
    /// address may occur twice. Without addresses, the answer is empty. The empty key, and a key
    /// over the limit, are errors.
    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>>;

    /// Reads several ranges in one round trip, each separately and in byte order.
    ///
    /// The answer has one stretch for each range, in order, with at most `limit` rows each. Ranges
    /// may overlap. An empty range gives no rows. A limit of 0 gives no rows and sets `more` to
    /// `false`.
    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>>;

    /// Scans index entries and fetches their records, in one round trip if the engine can.
    ///
    /// As `scan`, but each entry comes with the record at the address that the recipe gives. An
    /// entry that does not fit the recipe, or whose record is absent, is still a row. If the engine
    /// reads [`Reading::Snapshot`], entries and records come from one snapshot.
    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        follow_in_two_steps(self, space, trails, limit, direction).await
    }

    /// The areas of a space that have a cell, in the order of their names, including Keyloom's own.
    /// A space without any writes has none.
    ///
    /// On an engine that reads [`Reading::Validated`], the answer may or may not have an area whose
    /// only cells are being written or removed meanwhile.
    async fn areas(&self, _space: &Space) -> Result<Vec<Area>> {
        Err(pin::no_areas(self.capabilities().engine))
    }

    /// Pins a snapshot of the store as it is now, in all spaces. The answer is an engine that
    /// always reads this snapshot, while writers of the store go on.
    ///
    /// It has every batch that was acknowledged before the call, complete, and of each log the
    /// entries until then. It refuses every change with
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly), and the change did not happen. It also
    /// refuses to wait for its log to grow, since the log never does. Pinning it again gives
    /// another handle to the same snapshot.
    ///
    /// The snapshot is released when its last handle is dropped, or when it is closed, which leaves
    /// the store open. Closing the store ends all its pinned snapshots: their later calls fail with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed). A snapshot keeps data that writers replace,
    /// and the space for it, so release it soon.
    ///
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the engine cannot
    /// pin ([`Capabilities::pins`]).
    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        Err(pin::no_pin(self.capabilities().engine))
    }

    /// Commits a batch: if all conditions hold, all effects are applied; otherwise none is.
    ///
    /// Conditions see every batch that was acknowledged before, and no effect of their own batch.
    /// An empty batch is committed. An error says whether the batch did not happen or may have
    /// happened.
    ///
    /// The log entry of a batch becomes visible together with its effects, and gets the next
    /// position of the space. Positions follow the order in which batches see each other: a batch
    /// that sees another one has the greater position.
    async fn commit(&self, batch: Batch) -> Result<Outcome>;

    /// Reads the log of a space from a position on, in order and without a gap.
    ///
    /// The answer ends with the entry that reaches `entries_max` entries or `bytes_max` bytes. It
    /// has at least one entry, if there is one at the position. From the next position on there are
    /// no entries. A position that is no longer kept is refused with
    /// [`ErrorKind::LogTrimmed`](crate::ErrorKind::LogTrimmed). With an `entries_max` of 0 nothing
    /// is read: any position is accepted, and the answer has only the bounds.
    ///
    /// This method and the three that follow fail with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on an engine that keeps no log.
    async fn read_log(
        &self,
        _space: &Space,
        _from: Position,
        _entries_max: usize,
        _bytes_max: usize,
    ) -> Result<LogSlice> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// Removes the entries before a position from the log of a space, oldest first and at most
    /// `entries_max`. Gives the bounds of what is kept then.
    ///
    /// A position beyond the next one removes everything, and the next position stays the same.
    /// Repeating a call changes nothing, nor does a position that is no longer kept.
    async fn trim_log(
        &self,
        _space: &Space,
        _before: Position,
        _entries_max: usize,
    ) -> Result<LogBounds> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// Adds entries without a batch to the log of a space, from a position on, and gives the bounds
    /// of what is kept then. It serves to restore a log from a copy.
    ///
    /// The position must be the next one of the log. If the log has no entries, it may also be a
    /// later one, and the log begins there; without entries to add, that is all that happens. Any
    /// other position is refused with
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), since no position is
    /// given twice. Together the entries have at most [`Capabilities::batch_bytes_max`] bytes.
    /// Either all are added or none.
    async fn extend_log(
        &self,
        _space: &Space,
        _at: Position,
        _entries: &[Bytes],
    ) -> Result<LogBounds> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// Waits until the next position of a space's log is greater than the given one, and gives it.
    ///
    /// Returns at once if it already is. Dropping the future has no effect. Fails with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) if the store is closed meanwhile.
    async fn wait_log(&self, _space: &Space, _beyond: Position) -> Result<Position> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// Figures about the engine, for people; none by default. They cover all spaces, are not part
    /// of the promises about commits and reads, and can be read even when the store is closed.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Publishes where other processes can reach this one, such as the URL of a server. A process
    /// that finds the store locked can then say so. Does nothing unless only one process at a time
    /// can open the store.
    fn announce(&self, _address: &str) {}

    /// Makes everything durable and releases the store. Later calls fail with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed). Closing twice succeeds.
    async fn close(&self) -> Result<()>;
}

/// `follow` by one `scan` and one `get`, for engines that cannot do better. Entries and records are
/// then read at different times.
pub async fn follow_in_two_steps<E: Engine + ?Sized>(
    engine: &E,
    space: &Space,
    trails: &[Trail<'_>],
    limit: usize,
    direction: Direction,
) -> Result<Vec<Stretch<Link>>> {
    let ranges: Vec<Range> = trails.iter().map(|trail| trail.range.clone()).collect();
    let stretches = engine.scan(space, &ranges, limit, direction).await?;
    let targets: Vec<Vec<Option<Address>>> = stretches
        .iter()
        .zip(trails)
        .map(|(stretch, trail)| {
            stretch.rows.iter().map(|row| target_of(trail.recipe, row)).collect()
        })
        .collect();
    let wanted: Vec<Address> = targets.iter().flatten().flatten().cloned().collect();
    let mut records =
        if wanted.is_empty() { Vec::new() } else { engine.get(space, &wanted).await? }.into_iter();
    Ok(stretches
        .into_iter()
        .zip(targets)
        .map(|(stretch, targets)| Stretch {
            more: stretch.more,
            witness: None,
            rows: stretch
                .rows
                .into_iter()
                .zip(targets)
                .map(|(entry, target)| Link {
                    entry,
                    record: target.as_ref().and_then(|_| records.next().flatten()),
                    target: target.map(|address| address.key),
                })
                .collect(),
        })
        .collect())
}

/// The address that an entry leads to, if it fits the recipe and the limits of a key.
pub(crate) fn target_of(recipe: &Recipe, row: &Row) -> Option<Address> {
    let value = row.cell.bytes()?;
    recipe.target(&row.key, value).filter(|address| address.check().is_ok())
}
