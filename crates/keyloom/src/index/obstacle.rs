//! What stands in the way of an index.

use std::fmt;

use bytes::Bytes;

use super::pair::Pair;
use crate::engine::ShowKey;
use crate::error::{Error, ErrorKind};
use crate::key::shortened;

/// How many are collected before a build gives up.
pub(super) const OBSTACLES_MAX: usize = 32;

/// Something that an index cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Two records have the same key in an index in which each key is for one.
    Duplicate { value: String, records: [String; 2] },
    /// A record that cannot be read, or that does not fit.
    Unfit { kind: ErrorKind, record: String, reason: String },
}

impl Obstacle {
    /// The record of the pair has a key that another one holds.
    pub(super) fn duplicate(pair: &Pair, holder: &Bytes) -> Self {
        let values = pair.index.key.decode(&pair.entry).unwrap_or_default();
        let shown: Vec<String> = pair
            .index
            .key
            .segments()
            .zip(values)
            .map(|(segment, value)| format!("{} {}", segment.path, shortened(&value)))
            .collect();
        let records = [ShowKey(holder).to_string(), ShowKey(&pair.record).to_string()];
        Obstacle::Duplicate { value: shown.join(", "), records }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Obstacle::Duplicate { .. } => ErrorKind::UniqueConflict,
            Obstacle::Unfit { kind, .. } => *kind,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Duplicate { value, records: [first, second] } => {
                write!(f, "{value} is in {first} and in {second}")
            }
            Obstacle::Unfit { record, reason, .. } => write!(f, "{record}: {reason}"),
        }
    }
}

/// What is remembered of a failed build.
pub(super) fn reason(obstacles: &[Obstacle]) -> String {
    let shown: Vec<String> = obstacles.iter().map(Obstacle::to_string).collect();
    let more = if obstacles.len() < OBSTACLES_MAX { "" } else { "; there may be more" };
    format!("{}{more}", shown.join("; "))
}

/// The error of a failed build. Duplicates decide its kind if there are any.
pub(super) fn error(
    collection: &str,
    what: &'static str,
    name: &str,
    obstacles: &[Obstacle],
) -> Error {
    let duplicate =
        obstacles.iter().find(|obstacle| matches!(obstacle, Obstacle::Duplicate { .. }));
    let kind = duplicate.or(obstacles.first()).map_or(ErrorKind::Internal, Obstacle::kind);
    let message = match duplicate {
        Some(_) => "the index cannot be built: records have the same value",
        None => "the index cannot be built: records do not fit it",
    };
    let error = Error::new(kind, message).with("collection", collection).with(what, name);
    obstacles.iter().fold(error, |error, obstacle| error.with("problem", obstacle))
}
