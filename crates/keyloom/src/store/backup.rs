//! Takes a backup of a space while writers go on.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::Store;
use crate::backup::{BackupInfo, Frame, Head, Taken, Writer};
use crate::engine::{
    Address, Area, Cell, Direction, Engine, EngineExt, LogBounds, Position, Range, Space,
};
use crate::error::{Error, ErrorKind, Result};
use crate::own::is_of_this_store;
use crate::record::random_bytes;
use crate::space::{catalog_address, epoch_address};

/// The approximate size of a part of a backup.
const PART_BYTES: usize = 512 << 10;

/// The most cells that one read asks for. Large cells make it fewer.
const ROWS_MAX: usize = 2_048;

/// How many cells the first read asks for, while their sizes are unknown.
const ROWS_AT_FIRST: usize = 64;

impl Store {
    /// Takes a backup of this space as it is now, while writers go on: schema, records with their
    /// versions, index entries, counters, aggregates, history and log, byte for byte.
    ///
    /// It contains everything that was acknowledged before the call, and nothing that is written
    /// later. The backup [pins](Self::pinned) a snapshot of the store until it is dropped. Fails
    /// with [`ErrorKind::Unsupported`] on an engine that cannot pin a snapshot; memory and folders
    /// can.
    ///
    /// The backup gives the bytes of one file, part by part; [`backup_to`](Self::backup_to) writes
    /// them all.
    pub async fn backup(&self) -> Result<Backup> {
        self.session().program()?;
        let pinned = self.pinned().await?;
        // Fails while the space is being restored: it holds only a part of its records then.
        pinned.session().live.reload().await?;
        let (engine, space) = (pinned.engine().clone(), pinned.session().live.space.clone());
        let bounds = match engine.capabilities().keeps_log {
            true => engine.log_bounds(&space).await?,
            false => LogBounds::EMPTY,
        };
        let head = Head {
            id: hex(&random_bytes::<16>()),
            space: space.name().to_owned(),
            taken_at: pinned.session().now(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            log: (bounds != LogBounds::EMPTY).then(|| bounds.into()),
        };
        let areas = engine.areas(&space).await?.into();
        let source = Source {
            engine,
            space,
            bounds,
            next: bounds.oldest,
            areas,
            range: None,
            rows_max: ROWS_AT_FIRST,
        };
        let (writer, first) = Writer::begin(head);
        Ok(Backup { source, stage: Stage::Begun { writer, first } })
    }

    /// As [`backup`](Self::backup), written to a file or another sink. The caller must sync a file
    /// before relying on it.
    pub async fn backup_to(&self, target: &mut (impl io::Write + Send)) -> Result<BackupInfo> {
        let mut backup = self.backup().await?;
        while let Some(part) = backup.next().await? {
            target.write_all(&part).map_err(unwritten)?;
        }
        target.flush().map_err(unwritten)?;
        // The last part was given, so the totals are known.
        backup.info().cloned().ok_or_else(|| Error::new(ErrorKind::Internal, "a backup has an end"))
    }
}

/// A backup that is being taken. It pins a snapshot of the store until it is dropped.
pub struct Backup {
    source: Source,
    stage: Stage,
}

enum Stage {
    Begun {
        writer: Writer,
        first: Bytes,
    },
    Going(Writer),
    Over(BackupInfo),
    /// A part could not be read.
    Broken,
}

impl Backup {
    /// The next bytes; `None` after the last. After an error there are no more.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        match std::mem::replace(&mut self.stage, Stage::Broken) {
            Stage::Begun { mut writer, first } => {
                let catalog = writer.frame(&Frame::Catalog(self.source.catalog().await?));
                self.stage = Stage::Going(writer);
                Ok(Some([first, catalog].concat().into()))
            }
            Stage::Going(mut writer) => match self.source.next().await? {
                Some(frame) => {
                    let bytes = writer.frame(&frame);
                    self.stage = Stage::Going(writer);
                    Ok(Some(bytes))
                }
                None => {
                    let (bytes, info) = writer.end();
                    self.stage = Stage::Over(info);
                    Ok(Some(bytes))
                }
            },
            Stage::Over(info) => {
                self.stage = Stage::Over(info);
                Ok(None)
            }
            Stage::Broken => Ok(None),
        }
    }

    /// A summary of the whole backup, once its last bytes were given.
    pub fn info(&self) -> Option<&BackupInfo> {
        match &self.stage {
            Stage::Over(info) => Some(info),
            Stage::Begun { .. } | Stage::Going(_) | Stage::Broken => None,
        }
    }
}

