//! Store addresses: `memory:`, `file:PATH`.

use std::sync::Arc;

use crate::engine::{Embedded, EmbeddedOptions, Engine, Memory};
use crate::error::{Error, ErrorKind, Result};

/// Opens the engine that an address names.
pub(super) fn open(address: &str) -> Result<Arc<dyn Engine>> {
    let unknown = |message| {
        Error::new(ErrorKind::InvalidArgument, message)
            .with("address", format_args!("{address:?}"))
            .with("known", "memory:, file:PATH")
    };
    match address.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(Memory::new())),
        Some(("memory", _)) => Err(unknown("a store in memory has no path")),
        Some(("file", "")) => Err(unknown("a store in a folder needs a path, as in file:./data")),
        Some(("file", path)) => Ok(Arc::new(Embedded::open(path, EmbeddedOptions::default())?)),
        _ => Err(unknown("this is not the address of a store")),
    }
}
