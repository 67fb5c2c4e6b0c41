//! Zeros ahead of where the journal is written.
//!
//! fjall makes each journal as a file of 64 MiB that has no blocks yet. A sync of bytes that came
//! into new blocks must also write where these blocks are, and wait for it. If the blocks are
//! there before and have been written, it writes the bytes and no more, which takes about half the
//! time. So we write zeros a stretch ahead of fjall, where a file without blocks reads as zeros
//! anyway: nobody can tell the difference.
//!
//! What must never happen is a zero over something that was written. Three rules see to it:
//!
//! 1. We know an upper bound of the place that fjall has come to, since one thread gives it all
//!    that it writes, and write only beyond.
//! 2. Of journals that were there when the store was opened we keep away: fjall goes on at the end
//!    of such a file, wherever that is.
//! 3. We look first. Where anything but zeros is read, the bound was wrong: nothing is written, and
//!    nothing is preallocated any more.
//!
//! Everything here may fail without harm; fjall meets the same disk a moment later, and tells.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::internals::Internals;
use super::journal::{journal_path, last_journal};
use super::trust::{ShortCut, Trust};

/// How far ahead zeros are written at one time. The sync after it writes them too. For a batch that
/// is larger there are none: it would have all its bytes written twice to save one wait.
const STRETCH_BYTES: u64 = 256 * 1024;

/// More than fjall writes into a journal before we first look: the making of a keyspace.
const FIRST_BYTES: u64 = 64 * 1024;

/// How much is read and written by one call.
const PIECE_BYTES: usize = 64 * 1024;

/// Places are multiples of this, so that blocks are written whole.
const BLOCK_BYTES: u64 = 4096;

/// What is known of the journal that fjall writes.
pub(super) struct JournalPreallocation {
    folder: PathBuf,
    internals: Internals,
    trust: Arc<Trust>,
    /// The number of the journal, once we have looked.
    journal: Option<u64>,
    /// The last journal that was there before the store was opened.
    inherited: Option<u64>,
    /// Where fjall has come to, at most, when it has written what was announced.
    reached: u64,
    /// Up to where there is nothing to do.
    cleared: u64,
    /// What was announced since we last looked for the next journal.
    announced: u64,
}

impl JournalPreallocation {
    /// For the folder of fjall's journals, and the last of those that are there before fjall opens
    /// it.
    pub(super) fn new(
        folder: PathBuf,
        inherited: Option<u64>,
        internals: Internals,
        trust: Arc<Trust>,
    ) -> Self {
        JournalPreallocation {
            folder,
            internals,
            trust,
            journal: None,
            inherited,
            reached: 0,
            cleared: 0,
            announced: FIRST_BYTES,
        }
    }

    /// Makes ready for a batch of these cells.
    pub(super) fn announce<'c>(
        &mut self,
        cells: impl Iterator<Item = (&'c Bytes, Option<&'c Bytes>)>,
    ) {
        if self.trust.has(ShortCut::Preallocation) {
            self.make_room(self.internals.journal_bytes_max(cells));
        }
    }

    /// Makes ready for so many bytes.
    fn make_room(&mut self, bytes: u64) {
        self.announced += bytes;
        self.reached += bytes;
        if self.reached <= self.cleared {
            return;
        }
        self.look_for_next();
        self.announced = bytes;
        if bytes > STRETCH_BYTES {
            self.cleared = self.cleared.max(next_block(self.reached));
            return;
        }
        let begun = self.cleared.max(next_block(self.reached - bytes));
        let end = next_block(self.reached) + STRETCH_BYTES;
        if let Some(journal) = self.journal.filter(|_| self.journal > self.inherited) {
            // Failing is no harm.
            let written = write_zeros(&journal_path(&self.folder, journal), begun, end);
            if written.is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
                self.trust.lose(ShortCut::Preallocation);
            }
        }
        self.cleared = end;
    }

    /// Finds the journal that fjall has gone on to, if it has. It may have written there whatever
    /// was announced since we last looked.
    fn look_for_next(&mut self) {
        let found = match self.journal {
            None => last_journal(&self.folder),
            Some(last) => (last..).find(|n| !journal_path(&self.folder, n + 1).exists()),
        };
        if found != self.journal {
            (self.journal, self.reached, self.cleared) = (found, self.announced, 0);
        }
    }
}

