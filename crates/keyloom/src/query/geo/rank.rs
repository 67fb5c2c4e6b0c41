//! The order of the answer: by distance, and by key at equal distance.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};

/// The position of a place in the order of the answer.
#[derive(Clone, Debug)]
pub(super) struct Rank {
    pub(super) distance_m: f64,
    pub(super) key: Bytes,
}

impl Rank {
    /// The rank as a cursor stores it: the distance's bits, then the key.
    pub(super) fn write(&self) -> Bytes {
        [&self.distance_m.to_bits().to_be_bytes()[..], &self.key[..]].concat().into()
    }

    pub(super) fn read(bytes: &Bytes) -> Result<Self> {
        match bytes.split_first_chunk::<8>() {
            Some((bits, _)) => Ok(Rank {
                distance_m: f64::from_bits(u64::from_be_bytes(*bits)),
                key: bytes.slice(8..),
            }),
            None => Err(Error::new(ErrorKind::InvalidCursor, "the cursor has another format")),
        }
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.distance_m.total_cmp(&other.distance_m).then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}
