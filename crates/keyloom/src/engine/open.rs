//! From the address of a store to its engine: `memory:`, `memory:?conflicts=N`, `file:PATH`.
//!
//! Whoever opens a store by an address comes here: programs, the command and the server.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::{Engine, Memory};
use crate::error::{Error, ErrorKind, Result};

/// What becomes of a store that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    IsMade,
    IsAnError,
}

/// A store, as its address names it.
#[derive(Debug, PartialEq, Eq)]
enum Location<'a> {
    Memory { conflicts_every: Option<NonZeroU64> },
    Folder(&'a str),
}

/// The engines whose addresses are known and that do not exist yet. Their addresses may have
/// passwords, so that no error repeats them.
const LATER: &[(&[&str], &str)] = &[
    (&["redis", "rediss"], "Keyloom cannot keep its records in Redis yet"),
    (&["postgres", "postgresql"], "Keyloom cannot keep its records in PostgreSQL yet"),
    (&["dynamodb"], "Keyloom cannot keep its records in DynamoDB yet"),
];

const KNOWN: &str = "memory:, memory:?conflicts=N, file:PATH";

/// Opens the engine that an address names.
pub(crate) async fn open(address: &str, absent: Absent) -> Result<Arc<dyn Engine>> {
    match Location::read(address)? {
        Location::Memory { conflicts_every: None } => Ok(Arc::new(Memory::new())),
        Location::Memory { conflicts_every: Some(every) } => {
            Ok(Arc::new(Memory::new().with_conflicts(every)))
        }
        Location::Folder(path) => open_folder(path, absent),
    }
}

impl<'a> Location<'a> {
    fn read(address: &'a str) -> Result<Self> {
        let unknown = |message| {
            Error::new(ErrorKind::InvalidArgument, message)
                .with("address", format_args!("{address:?}"))
                .with("known", KNOWN)
        };
        let Some((scheme, rest)) = address.split_once(':') else {
            return Err(unknown("this is not the address of a store")
                .with("a folder would be", format_args!("file:{address}")));
        };
        match (scheme, rest) {
            ("memory", "") => Ok(Location::Memory { conflicts_every: None }),
            ("memory", options) => match options.strip_prefix("?conflicts=") {
                Some(every) => match every.parse::<NonZeroU64>() {
                    Ok(every) if every.get() > 1 => {
                        Ok(Location::Memory { conflicts_every: Some(every) })
                    }
                    _ => Err(unknown("one in how many commits conflicts is a number from 2 on")),
                },
                None => Err(unknown("a store in memory has no path")),
            },
            ("file", "") => Err(unknown("a store in a folder needs a path, as in file:./data")),
            ("file", path) => Ok(Location::Folder(path)),
            _ => match LATER.iter().find(|(schemes, _)| schemes.contains(&scheme)) {
                Some((_, message)) => {
                    Err(Error::new(ErrorKind::InvalidArgument, message).with("known", KNOWN))
                }
                None => Err(unknown("this is not the address of a store")),
            },
        }
    }
}

#[cfg(feature = "embedded")]
fn open_folder(path: &str, absent: Absent) -> Result<Arc<dyn Engine>> {
    if absent == Absent::IsAnError && has_nothing(path.as_ref()) {
        return Err(Error::new(ErrorKind::NotFound, "there is no store here").with("path", path));
    }
    Ok(Arc::new(super::Embedded::open(path, super::EmbeddedOptions::default())?))
}

/// Whether there is no such folder, or an empty one, in which a store would be made.
#[cfg(feature = "embedded")]
fn has_nothing(folder: &std::path::Path) -> bool {
    let is_empty = |mut entries: std::fs::ReadDir| entries.next().is_none();
    !folder.exists() || std::fs::read_dir(folder).is_ok_and(is_empty)
}

#[cfg(not(feature = "embedded"))]
fn open_folder(path: &str, _: Absent) -> Result<Arc<dyn Engine>> {
    Err(Error::new(
        ErrorKind::Unsupported,
        "this program was built without the engine for stores in folders",
    )
    .with("path", path)
    .with("advice", "build keyloom with its feature `embedded`, which is on by default"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    async fn refused(address: &str, absent: Absent) -> Error {
        open(address, absent).await.map(|_| address).unwrap_err()
    }

    #[tokio::test]
    async fn addresses_of_later_engines_are_known_and_not_repeated() {
        let address = "postgres://u:secret@host/d";
        let error = refused(address, Absent::IsMade).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("PostgreSQL yet"), "{error}");
        assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
    }

    #[cfg(feature = "embedded")]
    #[tokio::test]
    async fn a_store_that_must_be_there_is_not_made() {
        let parent = tempfile::tempdir().unwrap();
        for folder in [parent.path().to_owned(), parent.path().join("missing")] {
            let address = format!("file:{}", folder.display());
            assert_eq!(refused(&address, Absent::IsAnError).await.kind(), ErrorKind::NotFound);
            assert!(std::fs::read_dir(parent.path()).unwrap().next().is_none());
        }
        let address = format!("file:{}", parent.path().join("made").display());
        open(&address, Absent::IsMade).await.unwrap().close().await.unwrap();
        open(&address, Absent::IsAnError).await.unwrap().close().await.unwrap();
    }
}
