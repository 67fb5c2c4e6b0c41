//! Keyloom keeps records and every index over them consistent on any key-value store.

mod error;
#[allow(dead_code, unused, clippy::todo)]
mod key;

pub mod engine;

pub use error::{Error, ErrorKind, Fate, Result};

/// Entrances for the fuzz targets; not part of the API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use key::fuzzing;
