//! Checks a backup without a store.

use std::io;

use super::info::BackupInfo;
use super::reader::Reader;
use crate::error::{Error, ErrorKind, Result};

/// How many bytes one read from a file asks for.
const BUFFER_BYTES: usize = 256 << 10;

/// Reads the bytes of a backup as they come, in pieces of any size, and checks them.
pub struct BackupCheck(Reader);

impl Default for BackupCheck {
    fn default() -> Self {
        BackupCheck(Reader::new())
    }
}

impl BackupCheck {
    /// A check that has read nothing yet.
    pub fn new() -> Self {
        BackupCheck::default()
    }

    /// Takes the next bytes. Fails at the first part of the backup that was damaged.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.push(bytes);
        while self.0.next()?.is_some() {}
        Ok(())
    }

    /// A summary of the backup. Fails if a part of it has not come.
    pub fn finish(self) -> Result<BackupInfo> {
        self.0.finish()
    }
}

impl BackupInfo {
    /// Reads a backup to its end, and fails if a byte of it is wrong or missing. It needs no store.
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

/// The error for a file that cannot be read.
pub(crate) fn unread(source: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the backup cannot be read")
        .with("reason", &source)
        .with_source(source)
}
