//! Backups: a space in one file, with every cell, its stamp, and the log.
//!
//! A backup is a line of text followed by frames. Each frame ends with a checksum of everything
//! before it, so that changed, lost, moved or repeated bytes are detected where they occur.
//!
//! | frame | what it holds |
//! | --- | --- |
//! | head, once | the origin of the backup, as JSON |
//! | catalog, once | the schema: the catalog's cell and that of its epoch, or none in a space without a schema |
//! | cells | some of all other cells, in the order of their areas and keys |
//! | log | some entries of the log, in order |
//! | end, once | how many cells and entries there are, as JSON |
//!
//! A restore writes the catalog last, but must check it first. So the catalog comes before the
//! cells.

mod check;
mod frame;
mod info;
mod reader;
mod writer;

pub use check::BackupCheck;
pub(crate) use check::unread;
pub(crate) use frame::{Frame, Head, Kept, Taken};
pub use info::BackupInfo;
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;
