//! The folder of a store: whose it is, in which format, and who has it open.
//!
//! | name | what |
//! | --- | --- |
//! | `FORMAT` | text; its first line is `keyloom embedded format 1` |
//! | `FORMAT.new` | `FORMAT` while it is being written |
//! | `LOCK` | text; locked by the process that has the store open, which says there who it is |
//! | `cells/` | the fjall database |
//!
//! `FORMAT` comes last when a store is created. Without it nothing was ever stored, and the next
//! open begins afresh; with it `cells/` is complete. A folder is only written to after what is in
//! it was recognised, so that a newer store, or something else altogether, stays untouched.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind as IoErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

const FORMAT_FILE: &str = "FORMAT";
const FORMAT_FILE_NEW: &str = "FORMAT.new";
const LOCK_FILE: &str = "LOCK";
const CELLS_FOLDER: &str = "cells";

const FORMAT_NUMBER: u32 = 1;
const FORMAT_PREFIX: &str = "keyloom embedded format ";
const FORMAT_REST: &str = "\
This folder is a Keyloom store. Its bytes are described in docs/formats/embedded.md.
Copy or move it as a whole, and only while no process has it open.
";
const LOCK_TEXT: &str = "Locked by the process that has this Keyloom store open.\n";
const PID: &str = "pid ";
const ADDRESS: &str = "address ";

/// A folder that this process holds the lock of, until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    is_new: bool,
    lock: File,
}

impl Drop for Folder {
    /// The lock would end with the file, but a process that is being started just now has it too,
    /// until it runs its own program.
    fn drop(&mut self) {
        // What fails here fails with the file as well, and who held the lock is told of processes
        // that are alive only.
        let _ = self.lock.set_len(LOCK_TEXT.len() as u64);
        let _ = self.lock.unlock();
    }
}

/// What a folder holds, as far as its names and its `FORMAT` tell.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Nothing, or what an open that was killed in its very first run has left.
    Nothing,
    /// A store of this format.
    Store,
}

impl Folder {
    /// Recognises the folder, creates it where it is absent, and locks it. Changes nothing when
    /// the folder holds something else than a store of this format, or when it is locked.
    pub(super) fn open(path: &Path) -> Result<Self> {
        recognise(path)?;
        create_folder(path).map_err(|error| failed("create the folder", path, error))?;
        let lock = lock(path)?;
        // Another process may have created the store since.
        let is_new = recognise(path)? == Found::Nothing;
        let folder = Folder { path: path.to_owned(), is_new, lock };
        if is_new {
            folder.sweep().map_err(|error| failed("prepare the folder", path, error))?;
        }
        // Others would be told less, and nothing else depends on it.
        let _ = sign(&folder.lock);
        Ok(folder)
    }

    /// Whether there is no store yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the fjall database is.
    pub(super) fn cells_path(&self) -> PathBuf {
        self.path.join(CELLS_FOLDER)
    }

    /// Declares the store to be complete.
    pub(super) fn finish_creation(&mut self) -> Result<()> {
        let text = format!("{FORMAT_PREFIX}{FORMAT_NUMBER}\n{FORMAT_REST}");
        write_whole(&self.path, FORMAT_FILE_NEW, FORMAT_FILE, &text)
            .map_err(|error| failed("write the format file", &self.path, error))?;
        self.is_new = false;
        Ok(())
    }

    /// Removes what a killed first open has left, and marks the folder as ours before anything
    /// else is made in it.
    fn sweep(&self) -> io::Result<()> {
        let cells = self.cells_path();
        if cells.try_exists()? {
            std::fs::remove_dir_all(cells)?;
        }
        let mut lock = OpenOptions::new().write(true).open(self.path.join(LOCK_FILE))?;
        lock.write_all(LOCK_TEXT.as_bytes())?;
        lock.sync_all()?;
        sync_folder(&self.path)
    }
}

/// Says what is in the folder, or refuses it.
fn recognise(path: &Path) -> Result<Found> {
    let names = match names_in(path) {
        Ok(names) => names,
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if error.kind() == IoErrorKind::NotADirectory => {
            return Err(Error::new(ErrorKind::InvalidArgument, "a store is a folder, not a file")
                .with("path", path.display()));
        }
        Err(error) => return Err(failed("list the folder", path, error)),
    };
    let has = |name: &str| names.iter().any(|found| found == name);
    if has(FORMAT_FILE) {
        return check_format(path).map(|()| Found::Store);
    }
    let is_known =
        |name: &String| [FORMAT_FILE_NEW, LOCK_FILE, CELLS_FOLDER].contains(&name.as_str());
    let is_begun = has(CELLS_FOLDER) || has(FORMAT_FILE_NEW);
    if names.iter().all(is_known) && (names.is_empty() || is_our_lock(path, is_begun)?) {
        return Ok(Found::Nothing);
    }
    Err(Error::new(
        ErrorKind::UnknownFormat,
        "the folder is not empty and holds something else than a Keyloom store",
    )
    .with("path", path.display())
    .with("advice", "name an empty folder, or one that does not exist"))
}

