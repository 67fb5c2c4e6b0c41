//! The grammar of key templates. These are the library's own files, linked and not copied, so
//! that a template is read at compile time exactly as it is when a schema is loaded.

#![allow(dead_code, reason = "the library also walks paths; here they are only read")]

mod path;
mod pattern;

pub(crate) use path::{Path, Step};
pub(crate) use pattern::{Pattern, PatternPart, Placeholder};
