//! The last batch of a journal, if the power failed while it was written.
//!
//! A disk writes the sectors of a batch in any order, and those that it did not come to read as zeros.
//! fjall drops a last batch whose end is missing, or in which something stands where it cannot. If
//! only bytes of keys and values are missing, though, all that it notices is a wrong checksum, and
//! then it does not open the database. Nobody was told of such a batch, since its sync was not over,
//! so that it is cut off here, and fjall asked again. A wrong checksum without such a sector, or with
//! other batches behind it, is damage to what was durable, and stays fjall's to refuse.
//!
//! | part of a batch | bytes |
//! | --- | --- |
//! | start | `01`, number of items (4), sequence number (8) |
//! | item | `02`, kind (1), compression (1, `00`), keyspace (8), length of the key (2), of the value (4), of the value as it is stored (4), key, value |
//! | removal of a whole keyspace | `04`, keyspace (8) |
//! | end | `03`, XXH3 of all items (8), `FJL` `03` |
//!
//! Numbers have their lowest byte first.
//!
//! What fjall cannot read it takes for the end of a journal, and cuts off. A journal that another
//! version of fjall wrote would be lost that way, so that its beginning is looked at first.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

const MAGIC: [u8; 4] = *b"FJL\x03";

/// What the magic bytes of every version begin with; the last one is its number.
const MAGIC_OF_ANY: &[u8] = b"FJL";

/// How much of a journal is looked at to tell its version.
const HEAD_BYTES: u64 = 1024 * 1024;

/// The least that a disk writes as a whole.
const SECTOR_BYTES: usize = 512;

/// Cuts off the last batch of a journal if it was written in part, and says whether it was.
pub(super) fn cut_torn_batch(journal: &Path) -> io::Result<bool> {
    let Some(place) = torn_batch(&std::fs::read(journal)?) else { return Ok(false) };
    let file = OpenOptions::new().write(true).open(journal)?;
    file.set_len(place as u64)?;
    file.sync_all()?;
    Ok(true)
}

/// Whether a journal may be given to fjall: as far as its beginning tells, it is of the version that
/// is described here, or was written in part.
pub(super) fn is_of_known_version(journal: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(journal)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(begins_as_known(&head))
}

fn begins_as_known(head: &[u8]) -> bool {
    match head.first() {
        // Nothing was written, or its first sector was not.
        None | Some(0) => true,
        Some(&START) => match Batch::read(head) {
            Some(Batch { magic, .. }) => {
                magic == MAGIC || magic[3] == 0 || !magic.starts_with(MAGIC_OF_ANY)
            }
            // It is longer than the head, or was written in part.
            None => true,
        },
        Some(_) => false,
    }
}

/// Where a last batch begins that was written in part.
fn torn_batch(journal: &[u8]) -> Option<usize> {
    let mut start = 0;
    loop {
        let batch = Batch::read(&journal[start..]).filter(|batch| batch.magic == MAGIC)?;
        let end = start + batch.bytes;
        if !batch.is_sound {
            let is_last = is_zero(&journal[end..]);
            return (is_last && lacks_a_sector(journal, start, end)).then_some(start);
        }
        start = end;
    }
}

/// Whether a sector between two places is all zeros.
fn lacks_a_sector(journal: &[u8], start: usize, end: usize) -> bool {
    let sectors = journal[..end].get(start.next_multiple_of(SECTOR_BYTES)..).unwrap_or_default();
    sectors.chunks_exact(SECTOR_BYTES).any(is_zero)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// A batch that has all its parts.
struct Batch {
    bytes: usize,
    is_sound: bool,
    magic: [u8; 4],
}

impl Batch {
    /// The batch at the beginning; `None` where something else stands.
    fn read(journal: &[u8]) -> Option<Self> {
        let mut rest = Rest(journal);
        if rest.take()? != [START] {
            return None;
        }
        let count = u32::from_le_bytes(rest.take()?);
        let _sequence_number: [u8; 8] = rest.take()?;
        let items = rest.0;
        for _ in 0..count {
            rest.pass_item()?;
        }
        let items = &items[..items.len() - rest.0.len()];
        if rest.take()? != [END] {
            return None;
        }
        let is_sound = u64::from_le_bytes(rest.take()?) == xxh3_64(items);
        let magic = rest.take()?;
        Some(Batch { bytes: journal.len() - rest.0.len(), is_sound, magic })
    }
}

/// What is left to be read.
struct Rest<'j>(&'j [u8]);

