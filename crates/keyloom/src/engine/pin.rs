//! Shared errors about pinned snapshots.

use super::log::LogBounds;
use super::{Position, Space};
use crate::error::{Error, ErrorKind, Result};

/// The error of an engine that cannot pin a snapshot.
pub(super) fn no_pin(engine: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, "this engine cannot hold a moment of the store")
        .with("engine", engine)
        .with("advice", "use an engine that reads snapshots: memory or embedded")
}

/// The error of an engine that cannot list areas.
pub(super) fn no_areas(engine: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, "this engine cannot list the areas of a space")
        .with("engine", engine)
}

/// The error for every change to a pinned snapshot.
pub(super) fn is_pinned() -> Error {
    Error::new(
        ErrorKind::ReadOnly,
        "this is one moment of the store, which cannot be changed; write to the store itself",
    )
}

/// The result of waiting for the log of a pinned snapshot.
pub(super) fn wait_pinned(space: &Space, bounds: LogBounds, beyond: Position) -> Result<Position> {
    if bounds.next > beyond {
        return Ok(bounds.next);
    }
    Err(Error::new(
        ErrorKind::ReadOnly,
        "this is one moment of the store, whose log does not grow; watch the store itself",
    )
    .with("space", space.name())
    .with("next position", bounds.next))
}
