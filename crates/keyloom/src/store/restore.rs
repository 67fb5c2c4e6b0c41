//! Makes a space from a backup.
//!
//! First, a mark takes the catalog's place and keeps everyone else away. Then the cells and the log
//! are written. Last, the catalog replaces the mark. A restore that was interrupted leaves the
//! mark, and the same backup continues from there. A restore never overwrites anything: it compares
//! the cells that already exist.

use std::io;

use super::Store;
use crate::backup::{BackupInfo, Frame, Head, Kept, Reader, Taken, unread};
use crate::engine::{
    Addition, Address, Batch, Cause, Cell, Condition, Content, Effect, EngineExt, Entry, Fence,
    LogBounds, LogEntry, Outcome, Rejection, ShowKey, Stamp,
};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::schema::{restored_backup, restoring_mark};
use crate::space::{catalog_address, check_catalog, epoch_address};

/// The most that one batch writes, if the engine allows that much.
const BATCH_ENTRIES: usize = 1_024;
const BATCH_BYTES: usize = 1 << 20;

/// How many bytes one read from a file asks for.
const BUFFER_BYTES: usize = 256 << 10;

impl Store {
    /// Restores a backup into this space, which must be empty: every key with its version, the
    /// schema, and the log with its positions. The backup may be of another space or store.
    ///
    /// Nobody can use the space before the restore is complete. If the backup is damaged or breaks
    /// off, the restore fails, and so does every read and write until it is complete. Run it again
    /// with the same backup to continue. [`verify`](Self::verify) tells whether the store was whole
    /// when the backup was taken.
    pub async fn restore_from(&self, source: &mut (impl io::Read + Send)) -> Result<BackupInfo> {
        let mut restorer = self.restorer().await?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match source.read(&mut buffer).map_err(unread)? {
                0 => return restorer.finish().await,
                count => restorer.write(&buffer[..count]).await?,
            }
        }
    }

    /// As [`restore_from`](Self::restore_from), for bytes that the caller supplies. Refused at once
    /// if the space is in use.
    pub async fn restorer(&self) -> Result<Restorer> {
        self.session().program()?;
        marked(self).await?;
        Ok(Restorer { store: self.clone(), reader: Reader::new(), begun: None })
    }
}

/// A restore in progress. If it is dropped before [`finish`](Self::finish), nobody can use the
/// space until the same backup is restored into it.
pub struct Restorer {
    store: Store,
    reader: Reader,
    begun: Option<Begun>,
}

struct Begun {
    /// The stamp of the mark that keeps everyone else away.
    mark: Stamp,
    /// The cells that will replace the mark.
    catalog: Vec<Taken>,
}

impl Restorer {
    /// Takes the next bytes of the backup, in pieces of any size.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.reader.push(bytes);
        while let Some(frame) = self.reader.next()? {
            self.take(frame).await?;
        }
        Ok(())
    }

    /// Completes the restore and opens the space to everyone. If a part of the backup is missing,
    /// it fails and leaves the space unusable, to be restored again.
    pub async fn finish(self) -> Result<BackupInfo> {
        let Restorer { store, reader, begun } = self;
        let info = reader.finish()?;
        if let Some(begun) = begun {
            begun.unveil(&store).await?;
        }
        store.session().live.reload().await?;
        Ok(info)
    }

    async fn take(&mut self, frame: Frame) -> Result<()> {
        // Bytes from a file or the network may always be ready, and the store may answer without
        // waiting. Yield between two parts, so that other tasks on this thread get their turn.
        tokio::task::yield_now().await;
        match (frame, &mut self.begun) {
            (Frame::Head(head), begun) => {
                *begun = Some(Begun::over(&self.store, &head).await?);
                Ok(())
            }
            (Frame::Catalog(cells), Some(begun)) => begun.keep_catalog(&self.store, cells),
            (Frame::Cells(cells), Some(begun)) => begun.put(&self.store, cells).await,
            (Frame::Log(entries), Some(_)) => extend_log(&self.store, entries).await,
            (Frame::End(_), Some(_)) => Ok(()),
            // The reader gives the head first.
            (_, None) => Err(Error::new(ErrorKind::Internal, "a backup begins with its head")),
        }
    }
}

