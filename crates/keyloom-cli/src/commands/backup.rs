//! `keyloom backup`: a space in one file.

use std::fs::{File, OpenOptions, rename};
use std::io::{self, IsTerminal, Read, Write, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use keyloom::{BackupCheck, BackupInfo};
use serde_json::{Value, json};

use crate::cli::GlobalOptions;
use crate::exit::{CONFLICT, FAILED, Failure, UNREACHABLE, USAGE};
use crate::output::{Progress, Screen, bytes, counted, line, moment, note, written};
use crate::target::{Request, Target};

/// Back up the space into one file, while writers go on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Backup {
    /// The file, which must not exist yet; - for standard output
    file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  keyloom backup monday.keyloom
  keyloom backup monday.keyloom --server http://127.0.0.1:7117 --space acme
  keyloom backup - | zstd > monday.keyloom.zst
  keyloom restore monday.keyloom --check                 is the file whole?
  keyloom restore monday.keyloom --store file:./restored

A backup is all of one moment: the schema, records with their versions, index entries, counters,
history and the log. Every part of it has a checksum. Each space has a backup of its own.

The file has its name only when all of it is on the disk. It holds everything that the space holds,
and the secret that cursors are signed with: keep it as you keep the store.";

/// How many bytes are copied at once.
const BUFFER_BYTES: usize = 256 << 10;

impl Backup {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let mut sink = Sink::open(&self.file)?;
        let target = Target::open(place)?;
        let mut source = target.stream(Request::get(&["admin", "backup"]))?;
        let info = {
            let progress = Progress::spinner("backing up");
            copy(&mut *source, &mut sink, |count| {
                progress.tell(&format!("backing up {}", bytes(count)));
            })?
        };
        sink.finish()?;
        let screen = Screen::of(place);
        let is_file = self.file.as_os_str() != "-";
        match (is_file, screen.is_for_people()) {
            (true, true) => line(&format!("{} has {}", self.file.display(), words(&info))),
            (true, false) => screen.json(&told(&info)),
            (false, _) => {
                note(&format!("backed up: {}", words(&info)));
                Ok(())
            }
        }
    }
}

/// Copies a backup, and checks on the way that it arrives as it was sent.
fn copy(
    source: &mut dyn Read,
    sink: &mut Sink,
    mut tell: impl FnMut(u64),
) -> Result<BackupInfo, Failure> {
    let (mut check, mut buffer, mut copied) = (BackupCheck::new(), vec![0; BUFFER_BYTES], 0);
    loop {
        let count = source.read(&mut buffer).map_err(|error| {
            Failure::new(UNREACHABLE, format!("the backup broke off: {error}"))
                .with_hint("nothing was kept of it; take it again")
        })?;
        if count == 0 {
            return check.finish().map_err(|error| broken(&error));
        }
        check.write(&buffer[..count]).map_err(|error| broken(&error))?;
        sink.write(&buffer[..count])?;
        copied += count as u64;
        tell(copied);
    }
}

fn broken(error: &keyloom::Error) -> Failure {
    Failure::new(UNREACHABLE, format!("the backup did not arrive whole: {error}"))
        .with_hint("nothing was kept of it; take it again")
}

/// The destination of a backup. A file has a temporary name until it is complete.
enum Sink {
    Output(io::Stdout),
    File { file: File, partial: PathBuf, path: PathBuf },
}

impl Sink {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return match stdout().is_terminal() {
                true => Err(Failure::new(USAGE, "a backup is not text: a terminal cannot show it")
                    .with_hint("name a file, or pass it on: keyloom backup - | zstd > FILE")),
                false => Ok(Sink::Output(stdout())),
            };
        }
        if path.exists() {
            let message = format!("{} is there already", path.display());
            return Err(Failure::new(CONFLICT, message).with_hint("name another file"));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut options = OpenOptions::new();
        let file = private(options.write(true).create(true).truncate(true)).open(&partial);
        let file = file.map_err(|error| unwritten(&partial, &error))?;
        Ok(Sink::File { file, partial, path: path.to_owned() })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::Output(output) => written(output.write_all(bytes)),
            Sink::File { file, partial, .. } => {
                file.write_all(bytes).map_err(|error| unwritten(partial, &error))
            }
        }
    }

    /// Renames the file, once all of it is on the disk.
    fn finish(self) -> Result<(), Failure> {
        match self {
            Sink::Output(mut output) => written(output.flush()),
            Sink::File { file, partial, path } => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let synced = file
                    .sync_all()
                    .and_then(|()| rename(&partial, &path))
                    .and_then(|()| File::open(folder.unwrap_or(Path::new(".")))?.sync_all());
                synced.map_err(|error| unwritten(&path, &error))
            }
        }
    }
}

/// Only the owner may read the file, on systems where files have owners.
#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(FAILED, format!("{} cannot be written: {error}", path.display()))
}

/// A summary of a backup, in words.
pub(super) fn words(info: &BackupInfo) -> String {
    let taken = moment(i64::try_from(info.taken_at_ms).unwrap_or(i64::MAX));
    let keys = counted(info.cells, "key");
    let log = match info.log {
        Some(log) => {
            let entries = counted(info.log_entries, "entry");
            format!(" and {entries} of the log, which goes on at {}", log.next)
        }
        None => String::new(),
    };
    format!(
        "{keys}{log}, of the space {} as it was at {taken}; {}, sha256 {}",
        info.space,
        bytes(info.bytes),
        info.sha256
    )
}

/// A summary of a backup, as JSON.
pub(super) fn told(info: &BackupInfo) -> Value {
    let mut told = json!({
        "id": info.id, "space": info.space, "taken_at": info.taken_at_ms, "release": info.release,
        "keys": info.cells, "log_entries": info.log_entries, "bytes": info.bytes,
        "sha256": info.sha256,
    });
    if let Some(log) = info.log {
        told["log"] = json!({ "oldest": log.oldest, "next": log.next });
    }
    told
}
