//! The parts that keys are made of.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::OwnKind;
use crate::engine::{Stamp, percent};

/// What begins a hash that stands for a text.
pub(super) const HASHED: &str = "%sha256.";

/// Enough for most keys to be made without moving them.
const TYPICAL_BYTES: usize = 96;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The SHA-256 of something that may be too long for a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Of these bytes, one part after the other.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        Digest(hash.finalize().into())
    }

    /// As it stands in a key; `None` for what is none.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = hex_value(digits[0])? << 4 | hex_value(digits[1])?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Any bytes, or a hash of those that are too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text<'k> {
    Whole(Cow<'k, [u8]>),
    Hashed(Digest),
}

impl<'k> Text<'k> {
    /// A text that takes at most so many bytes of a key, unless its hash takes more.
    pub(super) fn within(room: usize, text: &'k [u8]) -> Self {
        match percent::escaped_len(text, Some(b':')) <= room {
            true => Text::Whole(text.into()),
            false => Text::Hashed(Digest::of(&[text])),
        }
    }
}

/// The value of a lower-case hex digit.
pub(super) fn hex_value(digit: u8) -> Option<u8> {
    HEX_DIGITS.iter().position(|&known| known == digit).map(|value| value as u8)
}

/// A key while it is written. Writing into memory cannot fail.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn of(kind: OwnKind) -> Self {
        let mut key = Vec::with_capacity(TYPICAL_BYTES);
        key.extend_from_slice(kind.words().as_bytes());
        Writer(key)
    }

    /// A name with the colon behind it.
    pub(super) fn name(self, name: &str) -> Self {
        self.text(name.as_bytes()).colon()
    }

    pub(super) fn colon(self) -> Self {
        self.text(b":")
    }

    pub(super) fn text(mut self, text: &[u8]) -> Self {
        self.0.extend_from_slice(text);
        self
    }

    pub(super) fn number(mut self, number: u64) -> Self {
        let _ = write!(self.0, "{number}");
        self
    }

    pub(super) fn page(mut self, page: u32) -> Self {
        let _ = write!(self.0, "{page:04}");
        self
    }

    pub(super) fn time(mut self, at: u64) -> Self {
        let _ = write!(self.0, "{at:013}");
        self
    }

    /// The incarnation and the revision of a version.
    pub(super) fn version(self, version: Stamp) -> Self {
        let mut revision = [0; 8];
        revision.copy_from_slice(&version.0[16..]);
        self.incarnation(version).colon().revision(u64::from_be_bytes(revision))
    }

    pub(super) fn incarnation(self, version: Stamp) -> Self {
        self.hex(&version.0[..16])
    }

    pub(super) fn revision(mut self, revision: u64) -> Self {
        let _ = write!(self.0, "{revision:020}");
        self
    }

    pub(super) fn escaped(mut self, text: &[u8]) -> Self {
        percent::escape(text, Some(b':'), &mut self.0);
        self
    }

    pub(super) fn digest(self, digest: &Digest) -> Self {
        self.hex(&digest.0)
    }

    /// A hash that stands for a text.
    pub(super) fn hashed(self, digest: &Digest) -> Self {
        self.text(HASHED.as_bytes()).digest(digest)
    }

    pub(super) fn any_text(self, text: &Text<'_>) -> Self {
        match text {
            Text::Whole(text) => self.escaped(text),
            Text::Hashed(digest) => self.hashed(digest),
        }
    }

    fn hex(mut self, bytes: &[u8]) -> Self {
        let digit = |value: u8| HEX_DIGITS[usize::from(value)];
        self.0.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
        self
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.0.into()
    }
}
