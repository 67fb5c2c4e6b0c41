//! What failures of fjall mean to a caller of the engine.

use std::path::Path;

use super::super::folder;
use crate::error::{Error, ErrorKind, Fate};

/// A failure after which nothing more may be written until the store is opened again.
#[derive(Debug)]
pub(crate) struct Fault {
    /// What became of the write that met it.
    pub(crate) fate: Fate,
    /// What was reported underneath.
    pub(crate) reason: String,
}

impl Fault {
    /// The error for a write that met the fault.
    pub(crate) fn met_by_write(&self) -> Error {
        // It is not worth a retry: the store takes no writes any more.
        Error::new(
            ErrorKind::Unavailable,
            "the store failed to write, and is read-only until it is opened again",
        )
        .with("reason", &self.reason)
        .with_fate(self.fate)
        .with_retry(false)
    }

    /// The error for a `close` that could not make everything durable, or could not leave the
    /// store as it should.
    pub(crate) fn met_by_close(&self) -> Error {
        Error::new(ErrorKind::Unavailable, "the store failed to write while it was closed")
            .with("reason", &self.reason)
            .with_retry(false)
    }

    /// The error for a batch that was not written when the fault was met, or that came later.
    pub(crate) fn kept_from_writing(&self) -> Error {
        Error::new(
            ErrorKind::ReadOnly,
            "the store is read-only after a failure to write; open it again to recover",
        )
        .with("reason", &self.reason)
    }
}

/// A failure of the journal. fjall refuses before it writes anything once a thread of it has
/// failed; every other error may leave the batch in the journal.
pub(crate) fn writing(error: fjall::Error) -> Fault {
    let fate = match error {
        fjall::Error::Poisoned => Fate::DidNotHappen,
        _ => Fate::MayHaveHappened,
    };
    Fault { fate, reason: reason(&error) }
}

/// A failure that was met before anything of a batch was written.
pub(crate) fn background_failed(error: fjall::Error) -> Fault {
    Fault { fate: Fate::DidNotHappen, reason: reason(&error) }
}

/// A failure to open.
pub(crate) fn opening(path: &Path, error: fjall::Error) -> Error {
    match error {
        fjall::Error::Locked => folder::locked(path),
        error => reading(error).with("path", path.display()),
    }
}

/// A journal that fjall would cut off, since it does not know what stands there.
pub(crate) fn unknown_journal(journal: &Path) -> Error {
    Error::new(
        ErrorKind::UnknownFormat,
        "a journal of the store is of an unknown format, or damaged",
    )
    .with("path", journal.display())
    .with("advice", "nothing was changed; open it with the version of Keyloom that wrote it")
}

/// A store whose tables hold what no reader would see.
pub(crate) fn hides_what_it_has(path: &Path) -> Error {
    Error::new(
        ErrorKind::UnknownFormat,
        "this version of fjall does not show what the store's tables hold",
    )
    .with("path", path.display())
    .with("advice", "open it with the version of Keyloom that wrote it")
}

/// A failure to read.
pub(crate) fn reading(error: fjall::Error) -> Error {
    let (kind, message) = match &error {
        fjall::Error::Io(_) | fjall::Error::Storage(fjall::LsmError::Io(_)) => {
            (ErrorKind::Unavailable, "the store's files cannot be read")
        }
        fjall::Error::InvalidVersion(_)
        | fjall::Error::Storage(fjall::LsmError::InvalidVersion(_)) => {
            (ErrorKind::UnknownFormat, "the store's files are of an unknown format")
        }
        fjall::Error::Poisoned => {
            (ErrorKind::ReadOnly, "the store is read-only after a failure to write")
        }
        _ => (
            ErrorKind::Corrupt,
            "the store's files are damaged; keep them, and open a copy from before the damage",
        ),
    };
    Error::new(kind, message).with("reason", reason(&error)).with_source(error)
}

fn reason(error: &fjall::Error) -> String {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            error.to_string()
        }
        fjall::Error::Poisoned => "a thread that writes tables has failed".to_owned(),
        other => other.to_string(),
    }
}
