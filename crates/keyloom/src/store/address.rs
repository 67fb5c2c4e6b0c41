//! Store addresses: `memory:`, `memory:?conflicts=N`, `file:PATH`.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::engine::{Embedded, EmbeddedOptions, Engine, Memory};
use crate::error::{Error, ErrorKind, Result};

/// Opens the engine that an address names.
pub(super) fn open(address: &str) -> Result<Arc<dyn Engine>> {
    let unknown = |message| {
        Error::new(ErrorKind::InvalidArgument, message)
            .with("address", format_args!("{address:?}"))
            .with("known", "memory:, memory:?conflicts=N, file:PATH")
    };
    match address.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(Memory::new())),
        Some(("memory", options)) => match options.strip_prefix("?conflicts=") {
            Some(every) => match every.parse::<NonZeroU64>() {
                Ok(every) if every.get() > 1 => Ok(Arc::new(Memory::new().with_conflicts(every))),
                _ => Err(unknown("one in how many commits conflicts is a number from 2 on")),
            },
            None => Err(unknown("a store in memory has no path")),
        },
        Some(("file", "")) => Err(unknown("a store in a folder needs a path, as in file:./data")),
        Some(("file", path)) => Ok(Arc::new(Embedded::open(path, EmbeddedOptions::default())?)),
        None => Err(unknown("this is not the address of a store")
            .with("a folder would be", format_args!("file:{address}"))),
        Some(_) => Err(unknown("this is not the address of a store")),
    }
}