/// Reads the cells and the log, and knows how far it is.
struct Source {
    engine: Arc<dyn Engine>,
    space: Space,
    bounds: LogBounds,
    /// The position of the next log entry to read.
    next: Position,
    /// The areas that are still to be read, without the current one.
    areas: VecDeque<Area>,
    /// The unread rest of the current area.
    range: Option<Range>,
    rows_max: usize,
}

impl Source {
    /// The cells of the catalog and its epoch.
    async fn catalog(&self) -> Result<Vec<Taken>> {
        let addresses = [catalog_address(), epoch_address()];
        let cells = self.engine.get(&self.space, &addresses).await?;
        let found = addresses.into_iter().zip(cells);
        Ok(found.filter_map(|(address, cell)| Some((address, cell?))).collect())
    }

    /// The next part: cells, then entries of the log; `None` if there are no more.
    async fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            // Yields, since a reader that never waits would block everyone else on its thread.
            tokio::task::yield_now().await;
            let Some(range) = self.range.take().or_else(|| self.areas.pop_front().map(Range::all))
            else {
                return self.log().await;
            };
            let cells = self.cells(range).await?;
            if !cells.is_empty() {
                return Ok(Some(Frame::Cells(cells)));
            }
        }
    }

    async fn cells(&mut self, range: Range) -> Result<Vec<Taken>> {
        let direction = Direction::Forward;
        let stretch = self.engine.scan_one(&self.space, &range, self.rows_max, direction).await?;
        if let (true, Some(last)) = (stretch.more, stretch.rows.last()) {
            self.range = Some(range.after(&last.key, direction));
        }
        let own = [catalog_address(), epoch_address()];
        let addressed = stretch
            .rows
            .into_iter()
            .map(|row| (Address { area: range.area.clone(), key: row.key }, row.cell));
        let cells: Vec<Taken> = addressed
            .filter(|(address, _)| !own.contains(address) && !is_of_this_store(address))
            .collect();
        self.rows_max = rows_for(&cells);
        Ok(cells)
    }

    async fn log(&mut self) -> Result<Option<Frame>> {
        if self.next >= self.bounds.next {
            return Ok(None);
        }
        let slice = self.engine.read_log(&self.space, self.next, ROWS_MAX, PART_BYTES).await?;
        let last = slice.entries.last().ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "the log ends before its end")
                .with("position", self.next)
                .with("next position", self.bounds.next)
        })?;
        self.next = last.position.next();
        Ok(Some(Frame::Log(slice.entries)))
    }
}

/// How many cells to read next, so that they fill about one part. Judged by the last cells' sizes.
fn rows_for(cells: &[Taken]) -> usize {
    let bytes: usize = cells.iter().map(|(address, cell)| weight(address, cell)).sum();
    let Some(each) = bytes.checked_div(cells.len()) else { return ROWS_AT_FIRST };
    // At most twice as many as before, since the next cells may be larger.
    (PART_BYTES / each.max(1)).clamp(1, (2 * cells.len()).min(ROWS_MAX))
}

fn weight(address: &Address, cell: &Cell) -> usize {
    let content = match (cell.bytes(), cell.integers()) {
        (Some(bytes), _) => bytes.len(),
        (_, Some(integers)) => integers.keys().map(|name| name.len() + size_of::<i64>()).sum(),
        (None, None) => 0,
    };
    address.key.len() + content
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unwritten(source: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the backup cannot be written")
        .with("reason", &source)
        .with_source(source)
}