impl Begun {
    /// Puts the mark into the space, or continues an interrupted restore of the same backup.
    async fn over(store: &Store, head: &Head) -> Result<Self> {
        let mark = match marked(store).await? {
            Some((stamp, backup)) if backup == head.id => stamp,
            Some((_, other)) => {
                return Err(Error::new(
                    ErrorKind::InvalidArgument,
                    "a restore of another backup broke off in this space; restore that one again, \
                     or take another space or folder",
                )
                .with("space", store.space_name())
                .with("backup there", other)
                .with("this backup", &head.id));
            }
            None => put_mark(store, &head.id).await?,
        };
        if let Some(log) = head.log {
            begin_log(store, log).await?;
        }
        Ok(Begun { mark, catalog: Vec::new() })
    }

    fn keep_catalog(&mut self, store: &Store, cells: Vec<Taken>) -> Result<()> {
        if let Some((_, cell)) = cells.iter().find(|(address, _)| *address == catalog_address()) {
            check_catalog(cell.clone(), store.engine().capabilities())?;
        }
        self.catalog = cells;
        Ok(())
    }

    /// Writes the cells that do not exist yet.
    async fn put(&self, store: &Store, cells: Vec<Taken>) -> Result<()> {
        let capabilities = store.engine().capabilities();
        let entries_max = BATCH_ENTRIES.min(capabilities.batch_entries_max);
        let bytes_max = BATCH_BYTES.min(capabilities.batch_bytes_max);
        let mut batch = self.batch(store);
        let mut weight = 0;
        for (address, cell) in cells {
            let effect = effect(cell);
            let entry = Entry { address, condition: Some(Condition::Absent), effect: Some(effect) };
            let is_full = batch.entries.len() >= entries_max || weight + entry.weight() > bytes_max;
            if is_full && !batch.entries.is_empty() {
                self.commit(store, std::mem::replace(&mut batch, self.batch(store))).await?;
                weight = 0;
            }
            weight += entry.weight();
            batch.entries.push(entry);
        }
        self.commit(store, batch).await
    }

    /// An empty batch that commits only while the mark is there.
    fn batch(&self, store: &Store) -> Batch {
        let fence = Fence { address: catalog_address(), stamp: self.mark };
        Batch { fence: Some(fence), ..Batch::new(store.session().live.space.clone()) }
    }

    /// Commits the entries of a batch that do not exist yet.
    async fn commit(&self, store: &Store, mut batch: Batch) -> Result<()> {
        let rejection = match store.engine().commit(batch.clone()).await? {
            Outcome::Committed(_) => return Ok(()),
            Outcome::Rejected(rejection) => rejection,
        };
        self.check_mark(store, &rejection)?;
        // An interrupted restore, or a batch whose answer was lost, already wrote some of the
        // entries.
        let addresses: Vec<Address> =
            batch.entries.iter().map(|entry| entry.address.clone()).collect();
        let found = store.engine().get(&store.session().live.space, &addresses).await?;
        let mut left = Vec::new();
        for (entry, found) in batch.entries.into_iter().zip(found) {
            match found {
                None => left.push(entry),
                Some(cell) if entry.effect == Some(effect(cell.clone())) => {}
                Some(_) => return Err(foreign(store, &entry.address)),
            }
        }
        batch.entries = left;
        match store.engine().commit(batch).await? {
            Outcome::Committed(_) => Ok(()),
            Outcome::Rejected(rejection) => {
                self.check_mark(store, &rejection)?;
                Err(disturbed(store))
            }
        }
    }

    fn check_mark(&self, store: &Store, rejection: &Rejection) -> Result<()> {
        if rejection.cause == Cause::Fence { Err(disturbed(store)) } else { Ok(()) }
    }

    /// Replaces the mark by the catalog: from now on everyone sees the space.
    async fn unveil(self, store: &Store) -> Result<()> {
        let mut batch = Batch::new(store.session().live.space.clone());
        for address in [catalog_address(), epoch_address()] {
            let kept = self.catalog.iter().find(|(known, _)| *known == address);
            let effect = kept.map_or(Effect::Delete, |(_, cell)| effect(cell.clone()));
            batch.push(address, Some(Condition::Unchanged(self.mark)), Some(effect));
        }
        match store.engine().commit(batch).await? {
            Outcome::Committed(_) => Ok(()),
            Outcome::Rejected(_) => Err(disturbed(store)),
        }
    }
}

