//! The source of an import: lines, in batches whose ends depend only on the lines.

use std::fs::{File, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, stdin};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::exit::{Failure, UNREACHABLE, WRONG_INPUT};
use crate::input::unreadable;

/// The most bytes of a line that are sent. Records are smaller, so the server refuses a longer line
/// and reports its number.
const LINE_BYTES_MAX: usize = 2 << 20;

/// The size and the hash of a file, to notice that it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Print {
    pub(super) bytes: u64,
    sha256: String,
}

/// A batch ends after this many lines or bytes, whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchSize {
    lines: u64,
    bytes: u64,
}

/// Large enough for fast writes. A server accepts up to 1,000 lines and 4 MiB.
pub(super) const BATCH_SIZE: BatchSize = BatchSize { lines: 1000, bytes: 1 << 20 };

/// Whole lines of a source.
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    /// The number of the first line, from 1.
    pub(super) first_line: u64,
}

/// The lines of a file, or of something that can be read only once.
pub(super) struct Source {
    reader: Box<dyn BufRead + Send>,
    name: String,
    /// The size and the hash of the file when it was opened.
    print: Option<Print>,
    /// A second handle of the file, which holds the lock.
    file: Option<File>,
    /// How many bytes and lines were read, and the hash of them.
    pub(super) offset: u64,
    pub(super) lines: u64,
    hash: Sha256,
}

impl Source {
    /// Opens a file, or stdin for `-`. Only regular files can be read again.
    pub(super) fn open(path: &str) -> Result<Self, Failure> {
        if path == "-" {
            return Ok(Source::stream("stdin", BufReader::new(stdin())));
        }
        let failed = |error| unreadable(path, &error);
        let mut file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Ok(Source::stream(path, BufReader::new(file)));
        }
        // On systems without file locks, two runs of the same import use the same keys.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let message = format!("another import of {path} is running");
            return Err(Failure::new(UNREACHABLE, message)
                .with_hint("wait for it; to import the file twice at once, copy it"));
        }
        let print = print(&mut file).map_err(failed)?;
        let again = file.try_clone().map_err(failed)?;
        let mut source = Source::stream(path, BufReader::new(again));
        (source.print, source.file) = (Some(print), Some(file));
        source.go_to(0, 0)?;
        Ok(source)
    }

    fn stream(name: &str, reader: impl BufRead + Send + 'static) -> Self {
        Source {
            reader: Box::new(reader),
            name: name.to_owned(),
            print: None,
            file: None,
            offset: 0,
            lines: 0,
            hash: Sha256::new(),
        }
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The size and the hash of the file when it was opened; `None` for sources that can be read
    /// only once.
    pub(super) fn print(&self) -> Option<&Print> {
        self.print.as_ref()
    }

    /// Continues after this many bytes and lines.
    pub(super) fn go_to(&mut self, bytes: u64, lines: u64) -> Result<(), Failure> {
        let failed = |error| unreadable(&self.name, &error);
        let (Some(file), Some(print)) = (&self.file, &self.print) else { return Ok(()) };
        let mut file = file.try_clone().map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.hash = Sha256::new();
        update(&mut self.hash, Read::by_ref(&mut file).take(bytes)).map_err(failed)?;
        // Lines that are appended meanwhile do not belong to this import.
        self.reader = Box::new(BufReader::new(file.take(print.bytes.saturating_sub(bytes))));
        (self.offset, self.lines) = (bytes, lines);
        Ok(())
    }

    /// The next batch; `None` at the end.
    pub(super) fn next(&mut self, size: BatchSize) -> Result<Option<Batch>, Failure> {
        let (first_line, start) = (self.lines + 1, self.offset);
        let mut text = Vec::new();
        while self.offset - start < size.bytes && self.lines + 1 - first_line < size.lines {
            if !self.read_line(&mut text)? {
                break;
            }
        }
        if self.offset == start {
            return self.check_end().map(|()| None);
        }
        Ok(Some(Batch { text, first_line }))
    }

    /// Reads a line, or as much of it as is sent; `false` at the end.
    fn read_line(&mut self, text: &mut Vec<u8>) -> Result<bool, Failure> {
        let mut length = 0;
        loop {
            let part = self.reader.fill_buf().map_err(|error| unreadable(&self.name, &error))?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let part = &part[..end.map_or(part.len(), |end| end + 1)];
            let kept = part.len().min(LINE_BYTES_MAX.saturating_sub(length));
            text.extend_from_slice(&part[..kept]);
            self.hash.update(part);
            let count = part.len();
            length += count;
            self.offset += count as u64;
            self.reader.consume(count);
            if count == 0 || end.is_some() {
                if length > LINE_BYTES_MAX {
                    text.push(b'\n');
                }
                self.lines += u64::from(length > 0);
                return Ok(length > 0);
            }
        }
    }

    /// Checks that the file is still the same as when it was opened.
    fn check_end(&self) -> Result<(), Failure> {
        let Some(print) = &self.print else { return Ok(()) };
        let read = Print { bytes: self.offset, sha256: hex(self.hash.clone()) };
        match read == *print {
            true => Ok(()),
            false => {
                let message = format!("{} was changed while it was imported", self.name);
                Err(Failure::new(WRONG_INPUT, message).with_hint(
                    "some lines were imported as they were, others as they are; compare them",
                ))
            }
        }
    }
}

fn print(file: &mut File) -> std::io::Result<Print> {
    let mut hash = Sha256::new();
    let bytes = update(&mut hash, file)?;
    Ok(Print { bytes, sha256: hex(hash) })
}

fn update(hash: &mut Sha256, mut from: impl Read) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(bytes);
        }
        hash.update(&buffer[..count]);
        bytes += count as u64;
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
