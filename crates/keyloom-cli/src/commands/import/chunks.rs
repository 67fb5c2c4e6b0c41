//! An input in pieces of whole lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Seek, SeekFrom, stdin};

use super::journal::State;
use crate::exit::{Failure, WRONG_INPUT};
use crate::input::unreadable;

/// A piece ends after so many bytes or lines, whichever comes first: large enough to be written
/// at speed, small enough to be repeated without regret.
const BYTES_MAX: usize = 1 << 20;
const LINES_MAX: u64 = 1000;

/// The longest line that is taken.
const LINE_BYTES_MAX: usize = 8 << 20;

/// Whole lines of an input.
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    /// The number of the first line, from 1.
    pub(super) first_line: u64,
    /// How many bytes of the input lie before the end of the piece.
    pub(super) end: u64,
}

/// The pieces of an input.
pub(super) struct Chunks {
    source: Box<dyn BufRead>,
    name: String,
    size: Option<u64>,
    offset: u64,
    lines: u64,
}

impl Chunks {
    pub(super) fn of_stdin() -> Self {
        let source = Box::new(BufReader::new(stdin()));
        Chunks { source, name: "stdin".to_owned(), size: None, offset: 0, lines: 0 }
    }

    /// The pieces of a file, behind what was imported before.
    pub(super) fn of_file(path: &str, state: &State) -> Result<Self, Failure> {
        let failed = |error| unreadable(path, &error);
        let mut file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        if size < state.bytes {
            let message = format!("{path} is shorter than what was imported of it");
            return Err(Failure::new(WRONG_INPUT, message)
                .with_hint("without --resume the import begins anew"));
        }
        // What was imported ended with a line, unless it was the last one.
        let mut end = [b'\n'];
        if (1..size).contains(&state.bytes) {
            file.seek(SeekFrom::Start(state.bytes - 1)).map_err(failed)?;
            file.read_exact(&mut end).map_err(failed)?;
        }
        if end != [b'\n'] {
            let message = format!("{path} has changed since it was imported up to a line of it");
            return Err(Failure::new(WRONG_INPUT, message)
                .with_hint("without --resume the import begins anew"));
        }
        file.seek(SeekFrom::Start(state.bytes)).map_err(failed)?;
        let source = Box::new(BufReader::new(file));
        let (name, size) = (path.to_owned(), Some(size));
        Ok(Chunks { source, name, size, offset: state.bytes, lines: state.lines })
    }

    /// The size of the input, if that is known.
    pub(super) fn size(&self) -> Option<u64> {
        self.size
    }

    /// How many lines were read.
    pub(super) fn line(&self) -> u64 {
        self.lines
    }

    /// The piece at the end, which has no lines.
    pub(super) fn end(&self) -> Chunk {
        Chunk { bytes: Vec::new(), first_line: self.lines + 1, end: self.offset }
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        let first_line = self.lines + 1;
        let mut bytes = Vec::new();
        while bytes.len() < BYTES_MAX && self.lines + 1 - first_line < LINES_MAX {
            let before = bytes.len();
            let read = self.source.read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| unreadable(&self.name, &error))?;
            if read == 0 {
                break;
            }
            self.lines += 1;
            self.offset += read as u64;
            if bytes.len() - before > LINE_BYTES_MAX {
                let message = format!("line {} of {} is too long", self.lines, self.name);
                return Err(
                    Failure::new(WRONG_INPUT, message).with_hint("a record has at most 380 kB")
                );
            }
        }
        let end = self.offset;
        Ok((!bytes.is_empty()).then_some(Chunk { bytes, first_line, end }))
    }
}