/// Writes zeros into a file, never beyond its end and never over anything else: where something is
/// there already, nothing is written, and that is the error.
#[cfg(unix)]
fn write_zeros(path: &Path, begin: u64, end: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt as _;

    static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];
    let file: File = OpenOptions::new().read(true).write(true).open(path)?;
    let end = end.min(file.metadata()?.len());
    // No piece is longer than the array.
    let pieces =
        || (begin..end).step_by(PIECE_BYTES).map(|at| (at, PIECE_BYTES.min((end - at) as usize)));
    let mut found = vec![0; PIECE_BYTES];
    for (at, length) in pieces() {
        file.read_exact_at(&mut found[..length], at)?;
        if found[..length] != ZEROS[..length] {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
    }
    for (at, length) in pieces() {
        file.write_all_at(&ZEROS[..length], at)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn write_zeros(_: &Path, _: u64, _: u64) -> io::Result<()> {
    Ok(())
}

fn next_block(place: u64) -> u64 {
    place.next_multiple_of(BLOCK_BYTES)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::io::Read as _;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use proptest::prelude::*;

    use super::*;

    const JOURNAL_BYTES: u64 = 1024 * 1024;

    /// For a folder as it is now.
    fn preallocation(folder: &Path) -> JournalPreallocation {
        let (inherited, trust) = (last_journal(folder), Arc::default());
        JournalPreallocation::new(folder.into(), inherited, Internals::default(), trust)
    }

    /// Writes journals as fjall does: one after the other, each from its begin, and goes on at the
    /// end of one that it finds.
    struct Writer {
        folder: PathBuf,
        number: u64,
        /// Where it is in a journal of its own; `None` in one that it found.
        at: Option<u64>,
        /// What each journal must have up to where it was written.
        written: Vec<(u64, Vec<u8>)>,
    }

    impl Writer {
        fn open(folder: &Path) -> Self {
            let (number, at) = match last_journal(folder) {
                Some(found) => (found, None),
                None => (0, Some(0)),
            };
            let mut writer = Writer { folder: folder.into(), number, at, written: Vec::new() };
            match at {
                Some(_) => writer.create(),
                None => writer.written.push((number, std::fs::read(writer.path()).unwrap())),
            }
            writer
        }

        fn path(&self) -> PathBuf {
            journal_path(&self.folder, self.number)
        }

        fn create(&mut self) {
            File::create_new(self.path()).unwrap().set_len(JOURNAL_BYTES).unwrap();
            self.at = Some(0);
            self.written.push((self.number, Vec::new()));
        }

        fn rotate(&mut self) {
            self.number += 1;
            self.create();
        }

        fn write(&mut self, bytes: usize, mark: u8) {
            let piece = vec![mark; bytes];
            self.written.last_mut().unwrap().1.extend(&piece);
            let file = OpenOptions::new().write(true).open(self.path()).unwrap();
            let at = self.at.unwrap_or_else(|| file.metadata().unwrap().len());
            file.write_all_at(&piece, at).unwrap();
            self.at = self.at.map(|at| at + bytes as u64);
        }

        /// Every journal has what was written, and zeros after it, and has not become longer.
        fn check(&self) {
            for (number, written) in &self.written {
                let found = std::fs::read(journal_path(&self.folder, *number)).unwrap();
                assert!(found.len() <= written.len().max(JOURNAL_BYTES as usize));
                let (head, tail) = found.split_at(written.len());
                assert!(head == written, "journal {number} was written over");
                assert!(
                    tail.iter().all(|byte| *byte == 0),
                    "journal {number} has something behind"
                );
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write { bytes: usize, less: usize },
        Rotate,
        Reopen,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = prop_oneof![9 => 1_usize..100_000, 1 => 250_000_usize..350_000];
        let write = (bytes, 0_usize..100)
            .prop_map(|(bytes, less)| Step::Write { bytes, less: less.min(bytes - 1) });
        let step = prop_oneof![8 => write, 2 => Just(Step::Rotate), 1 => Just(Step::Reopen)];
        prop::collection::vec(step, 1..20)
    }

    proptest! {
        #[test]
        fn nothing_that_was_written_is_written_over(steps in steps(), is_late in any::<bool>()) {
            let folder = tempfile::tempdir().unwrap();
            let mut ahead = preallocation(folder.path());
            let mut writer = Writer::open(folder.path());
            writer.write(1_000, 1);
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    // A batch takes less than was announced, and may find a journal that was made
                    // in between.
                    Step::Write { bytes, less } => {
                        ahead.make_room(bytes as u64);
                        if is_late && number % 5 == 0 {
                            writer.rotate();
                        }
                        writer.write(bytes - less, number as u8 + 2);
                    }
                    Step::Rotate => writer.rotate(),
                    Step::Reopen => {
                        writer.check();
                        for (number, written) in &writer.written {
                            let journal = journal_path(folder.path(), *number);
                            let file = OpenOptions::new().write(true).open(journal).unwrap();
                            file.set_len(written.len() as u64).unwrap();
                        }
                        ahead = preallocation(folder.path());
                        writer = Writer::open(folder.path());
                    }
                }
            }
            writer.check();
        }
    }

    #[test]
    fn blocks_are_there_before_they_are_needed() {
        let folder = tempfile::tempdir().unwrap();
        let mut ahead = preallocation(folder.path());
        let mut writer = Writer::open(folder.path());
        let blocks = |number: u64| {
            let file = File::open(journal_path(folder.path(), number)).unwrap();
            file.sync_all().unwrap();
            file.metadata().unwrap().blocks() * 512
        };
        for journal in 0..2 {
            let mut least = u64::MAX;
            for _ in 0..50 {
                ahead.make_room(10_000);
                least = least.min(blocks(journal).saturating_sub(writer.at.unwrap()));
                writer.write(9_000, 1);
            }
            let ahead = blocks(journal) - writer.at.unwrap();
            assert!(ahead >= 9_000, "journal {journal}: {ahead} bytes ahead");
            assert!(ahead <= 2 * STRETCH_BYTES, "journal {journal}: {ahead} bytes ahead");
            // In the first journal what fjall may have written is left out; in later ones, what it
            // wrote until we looked.
            assert!(journal > 0 || least >= 10_000, "only {least} bytes ahead");
            writer.rotate();
        }
        writer.check();
    }

    #[test]
    fn a_large_batch_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut ahead = preallocation(folder.path());
        let mut writer = Writer::open(folder.path());
        let blocks = || {
            let file = File::open(writer.path()).unwrap();
            file.sync_all().unwrap();
            file.metadata().unwrap().blocks() * 512
        };
        ahead.make_room(2 * STRETCH_BYTES);
        assert_eq!(blocks(), 0, "there are zeros for a large batch");
        ahead.make_room(1_000);
        ahead.make_room(10_000);
        assert!(blocks() >= STRETCH_BYTES, "the small one after it has none");
        writer.write(2 * STRETCH_BYTES as usize, 1);
        writer.write(11_000, 2);
        writer.check();
    }

    /// What everything here rests on: fjall itself writes no more than was announced.
    #[test]
    fn fjall_comes_no_further_than_was_announced() {
        let path = tempfile::tempdir().unwrap();
        let database = fjall::Database::builder(path.path())
            .journal_compression(fjall::CompressionType::None)
            .open()
            .unwrap();
        let cells = database.keyspace("cells", fjall::KeyspaceCreateOptions::default).unwrap();
        let reached = || {
            database.persist(fjall::PersistMode::SyncAll).unwrap();
            // Far more than all batches take, and far less than a journal has.
            const WRITTEN_BYTES_MAX: u64 = 4 * FIRST_BYTES;
            let journal = journal_path(path.path(), last_journal(path.path()).unwrap());
            let (mut bytes, file) = (Vec::new(), File::open(journal).unwrap());
            file.take(WRITTEN_BYTES_MAX).read_to_end(&mut bytes).unwrap();
            bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
        };
        assert!(reached() < FIRST_BYTES);
        let mut ahead = preallocation(path.path());
        ahead.make_room(1);
        let (begun, bound) = (reached(), ahead.reached);
        // The smallest cells have the most overhead for their bytes.
        for number in 0..100_u8 {
            let written: Vec<(Bytes, Option<Bytes>)> = (0..=number % 5)
                .map(|cell| (vec![cell].into(), (cell % 2 == 0).then(|| vec![1].into())))
                .collect();
            let mut batch = database.batch();
            for (key, stored) in &written {
                match stored {
                    Some(stored) => batch.insert(&cells, key.clone(), stored.clone()),
                    None => batch.remove(&cells, key.clone()),
                }
            }
            ahead.announce(written.iter().map(|(key, stored)| (key, stored.as_ref())));
            batch.commit().unwrap();
            let (came, announced) = (reached() - begun, ahead.reached - bound);
            assert!(0 < came && came <= announced, "{came} of {announced}");
        }
    }

    #[test]
    fn a_journal_that_was_found_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(journal_path(folder.path(), 7), "found").unwrap();
        let mut ahead = preallocation(folder.path());
        for _ in 0..100 {
            ahead.make_room(100_000);
        }
        assert_eq!(std::fs::read(journal_path(folder.path(), 7)).unwrap(), b"found");
    }

    /// Whatever the bound says.
    #[test]
    fn zeros_are_written_over_zeros_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut ahead = preallocation(folder.path());
        let mut writer = Writer::open(folder.path());
        for _ in 0..40 {
            ahead.make_room(10_000);
            writer.write(25_000, 7);
        }
        writer.check();
        assert!(!ahead.trust.has(ShortCut::Preallocation));
    }
}
