//! A store of ordered bytes, and the small contract that all of Keyloom is built from.
//!
//! An engine knows nothing of records and schemas. Adding one means writing one folder and
//! calling one suite.

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
/// All methods may be called from many tasks at once. Dropping the future of a read has no
/// effect; dropping the future of a commit leaves it undecided.
///
/// No call holds up the other tasks on its thread for long, however much it reads: an engine that
/// answers on that thread gives way between two parts of its answer, or before it.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// What this engine can do; the same answer each time.
    fn capabilities(&self) -> &Capabilities;

    /// Reads many cells in one round trip.
    ///
    /// The answer has one place per address, in order; `None` for an absent cell. An address may
    /// be asked for twice. No address gives an empty answer. The empty key, and a key over the
    /// limit, are errors.
    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>>;

    /// Reads several ranges in one round trip, each by itself and in the order of bytes.
    ///
    /// The answer has one stretch per range, in order, with at most `limit` rows each. Ranges may
    /// overlap. An empty range gives no row. A limit of 0 gives no row and says whether there
    /// would be one only as far as it is certain (`more` is then `false`).
    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>>;

    /// Scans index entries and fetches the records that they name, in one round trip where the
    /// engine can.
    ///
    /// As `scan`, with for each entry the record at the address that the recipe gives. An entry
    /// that does not fit the recipe, or whose record is absent, is a row all the same. On an
    /// engine that reads [`Reading::Snapshot`], entries and records are of one moment.
    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        follow_in_two_steps(self, space, trails, limit, direction).await
    }

    /// The areas of a space that hold a cell, in the order of their names; Keyloom's own is one of
    /// them. A space that nothing was written to has none.
    ///
    /// On an engine that reads [`Reading::Validated`], an area whose only cells are being written or
    /// removed meanwhile may be among them or not.
    async fn areas(&self, _space: &Space) -> Result<Vec<Area>> {
        Err(pin::no_areas(self.capabilities().engine))
    }

    /// The store as it is at this moment, in all spaces: an engine whose every answer, now and
    /// later, is of the same moment, while writers of the store go on.
    ///
    /// It holds every batch that was acknowledged before the call, whole, and of each log what was
    /// appended by then. It refuses to change anything with
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly); nothing of such a call has happened. A
    /// wait for its log to grow is refused likewise, since it never does. Pinned again, it gives
    /// another handle to its own moment.
    ///
    /// The moment is released when the last handle is dropped or when it is closed, which leaves
    /// the store open. Closing the store ends all its moments: their later calls fail with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed). A moment costs room for what writers replace
    /// while it is held, so that it is held no longer than needed.
    ///
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on an engine that cannot
    /// ([`Capabilities::pins`]).
    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        Err(pin::no_pin(self.capabilities().engine))
    }

    /// Applies a batch: all conditions hold and all effects are applied, or nothing is.
    ///
    /// Conditions see every batch that was acknowledged before, and no effect of their own batch.
    /// An empty batch is committed. An error says whether the batch did not happen or may have
    /// happened.
    ///
    /// What the batch appends to the log of its space shows together with its effects, and gets
    /// the next position of that space. Positions follow the order in which batches see each
    /// other: a batch that sees another has the greater one.
    async fn commit(&self, batch: Batch) -> Result<Outcome>;

    /// Reads the log of a space from a position on, in order and without a gap.
    ///
    /// The answer ends with the entry that makes it `entries_max` entries or `bytes_max` bytes;
    /// it has at least one entry if there is one at the position. From the next position on, and
    /// beyond it, there is none. A position before the oldest that is kept is refused with
    /// [`ErrorKind::LogTrimmed`](crate::ErrorKind::LogTrimmed). With an `entries_max` of 0
    /// nothing is read, and any position is good to learn the bounds.
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

    /// Removes what is before a position from the log of a space, the oldest first and at most
    /// `entries_max` entries, and says what is kept then.
    ///
    /// A position beyond the next one removes everything, and the next position stays what it is.
    /// Repeating it, and a position that is not kept any more, change nothing.
    async fn trim_log(
        &self,
        _space: &Space,
        _before: Position,
        _entries_max: usize,
    ) -> Result<LogBounds> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// Adds entries to the log of a space by themselves, one after the other from a position on, and
    /// says what is kept then: how a log is made again from a copy of it.
    ///
    /// The position is the next one of the log. Where the log keeps no entry it may also be beyond
    /// that, and the log begins there; without entries, that is all that happens. Any other position
    /// is refused with [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), since none
    /// is given twice. Together the entries have at most [`Capabilities::batch_bytes_max`] bytes, and
    /// all are added or none is.
    async fn extend_log(
        &self,
        _space: &Space,
        _at: Position,
        _entries: &[Bytes],
    ) -> Result<LogBounds> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// Waits until the next position of a space's log is beyond the given one, and gives it.
    ///
    /// Comes back at once when it is already. Dropping the future has no effect. Fails with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) when the store is closed meanwhile.
    async fn wait_log(&self, _space: &Space, _beyond: Position) -> Result<Position> {
        Err(log::no_log(self.capabilities().engine))
    }

    /// What the engine knows of itself, for people; nothing unless it says otherwise. It is about
    /// all spaces, is no part of what commits and reads promise, and succeeds on a closed store.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    /// Tells whoever finds the store locked where this process can be asked instead, such as the
    /// URL of a server. Does nothing unless the engine belongs to one process at a time.
    fn announce(&self, _address: &str) {}

    /// Makes everything durable and releases the store. Later calls fail with
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed). Closing twice succeeds.
    async fn close(&self) -> Result<()>;
}

/// `follow` by one `scan` and one `get`, for engines that cannot do better. Entries and records
/// are of different moments.
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

/// The address that an entry names, if it fits the recipe and the limits of a key.
pub(crate) fn target_of(recipe: &Recipe, row: &Row) -> Option<Address> {
    let value = row.cell.bytes()?;
    recipe.target(&row.key, value).filter(|address| address.check().is_ok())
}