fn names_in(path: &Path) -> io::Result<Vec<String>> {
    std::fs::read_dir(path)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn check_format(path: &Path) -> Result<()> {
    let text = std::fs::read(path.join(FORMAT_FILE))
        .map_err(|error| failed("read the format file", path, error))?;
    let text = String::from_utf8_lossy(&text);
    let first_line = text.lines().next().unwrap_or_default();
    let number = first_line.strip_prefix(FORMAT_PREFIX).and_then(|rest| rest.parse::<u32>().ok());
    let message = match number {
        Some(FORMAT_NUMBER) => return Ok(()),
        Some(number) if number > FORMAT_NUMBER => "the store was written by a newer Keyloom",
        _ => "the folder's format file is not one of Keyloom's",
    };
    let shown: String = first_line.chars().take(80).collect();
    Err(Error::new(ErrorKind::UnknownFormat, message)
        .with("path", path.display())
        .with("found", format_args!("{shown:?}"))
        .with("understood", format_args!("{FORMAT_PREFIX}{FORMAT_NUMBER}")))
}

/// Whether the lock file is one that we wrote, or were about to write as the first thing.
fn is_our_lock(path: &Path, must_be_whole: bool) -> Result<bool> {
    let mut text = Vec::new();
    match File::open(path.join(LOCK_FILE)) {
        Ok(file) => file
            .take(LOCK_TEXT.len() as u64 + 1)
            .read_to_end(&mut text)
            .map_err(|error| failed("read the lock file", path, error))?,
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed("read the lock file", path, error)),
    };
    let ours = LOCK_TEXT.as_bytes();
    Ok(text.starts_with(ours) || (!must_be_whole && ours.starts_with(&text)))
}

/// Writes into the lock file which process holds it. What an earlier one said of itself goes first,
/// and our own text always stays: it tells that the folder is ours.
fn sign(mut lock: &File) -> io::Result<()> {
    if lock.metadata()?.len() > LOCK_TEXT.len() as u64 {
        lock.set_len(LOCK_TEXT.len() as u64)?;
    }
    lock.seek(SeekFrom::Start(0))?;
    lock.write_all(format!("{LOCK_TEXT}{PID}{}\n", std::process::id()).as_bytes())
}

/// Adds where the process that holds the lock, which is this one, can be asked.
pub(super) fn announce(path: &Path, address: &str) -> io::Result<()> {
    let mut lock = OpenOptions::new().append(true).open(path.join(LOCK_FILE))?;
    lock.write_all(format!("{ADDRESS}{address}\n").as_bytes())
}

/// The process that holds a lock, as it says itself.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    pid: u32,
    /// Where it can be asked.
    address: Option<String>,
}

/// Who holds the lock of a folder; `None` where nobody alive said so. A process that was killed
/// leaves its lines until the next one signs, and that is told of neither.
fn holder(path: &Path) -> Option<Holder> {
    let text = std::fs::read_to_string(path.join(LOCK_FILE)).ok()?;
    let holder = Holder::read(&text)?;
    is_alive(holder.pid).then_some(holder)
}

impl Holder {
    fn read(text: &str) -> Option<Self> {
        // Without its end a line may be a part of one.
        let whole = &text[..=text.rfind('\n')?];
        let said = |name: &str| whole.lines().rev().find_map(|line| line.strip_prefix(name));
        Some(Holder { pid: said(PID)?.parse().ok()?, address: said(ADDRESS).map(str::to_owned) })
    }
}

/// Whether there is such a process, as far as this one can tell.
fn is_alive(pid: u32) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(pid.to_string()).exists()
}

fn lock(path: &Path) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(LOCK_FILE))
        .map_err(|error| failed("open the lock file", path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(locked(path)),
        Err(TryLockError::Error(error)) => Err(failed("lock the folder", path, error)),
    }
}

/// The error for a store that is open elsewhere.
pub(super) fn locked(path: &Path) -> Error {
    let error =
        Error::new(ErrorKind::Locked, "the store is open already, in this process or in another")
            .with("path", path.display());
    let error = match holder(path) {
        None => error,
        Some(Holder { pid, address: None }) => error.with("held by process", pid),
        Some(Holder { pid, address: Some(address) }) => {
            error.with("held by process", pid).with("served at", address)
        }
    };
    error.with("advice", "close it there first; one process at a time may have a store open")
}

fn failed(action: &'static str, path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the store's folder cannot be used")
        .with("failed to", action)
        .with("path", path.display())
        .with("reason", &error)
        .with_source(error)
}

/// Creates the folder and those above it, durably: each is synced into the one above.
fn create_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    std::fs::create_dir_all(path)?;
    missing.into_iter().rev().try_for_each(|folder| match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    })
}

