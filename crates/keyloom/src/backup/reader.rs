//! Turns the bytes of a backup into its frames, in pieces of any size.

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::frame::{
    CHECKSUM_BYTES, End, FORMAT, Frame, HEADER_BYTES, Head, MAGIC, PAYLOAD_BYTES_MAX,
};
use super::info::BackupInfo;
use crate::engine::{LogEntry, Position};
use crate::error::{Error, ErrorKind, Result};

/// Reads a backup and checks it: every byte by the checksums, and that nothing is missing.
pub(crate) struct Reader {
    hash: Sha256,
    /// Bytes that were given but not read yet.
    waiting: BytesMut,
    /// How many bytes were read.
    bytes: u64,
    stage: Stage,
    head: Option<Head>,
    counted: End,
    /// The position that the next log entry must have.
    position: Option<Position>,
}

/// What must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Magic,
    Head,
    Catalog,
    Rest,
    Over,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Reader {
            hash: Sha256::new(),
            waiting: BytesMut::new(),
            bytes: 0,
            stage: Stage::Magic,
            head: None,
            counted: End::default(),
            position: None,
        }
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next frame; `None` if it needs more bytes, and after the end.
    pub(crate) fn next(&mut self) -> Result<Option<Frame>> {
        if self.stage == Stage::Magic && !self.magic()? {
            return Ok(None);
        }
        let at = self.bytes;
        if self.stage == Stage::Over {
            return match self.waiting.is_empty() {
                true => Ok(None),
                false => Err(damaged(at, "bytes follow its end")),
            };
        }
        let Some((kind, payload)) = self.framed()? else { return Ok(None) };
        let frame = Frame::read(kind, payload)
            .ok_or_else(|| damaged(at, "a part of it cannot be understood"))?;
        self.judge(&frame).map_err(|reason| damaged(at, reason))?;
        Ok(Some(frame))
    }

    /// A summary of the whole backup. Fails if its end has not come.
    pub(crate) fn finish(self) -> Result<BackupInfo> {
        match self.head {
            Some(head) if self.stage == Stage::Over => {
                Ok(BackupInfo::new(head, self.counted, self.bytes, &self.hash.finalize()))
            }
            _ => {
                let bytes = self.bytes + self.waiting.len() as u64;
                Err(damaged(bytes, "it breaks off: its end is missing"))
            }
        }
    }

    /// Reads the first line, as soon as all of it has come.
    fn magic(&mut self) -> Result<bool> {
        let begun = self.waiting.len().min(MAGIC.len());
        if self.waiting[..begun] != MAGIC[..begun] {
            return Err(no_backup(&self.waiting));
        }
        let length = MAGIC.len() + FORMAT.len();
        if self.waiting.len() < length {
            return Ok(false);
        }
        if self.waiting[MAGIC.len()..length] != *FORMAT {
            return Err(Error::new(
                ErrorKind::UnknownFormat,
                "the backup has a format that this release does not know; a newer one may",
            )
            .with("release", env!("CARGO_PKG_VERSION")));
        }
        self.take(length);
        self.stage = Stage::Head;
        Ok(true)
    }

    /// The kind and the payload of the next frame, once all of it has come and its checksum is
    /// right.
    fn framed(&mut self) -> Result<Option<(u8, Bytes)>> {
        let Some(header) = self.waiting.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [kind, length @ ..] = *header;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > PAYLOAD_BYTES_MAX {
            return Err(damaged(self.bytes, "a part of it has an impossible length"));
        }
        if self.waiting.len() < HEADER_BYTES + length + CHECKSUM_BYTES {
            return Ok(None);
        }
        let at = self.bytes;
        let payload = self.take(HEADER_BYTES + length).slice(HEADER_BYTES..);
        let due = self.hash.clone().finalize();
        if *self.take(CHECKSUM_BYTES) != due[..CHECKSUM_BYTES] {
            return Err(damaged(at, "a checksum does not hold"));
        }
        Ok(Some((kind, payload)))
    }

    fn take(&mut self, length: usize) -> Bytes {
        let taken = self.waiting.split_to(length).freeze();
        self.hash.update(&taken);
        self.bytes += length as u64;
        taken
    }

    /// Checks that the frame may come now. The error says what is wrong.
    fn judge(&mut self, frame: &Frame) -> Result<(), &'static str> {
        self.stage = match (self.stage, frame) {
            (Stage::Head, Frame::Head(head)) => {
                self.position = head.log.map(|log| log.oldest);
                self.head = Some(head.clone());
                Stage::Catalog
            }
            (Stage::Catalog, Frame::Catalog(cells)) => {
                self.counted.cells += cells.len() as u64;
                Stage::Rest
            }
            (Stage::Rest, Frame::Cells(cells)) => {
                self.counted.cells += cells.len() as u64;
                Stage::Rest
            }
            (Stage::Rest, Frame::Log(entries)) => {
                self.note_log(entries)?;
                Stage::Rest
            }
            (Stage::Rest, Frame::End(end)) => {
                let next = self.head.as_ref().and_then(|head| head.log).map(|log| log.next);
                if *end != self.counted || self.position != next {
                    return Err("it has not all that it should have");
                }
                Stage::Over
            }
            _ => return Err("its parts are not in order"),
        };
        Ok(())
    }

    fn note_log(&mut self, entries: &[LogEntry]) -> Result<(), &'static str> {
        for entry in entries {
            if self.position != Some(entry.position) {
                return Err("its log has a gap");
            }
            self.position = Some(entry.position.next());
            self.counted.log_entries += 1;
        }
        Ok(())
    }
}

fn damaged(byte: u64, reason: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, "the backup is damaged, or not all of it is there")
        .with("reason", reason)
        .with("byte", byte)
        .with("advice", "take another copy of it")
}

fn no_backup(begins: &[u8]) -> Error {
    let error = Error::new(ErrorKind::InvalidArgument, "this is no backup of Keyloom");
    match begins.first() {
        Some(b'{') => error.with("advice", "an export, which has JSON lines, is imported instead"),
        _ => error,
    }
}
