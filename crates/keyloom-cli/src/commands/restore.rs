//! `keyloom restore`: restores a space from a backup.

use std::fs::File;
use std::io::{self, Read, stdin};
use std::path::{Path, PathBuf};

use axum::http::Method;
use clap::Args;
use keyloom::{BackupInfo, ErrorKind};

use super::backup::{told, words};
use super::pace::Pace;
use super::verify;
use crate::cli::GlobalOptions;
use crate::exit::{Failure, WRONG_INPUT};
use crate::output::{Progress, Screen, line};
use crate::target::{Request, Target};

/// Restore a backup into an empty space
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Restore {
    /// The backup; - for standard input
    file: PathBuf,
    /// Only read the file, and print what it holds and whether it is intact
    #[arg(long)]
    check: bool,
    /// Do not verify the space afterwards
    #[arg(long, conflicts_with = "check")]
    no_verify: bool,
}

const EXAMPLES: &str = "\
Examples:
  keyloom restore monday.keyloom --check                 is the file whole?
  keyloom restore monday.keyloom --store memory:         does it restore? nothing is kept
  keyloom restore monday.keyloom --store file:./restored
  keyloom restore monday.keyloom --server http://127.0.0.1:7117 --space acme-monday
  zstd -dc monday.keyloom.zst | keyloom restore - --store file:./restored

The space must be empty; a folder that is not there is made. Nobody can use the space before all of
it is there. If a restore is interrupted, the same command goes on where it stopped.

Afterwards every index is verified, as `keyloom verify` does; ends with 1 if something was found.";

impl Restore {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let screen = Screen::of(place);
        if self.check {
            let info = self.checked()?;
            return match screen.is_for_people() {
                true => line(&format!("{} is whole: {}", self.file.display(), words(&info))),
                false => screen.json(&told(&info)),
            };
        }
        // A file can be read twice, so it is checked before anything is written.
        if self.is_file() {
            self.checked()?;
        }
        let target = Target::open_or_make(place)?;
        let request = Request::new(Method::POST, &["admin", "restore"])
            .header("content-type", "application/octet-stream");
        let answer = target.upload(request, self.open("restoring")?)?.json()?;
        match screen.is_for_people() {
            true => line(&format!("restored {} keys", answer["keys"]))?,
            false => screen.json(&answer)?,
        }
        match self.no_verify {
            true => Ok(()),
            false => verify::verify(&target, screen, Pace::default()),
        }
    }

    fn is_file(&self) -> bool {
        self.file.as_os_str() != "-"
    }

    /// Reads and checks the whole backup.
    fn checked(&self) -> Result<BackupInfo, Failure> {
        BackupInfo::read_from(&mut self.open("checking")?).map_err(|error| match error.kind() {
            ErrorKind::Unavailable => unread(&self.file, &error),
            _ => Failure::new(WRONG_INPUT, format!("{}: {error}", self.file.display())),
        })
    }

    /// The backup, with a bar that shows how much of it was read.
    fn open(&self, what: &str) -> Result<Box<dyn Read + Send>, Failure> {
        if !self.is_file() {
            return Ok(Box::new(Told { source: stdin(), progress: Progress::spinner(what) }));
        }
        let file = File::open(&self.file).map_err(|error| unread(&self.file, &error))?;
        let metadata = file.metadata().map_err(|error| unread(&self.file, &error))?;
        if metadata.is_dir() {
            let message = format!("{} is a folder, and a backup is a file", self.file.display());
            return Err(Failure::new(WRONG_INPUT, message));
        }
        let progress = Progress::bytes(metadata.len(), what);
        Ok(Box::new(Told { source: file, progress }))
    }
}

/// A reader that reports its progress.
struct Told<R> {
    source: R,
    progress: Progress,
}

impl<R: Read> Read for Told<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.progress.add(count as u64);
        Ok(count)
    }
}

fn unread(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(WRONG_INPUT, format!("{} cannot be read: {error}", path.display()))
}
