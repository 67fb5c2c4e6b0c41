//! A record's version: the incarnation of the record, and the revision within it.
//!
//! | bytes | what | example |
//! | --- | --- | --- |
//! | 0 to 5 | creation time, milliseconds since 1970, big-endian | `0199c0e2a1b2` |
//! | 6 to 15 | random, so that no two creations are alike | `7f3c…` |
//! | 16 to 23 | revision, from 1, big-endian | `0000000000000001` |
//!
//! As text: the first 16 bytes in hex, a hyphen, and the revision in decimal.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::random::random_bytes;
use crate::engine::Stamp;
use crate::error::{Error, ErrorKind};

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The state of a record at one time. Versions of one incarnation are ordered by revision. A record
/// that is deleted and created again gets a new incarnation, so that an old version never matches
/// it by accident.
///
/// It is displayed, parsed and serialized as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    incarnation: [u8; 16],
    revision: u64,
}

impl Version {
    /// The first version of a new incarnation.
    pub(crate) fn first() -> Self {
        let mut incarnation = [0; 16];
        incarnation[..6].copy_from_slice(&now_ms().to_be_bytes()[2..]);
        incarnation[6..].copy_from_slice(&random_bytes::<10>());
        Version { incarnation: above_the_last(incarnation), revision: 1 }
    }

    /// Another revision of the same incarnation.
    pub(crate) fn at_revision(self, revision: u64) -> Self {
        Version { revision, ..self }
    }

    /// Whether both belong to the same incarnation.
    pub(crate) fn is_same_incarnation(self, other: Version) -> bool {
        self.incarnation == other.incarnation
    }

    /// The version after this one.
    pub(crate) fn next(self) -> Self {
        // Overflow is no concern: at a million writes a second it takes half a million years.
        Version { revision: self.revision.saturating_add(1), ..self }
    }

    /// How often the record was written in this incarnation, including its creation.
    pub fn revision(self) -> u64 {
        self.revision
    }

    pub(crate) fn stamp(self) -> Stamp {
        let mut bytes = [0; Stamp::BYTES];
        bytes[..16].copy_from_slice(&self.incarnation);
        bytes[16..].copy_from_slice(&self.revision.to_be_bytes());
        Stamp(bytes)
    }

    pub(crate) fn from_stamp(stamp: Stamp) -> Self {
        let mut incarnation = [0; 16];
        let mut revision = [0; 8];
        incarnation.copy_from_slice(&stamp.0[..16]);
        revision.copy_from_slice(&stamp.0[16..]);
        Version { incarnation, revision: u64::from_be_bytes(revision) }
    }
}

/// A new incarnation. If it falls into the same millisecond as the last one of this process, it is
/// higher: of two incarnations of one record the later sorts higher, however quickly they follow
/// each other.
fn above_the_last(drawn: [u8; 16]) -> [u8; 16] {
    static LAST: Mutex<u128> = Mutex::new(0);
    const RANDOM_BITS: u32 = 80;
    let drawn = u128::from_be_bytes(drawn);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let is_behind = drawn <= *last && drawn >> RANDOM_BITS == *last >> RANDOM_BITS;
    *last = if is_behind { last.saturating_add(1) } else { drawn };
    last.to_be_bytes()
}

/// Milliseconds since 1970; a clock before that counts as 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A table is three times as fast as the formatter of numbers, and every answer with a
        // record has a version.
        let mut hex = [0; 32];
        for (digits, byte) in hex.chunks_exact_mut(2).zip(self.incarnation) {
            digits.copy_from_slice(&[
                HEX_DIGITS[usize::from(byte >> 4)],
                HEX_DIGITS[usize::from(byte & 15)],
            ]);
        }
        // Hex digits are always text.
        f.write_str(std::str::from_utf8(&hex).unwrap_or_default())?;
        write!(f, "-{}", self.revision)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        read(text).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                "a version is 32 lower-case hex digits, a hyphen and a number",
            )
            .with("version", format_args!("{text:?}"))
        })
    }
}

impl TryFrom<String> for Version {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

fn read(text: &str) -> Option<Version> {
    let (hex, revision) = text.split_once('-')?;
    if hex.len() != 32 || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut incarnation = [0; 16];
    for (place, byte) in incarnation.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
    }
    let parsed = Version { incarnation, revision: revision.parse().ok()? };
    (parsed.to_string() == text).then_some(parsed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    #[test]
    fn text_and_stamp_keep_the_version() {
        let version = Version::first().next().next();
        assert_eq!(version.to_string().parse::<Version>().unwrap(), version);
        assert_eq!(Version::from_stamp(version.stamp()), version);
        assert_eq!(version.revision(), 3);
        let json = serde_json::to_value(version).unwrap();
        assert_eq!(json, version.to_string());
        assert_eq!(serde_json::from_value::<Version>(json).unwrap(), version);
    }

    #[test]
    fn other_texts_are_refused() {
        let text = Version::first().to_string();
        for wrong in [
            "",
            "-1",
            &text[1..],
            &text.to_uppercase().replace('0', "A"),
            &format!("{text}x"),
            &text.replace('-', "-0"),
            &text.replace('-', "-+"),
        ] {
            assert_eq!(
                wrong.parse::<Version>().unwrap_err().kind(),
                ErrorKind::InvalidArgument,
                "{wrong}"
            );
        }
    }

    #[test]
    fn incarnations_of_one_process_rise_within_a_millisecond() {
        let made: Vec<Version> = (0..1_000).map(|_| Version::first()).collect();
        let by_time = |version: &Version| version.incarnation[..6].to_vec();
        let rises = |pair: &[Version]| pair[0] < pair[1] || by_time(&pair[0]) > by_time(&pair[1]);
        assert!(made.windows(2).all(rises), "{made:?}");
    }

    #[test]
    fn later_revisions_and_later_incarnations_sort_higher() {
        let first = Version::first();
        assert!(first < first.next());
        let stamps = (first.stamp(), first.next().stamp());
        assert!(stamps.0 < stamps.1);
    }
}