impl Rest<'_> {
    fn take<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn pass_item(&mut self) -> Option<()> {
        match self.take()? {
            [ITEM] => {
                let _kind_compression_keyspace: [u8; 10] = self.take()?;
                let key_bytes = u16::from_le_bytes(self.take()?);
                let _value_bytes: [u8; 4] = self.take()?;
                let stored_bytes = u32::from_le_bytes(self.take()?);
                let bytes = usize::from(key_bytes).checked_add(stored_bytes as usize)?;
                self.0 = self.0.get(bytes..)?;
            }
            [CLEAR] => {
                let _keyspace: [u8; 8] = self.take()?;
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::io::{Seek as _, SeekFrom, Write as _};
    use std::path::PathBuf;

    use fjall::{
        CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
    };
    use proptest::prelude::*;

    use super::super::journal::{journal_path, last_journal};
    use super::*;

    fn open(folder: &Path) -> fjall::Result<(Database, Keyspace)> {
        let database =
            Database::builder(folder).journal_compression(CompressionType::None).open()?;
        let cells = database.keyspace("cells", KeyspaceCreateOptions::default)?;
        Ok((database, cells))
    }

    fn journal(folder: &Path) -> PathBuf {
        journal_path(folder, last_journal(folder).unwrap())
    }

    /// Where something was written last, not before this place and not far behind it.
    fn reach(folder: &Path, from: usize) -> usize {
        const BATCH_BYTES_MAX: u64 = 64 * 1024;
        let mut file = File::open(journal(folder)).unwrap();
        file.seek(SeekFrom::Start(from as u64)).unwrap();
        let mut bytes = Vec::new();
        file.take(BATCH_BYTES_MAX).read_to_end(&mut bytes).unwrap();
        bytes.iter().rposition(|byte| *byte != 0).map_or(from, |last| from + last + 1)
    }

    /// Writes batches of such values, leaves the folder as a process that was killed would, with a
    /// shorter journal, and says where each batch ends.
    fn write(folder: &Path, batches: &[Vec<usize>]) -> Vec<usize> {
        let (database, cells) = open(folder).unwrap();
        let (mut ends, mut end) = (Vec::new(), reach(folder, 0));
        for (number, lengths) in batches.iter().enumerate() {
            let mut batch = database.batch().durability(Some(PersistMode::Buffer));
            for (place, length) in lengths.iter().enumerate() {
                batch.insert(&cells, format!("{number} {place}"), vec![b'v'; *length]);
            }
            batch.remove(&cells, format!("{number} gone"));
            batch.commit().unwrap();
            end = reach(folder, end);
            ends.push(end);
        }
        let path = journal(folder);
        drop((database, cells));
        OpenOptions::new().write(true).open(path).unwrap().set_len(end as u64 + 5_000).unwrap();
        ends
    }

    fn zero(folder: &Path, place: usize, bytes: usize) {
        let mut file = OpenOptions::new().write(true).open(journal(folder)).unwrap();
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        file.write_all(&vec![0; bytes]).unwrap();
    }

    fn cells_of(folder: &Path) -> fjall::Result<usize> {
        let (database, cells) = open(folder)?;
        let snapshot = database.snapshot();
        Ok(snapshot.iter(&cells).count())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// What was whole stays, whichever sectors of the last values are missing.
        #[test]
        fn a_torn_last_batch_is_cut_off(
            batches in prop::collection::vec(prop::collection::vec(1_usize..3_000, 1..4), 1..5),
            torn in prop::collection::vec(any::<bool>(), 200),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let ends = write(folder.path(), &batches);
            let bytes = std::fs::read(journal(folder.path())).unwrap();
            let last = if ends.len() > 1 { ends[ends.len() - 2] } else { 0 };
            let sectors = last.next_multiple_of(SECTOR_BYTES)..*ends.last().unwrap();
            let mut is_torn = false;
            for (place, torn) in sectors.step_by(SECTOR_BYTES).zip(torn) {
                let sector = &bytes[place..(place + SECTOR_BYTES).min(bytes.len())];
                // Where something else than a value is missing, fjall notices by itself.
                if torn && sector.iter().all(|byte| *byte == b'v') {
                    zero(folder.path(), place, SECTOR_BYTES);
                    is_torn = true;
                }
            }
            if is_torn {
                prop_assert!(cells_of(folder.path()).is_err(), "fjall needs no help any more");
            }
            prop_assert_eq!(cut_torn_batch(&journal(folder.path())).unwrap(), is_torn);
            let whole = &batches[..batches.len() - usize::from(is_torn)];
            let cells: usize = whole.iter().map(Vec::len).sum();
            prop_assert_eq!(cells_of(folder.path()).unwrap(), cells);
        }

        /// Whatever the bytes are, reading them ends, and cuts nothing off that is no batch.
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(0_u8..5, 0..200)) {
            prop_assert!(torn_batch(&bytes).is_none_or(|place| place < bytes.len()));
        }
    }

    #[test]
    fn a_journal_of_another_version_is_told_by_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let end = write(folder.path(), &[vec![100]])[0];
        let journal = journal(folder.path());
        let known = std::fs::read(&journal).unwrap();
        assert!(known[..end].ends_with(&MAGIC), "the first batch ends as described");
        let with = |place: usize, byte: u8| {
            let mut bytes = known.clone();
            bytes[place] = byte;
            std::fs::write(&journal, bytes).unwrap();
            is_of_known_version(&journal).unwrap()
        };
        assert!(with(0, START) && with(0, 0), "as it was, and without its first sector");
        assert!(!with(0, 9), "another kind of part");
        assert!(!with(end - 1, 4), "a later version");
        assert!(with(end - 1, 0) && with(end - 4, 0), "written in part");
    }

    /// A sector that others follow, and a byte of the last value: neither is a loss of power.
    #[test]
    fn damage_to_what_was_durable_is_left_to_be_refused() {
        for (batch, bytes) in [(1, SECTOR_BYTES), (2, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let ends = write(folder.path(), &[vec![2_000], vec![2_000], vec![2_000]]);
            let place = (ends[batch - 1] + 200).next_multiple_of(SECTOR_BYTES);
            zero(folder.path(), place, bytes);
            let before = std::fs::read(journal(folder.path())).unwrap();
            assert!(!cut_torn_batch(&journal(folder.path())).unwrap());
            assert!(std::fs::read(journal(folder.path())).unwrap() == before);
            assert!(cells_of(folder.path()).is_err());
        }
    }
}
