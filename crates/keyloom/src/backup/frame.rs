//! One frame as bytes.
//!
//! | part | bytes |
//! | --- | --- |
//! | kind | `h` head, `s` catalog, `c` cells, `l` log, `e` end |
//! | length of the payload | 4, highest first |
//! | payload | head and end: JSON; catalog and cells: each an address, 24 bytes of stamp, then `01` and a text, or `02` and integers; log: the position of the first entry as a number, then each entry as a text |
//! | checksum | 8: the first of the SHA-256 of all bytes of the backup before it |
//!
//! Addresses, texts, numbers and integers are encoded as in `log/wire.rs`.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::engine::{Address, Cell, Content, LogBounds, LogEntry, Position};
use crate::log::{In, Out};

/// The beginning of every backup, up to the number of its format.
pub(super) const MAGIC: &[u8] = b"keyloom backup ";

/// The only format so far, and the end of its line.
pub(super) const FORMAT: &[u8] = b"1\n";

pub(super) const CHECKSUM_BYTES: usize = 8;

/// The kind and the length of a frame.
pub(super) const HEADER_BYTES: usize = 5;

/// No writer makes a larger payload: the largest log entry has 8 MiB.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16 << 20;

const BYTES: u8 = 1;
const INTEGERS: u8 = 2;

/// A cell with its address.
pub(crate) type Taken = (Address, Cell);

/// One part of a backup.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame {
    Head(Head),
    Catalog(Vec<Taken>),
    Cells(Vec<Taken>),
    Log(Vec<LogEntry>),
    End(End),
}

/// The origin of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// 32 hex digits that no other backup has.
    pub(crate) id: String,
    pub(crate) space: String,
    /// Milliseconds since 1970.
    pub(crate) taken_at: u64,
    /// The release of Keyloom that took it.
    pub(crate) release: String,
    /// Absent if the space has no log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<Kept>,
}

/// Which part of the log was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) oldest: Position,
    pub(crate) next: Position,
}

/// The totals of a whole backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Includes the cells of the catalog.
    pub(crate) cells: u64,
    pub(crate) log_entries: u64,
}

impl From<LogBounds> for Kept {
    fn from(LogBounds { oldest, next }: LogBounds) -> Self {
        Kept { oldest, next }
    }
}

impl From<Kept> for LogBounds {
    fn from(Kept { oldest, next }: Kept) -> Self {
        LogBounds { oldest, next }
    }
}

impl Frame {
    pub(super) fn kind(&self) -> u8 {
        match self {
            Frame::Head(_) => b'h',
            Frame::Catalog(_) => b's',
            Frame::Cells(_) => b'c',
            Frame::Log(_) => b'l',
            Frame::End(_) => b'e',
        }
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        match self {
            Frame::Head(head) => json(head),
            Frame::Catalog(cells) | Frame::Cells(cells) => of_cells(cells),
            Frame::Log(entries) => of_log(entries),
            Frame::End(end) => json(end),
        }
    }

    /// Decodes a payload; `None` if it makes no sense. Contents share its bytes.
    pub(super) fn read(kind: u8, payload: Bytes) -> Option<Self> {
        match kind {
            b'h' => serde_json::from_slice(&payload).ok().map(Frame::Head),
            b's' => cells(payload).map(Frame::Catalog),
            b'c' => cells(payload).map(Frame::Cells),
            b'l' => log(payload).map(Frame::Log),
            b'e' => serde_json::from_slice(&payload).ok().map(Frame::End),
            _ => None,
        }
    }
}

/// Structs of texts and numbers can always be written.
fn json(part: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(part).unwrap_or_default()
}

fn of_cells(cells: &[Taken]) -> Vec<u8> {
    let mut out = Out(Vec::new());
    for (address, cell) in cells {
        out.address(address);
        out.stamp(cell.stamp);
        match &cell.content {
            Content::Bytes(bytes) => {
                out.0.push(BYTES);
                out.text(bytes);
            }
            Content::Integers(integers) => {
                out.0.push(INTEGERS);
                out.integers(integers.iter().map(|(name, value)| (name.as_str(), *value)));
            }
        }
    }
    out.0
}

fn cells(payload: Bytes) -> Option<Vec<Taken>> {
    let mut rest = In(payload);
    let mut cells = Vec::new();
    while !rest.is_empty() {
        let (address, stamp) = (rest.address()?, rest.stamp()?);
        let content = match rest.byte()? {
            BYTES => Content::Bytes(rest.text()?),
            INTEGERS => Content::Integers(rest.integers()?.into_iter().collect()),
            _ => return None,
        };
        cells.push((address, Cell { stamp, content }));
    }
    Some(cells)
}

fn of_log(entries: &[LogEntry]) -> Vec<u8> {
    let mut out = Out(Vec::new());
    out.number(entries.first().map_or(0, |first| first.position.number()));
    entries.iter().for_each(|entry| out.text(&entry.bytes));
    out.0
}

fn log(payload: Bytes) -> Option<Vec<LogEntry>> {
    let mut rest = In(payload);
    let mut position = Position::from_number(rest.number()?)?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        entries.push(LogEntry { position, bytes: rest.text()? });
        position = position.next();
    }
    Some(entries)
}
