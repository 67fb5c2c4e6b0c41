//! Turns frames into the bytes of a backup.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::frame::{CHECKSUM_BYTES, End, FORMAT, Frame, HEADER_BYTES, Head, MAGIC};
use super::info::BackupInfo;

/// Writes a backup, frame by frame.
pub(crate) struct Writer {
    head: Head,
    hash: Sha256,
    bytes: u64,
    counted: End,
}

impl Writer {
    /// Starts a backup, and gives its first bytes.
    pub(crate) fn begin(head: Head) -> (Self, Bytes) {
        let mut writer =
            Writer { head: head.clone(), hash: Sha256::new(), bytes: 0, counted: End::default() };
        let mut out = [MAGIC, FORMAT].concat();
        writer.note(&out);
        out.extend(writer.frame(&Frame::Head(head)));
        (writer, out.into())
    }

    /// The bytes of one more frame.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Bytes {
        match frame {
            Frame::Catalog(cells) | Frame::Cells(cells) => self.counted.cells += cells.len() as u64,
            Frame::Log(entries) => self.counted.log_entries += entries.len() as u64,
            Frame::Head(_) | Frame::End(_) => {}
        }
        let payload = frame.payload();
        let mut out = Vec::with_capacity(HEADER_BYTES + payload.len() + CHECKSUM_BYTES);
        out.push(frame.kind());
        // Payloads are far below 4 GiB, and a reader refuses lengths that no writer produces.
        out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(&payload);
        self.note(&out);
        let checksum = self.hash.clone().finalize();
        let checksum = &checksum[..CHECKSUM_BYTES];
        self.note(checksum);
        out.extend_from_slice(checksum);
        out.into()
    }

    /// The last bytes, and a summary of the whole backup.
    pub(crate) fn end(mut self) -> (Bytes, BackupInfo) {
        let end = self.counted;
        let bytes = self.frame(&Frame::End(end));
        (bytes, BackupInfo::new(self.head, end, self.bytes, &self.hash.finalize()))
    }

    fn note(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}