/// Writes a file so that, whatever happens, it is there whole or not at all.
fn write_whole(folder: &Path, name_new: &str, name: &str, text: &str) -> io::Result<()> {
    let path_new = folder.join(name_new);
    let mut file = File::create(&path_new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(path_new, folder.join(name))?;
    sync_folder(folder)
}

/// Makes the names in a folder durable. Windows has no such call and needs none.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(path)?.sync_all() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_lock_ends_with_the_folder_whoever_else_has_the_file() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path()).unwrap();
        // As a process has it that was forked and does not run its own program yet.
        let inherited = folder.lock.try_clone().unwrap();
        assert_eq!(Folder::open(path.path()).unwrap_err().kind(), ErrorKind::Locked);
        drop(folder);
        Folder::open(path.path()).unwrap();
        drop(inherited);
    }

    /// Every file below a folder with its bytes and its time of change.
    fn picture(path: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let changed = path.metadata().unwrap().modified().unwrap();
            if path.is_dir() {
                files.extend(picture(&path));
                files.insert(path, (Vec::new(), changed));
            } else {
                let bytes = std::fs::read(&path).unwrap();
                files.insert(path, (bytes, changed));
            }
        }
        files
    }

    fn assert_refused(path: &Path, kind: ErrorKind) {
        let before = picture(path);
        assert_eq!(Folder::open(path).unwrap_err().kind(), kind);
        assert_eq!(picture(path), before);
    }

    fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_that_does_not_exist_is_created_with_those_above_it() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b/c");
        assert!(Folder::open(&path).unwrap().is_new());
        assert!(path.is_dir());
    }

    #[test]
    fn a_finished_store_is_recognised_and_an_unfinished_one_begins_afresh() {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = Folder::open(parent.path()).unwrap();
        std::fs::create_dir(folder.cells_path()).unwrap();
        drop(folder);
        folder = Folder::open(parent.path()).unwrap();
        assert!(folder.is_new());
        assert!(!folder.cells_path().exists());
        std::fs::create_dir(folder.cells_path()).unwrap();
        folder.finish_creation().unwrap();
        drop(folder);
        folder = Folder::open(parent.path()).unwrap();
        assert!(!folder.is_new());
        assert!(folder.cells_path().exists());
    }

    #[test]
    fn what_is_not_ours_is_refused_and_stays_untouched() {
        let newer = format!("{FORMAT_PREFIX}{}\n", FORMAT_NUMBER + 1);
        let foreign: [&[(&str, &str)]; 8] = [
            &[("FORMAT", &newer), ("LOCK", LOCK_TEXT), ("cells/version", "FJL4")],
            &[("FORMAT", "a picture")],
            &[("FORMAT", "")],
            &[("notes.txt", "mine")],
            &[("LOCK", "held by another program")],
            &[("cells/data", "mine")],
            &[("LOCK", ""), ("cells/data", "mine")],
            &[("LOCK", LOCK_TEXT), ("cells/data", "mine"), ("notes.txt", "mine")],
        ];
        for files in foreign {
            assert_refused(folder_with(files).path(), ErrorKind::UnknownFormat);
        }
    }

    #[test]
    fn a_file_is_no_store() {
        let folder = folder_with(&[("file", "")]);
        let error = Folder::open(&folder.path().join("file")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn one_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(parent.path()).unwrap();
        assert_refused(parent.path(), ErrorKind::Locked);
        drop(folder);
        Folder::open(parent.path()).unwrap();
    }

    /// What the refusal of a locked folder tells of its holder.
    fn told(path: &Path) -> [Option<String>; 2] {
        let error = Folder::open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
        ["held by process", "served at"].map(|name| error.context_value(name).map(str::to_owned))
    }

    #[test]
    fn who_holds_the_lock_is_told() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path();
        let own = Some(std::process::id().to_string());
        let url = "http://127.0.0.1:7117".to_owned();
        let folder = Folder::open(path).unwrap();
        assert_eq!(told(path), [own.clone(), None]);
        announce(path, &url).unwrap();
        assert_eq!(told(path), [own.clone(), Some(url)]);
        drop(folder);
        assert_eq!(std::fs::read_to_string(path.join(LOCK_FILE)).unwrap(), LOCK_TEXT);
        // The next one says nothing of a server.
        let folder = Folder::open(path).unwrap();
        assert_eq!(told(path), [own, None]);
        drop(folder);
    }

    /// What a process that was killed left is told of no other.
    #[test]
    fn what_is_left_of_earlier_holders_is_not_told() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path();
        Folder::open(path).unwrap().finish_creation().unwrap();
        let lock = File::open(path.join(LOCK_FILE)).unwrap();
        lock.lock().unwrap();
        // No process has such a number.
        let dead = format!("{LOCK_TEXT}{PID}4194999\n{ADDRESS}http://127.0.0.1:1\n");
        let cut_off = format!("{LOCK_TEXT}{PID}{}", std::process::id());
        for left in [&dead, &cut_off, "", "pid\n", "pid x\n"] {
            std::fs::write(path.join(LOCK_FILE), left).unwrap();
            assert_eq!(told(path), [None, None], "{left:?}");
        }
        lock.unlock().unwrap();
        std::fs::write(path.join(LOCK_FILE), &dead).unwrap();
        let folder = Folder::open(path).unwrap();
        let own = Some(std::process::id().to_string());
        assert_eq!(told(path), [own, None]);
        drop(folder);
    }
}
