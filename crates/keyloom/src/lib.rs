//! Keyloom keeps records and every index over them consistent on any key-value store.

mod error;
#[allow(dead_code, unused, clippy::todo)]
mod key;

pub mod engine;

pub use error::{Error, ErrorKind, Fate, Result};