/// The mark in the space and the backup that it names; `None` if the space is empty. Refuses a
/// space that is in use.
async fn marked(store: &Store) -> Result<Option<(Stamp, String)>> {
    let space = &store.session().live.space;
    let catalog = store.engine().get_one(space, &catalog_address()).await?;
    if let Some(cell) = catalog {
        let backup = cell.bytes().and_then(|bytes| restored_backup(bytes));
        return match backup {
            Some(backup) => Ok(Some((cell.stamp, backup))),
            None => Err(in_use(store).with("reason", "it has a schema")),
        };
    }
    let capabilities = store.engine().capabilities();
    if capabilities.keeps_log && store.engine().log_bounds(space).await? != LogBounds::EMPTY {
        return Err(in_use(store).with("reason", "it has a log"));
    }
    match store.engine().areas(space).await?.is_empty() {
        true => Ok(None),
        false => Err(in_use(store).with("reason", "it has keys")),
    }
}

async fn put_mark(store: &Store, backup: &str) -> Result<Stamp> {
    let stamp = Version::first().stamp();
    let mut batch = Batch::new(store.session().live.space.clone());
    for address in [catalog_address(), epoch_address()] {
        let put = Effect::Put { stamp, bytes: restoring_mark(backup).into() };
        batch.push(address, Some(Condition::Absent), Some(put));
    }
    match store.engine().commit(batch).await? {
        Outcome::Committed(_) => Ok(stamp),
        Outcome::Rejected(_) => Err(disturbed(store)),
    }
}

/// Makes the log begin at the position where the backup's log begins.
async fn begin_log(store: &Store, log: Kept) -> Result<()> {
    let space = &store.session().live.space;
    let capabilities = store.engine().capabilities();
    if !capabilities.keeps_log {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the backup has a log, and this engine keeps none",
        )
        .with("engine", capabilities.engine));
    }
    if store.engine().log_bounds(space).await? == LogBounds::EMPTY {
        store.engine().extend_log(space, log.oldest, &[]).await?;
    }
    Ok(())
}

/// Appends the entries that the log does not have yet.
async fn extend_log(store: &Store, entries: Vec<LogEntry>) -> Result<()> {
    let space = &store.session().live.space;
    let bytes_max = BATCH_BYTES.min(store.engine().capabilities().batch_bytes_max);
    let next = store.engine().log_bounds(space).await?.next;
    let mut left = entries.into_iter().filter(|entry| entry.position >= next).peekable();
    while let Some(first) = left.next() {
        let (at, mut bytes) = (first.position, first.bytes.len());
        let mut together = vec![first.bytes];
        while let Some(entry) = left.next_if(|entry| bytes + entry.bytes.len() <= bytes_max) {
            bytes += entry.bytes.len();
            together.push(entry.bytes);
        }
        store.engine().extend_log(space, at, &together).await?;
    }
    Ok(())
}

/// The effect that creates this cell where there is none.
fn effect(cell: Cell) -> Effect {
    let stamp = cell.stamp;
    match cell.content {
        Content::Bytes(bytes) => Effect::Put { stamp, bytes },
        Content::Integers(integers) => {
            let addition = |(name, delta)| Addition { name, delta, min: None, max: None };
            Effect::Add { stamp, additions: integers.into_iter().map(addition).collect() }
        }
    }
}

fn in_use(store: &Store) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "only an empty space can be made from a backup; take another space or folder",
    )
    .with("space", store.space_name())
}

fn foreign(store: &Store, address: &Address) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "the space has something else at a key of the backup; take another space or folder",
    )
    .with("space", store.space_name())
    .with("area", address.area.name())
    .with("key", ShowKey(&address.key))
}

fn disturbed(store: &Store) -> Error {
    Error::new(ErrorKind::Contention, "somebody else restored or wrote to this space meanwhile")
        .with("space", store.space_name())
        .with_retry(false)
}
