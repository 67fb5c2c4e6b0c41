//! Judges a backup without a store.

use std::io;

use super::info::BackupInfo;
use super::reader::Reader;
use crate::error::{Error, ErrorKind, Result};

/// How much is read from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Reads the bytes of a backup as they come, in pieces of any size, and judges them.
pub struct BackupCheck(Reader);

impl Default for BackupCheck {
    fn default() -> Self {
        BackupCheck(Reader::new())
    }
}

impl BackupCheck {
    /// Before the first byte.
    pub fn new() -> Self {
        BackupCheck::default()
    }

    /// Takes the next bytes. Fails at the first part of the backup that is not as it was written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.push(bytes);
        while self.0.next()?.is_some() {}
        Ok(())
    }

    /// What the backup is. Fails if not all of it came.
    pub fn finish(self) -> Result<BackupInfo> {
        self.0.finish()
    }
}

impl BackupInfo {
    /// Reads a backup to its end, and fails if a byte of it is wrong or missing. No store is
    /// needed for it.
    pub fn read_from(source: &mut impl io::Read) -> Result<BackupInfo> {
        let mut check = BackupCheck::new();
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match source.read(&mut buffer).map_err(unread)? {
                0 => return check.finish(),
                count => check.write(&buffer[..count])?,
            }
        }
    }
}

/// What it means that a file cannot be read.
pub(crate) fn unread(source: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the backup cannot be read")
        .with("reason", &source)
        .with_source(source)
}
