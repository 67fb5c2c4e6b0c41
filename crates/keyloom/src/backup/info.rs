//! A backup's description of itself.

use super::frame::{End, Head};
use crate::engine::LogBounds;

/// The origin and the content of a whole backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// 32 hex digits that no other backup has.
    pub id: String,
    /// The space that was backed up.
    pub space: String,
    /// When it was taken, in milliseconds since 1970. It contains everything that was acknowledged
    /// before, and nothing that was written later.
    pub taken_at_ms: u64,
    /// The release of Keyloom that took it.
    pub release: String,
    /// How many keys it has, including Keyloom's own.
    pub cells: u64,
    /// How many log entries it has.
    pub log_entries: u64,
    /// Which part of the log was kept when the backup was taken; the log continues at `next`.
    /// `None` if the space had no log.
    pub log: Option<LogBounds>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The SHA-256 of all its bytes, in hex, as `sha256sum` prints it.
    pub sha256: String,
}

impl BackupInfo {
    pub(super) fn new(head: Head, end: End, bytes: u64, digest: &[u8]) -> Self {
        let Head { id, space, taken_at, release, log } = head;
        let End { cells, log_entries } = end;
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let log = log.map(LogBounds::from);
        BackupInfo {
            id,
            space,
            taken_at_ms: taken_at,
            release,
            cells,
            log_entries,
            log,
            bytes,
            sha256,
        }
    }
}
