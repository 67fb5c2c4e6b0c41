//! What a key names. Bytes that no [`OwnKey`] encodes to are refused, so that each key has one name
//! and each name one key.

use std::borrow::Cow;

use super::parts::{Digest, HASHED, Text, hex_value};
use super::{OwnKey, OwnKind};
use crate::engine::{Stamp, percent};

impl<'k> OwnKey<'k> {
    /// What a key of the own area names; `None` for a key that Keyloom never makes.
    pub(crate) fn decode(key: &'k [u8]) -> Option<Self> {
        let kind = OwnKind::of(key)?;
        let mut rest = Rest(&key[kind.words().len()..]);
        let decoded = match kind {
            OwnKind::Catalog => OwnKey::Catalog,
            OwnKind::Epoch => OwnKey::Epoch,
            OwnKind::Task => {
                let (kind, collection) = (rest.name()?, rest.name()?);
                let rest = std::str::from_utf8(rest.all()).ok()?;
                match rest.split_once(':') {
                    None => OwnKey::Task { kind, collection, name: rest },
                    Some((name, page)) => {
                        OwnKey::TaskNotes { kind, collection, name, page: page_of(page)? }
                    }
                }
            }
            OwnKind::Counters => OwnKey::Counters { area: rest.name()?, record: rest.all() },
            OwnKind::AggregateCell => {
                let (collection, name) = (rest.name()?, rest.name()?);
                let generation = rest.generation()?;
                // The colon before the first value is the one behind the generation.
                let end = rest.0.iter().rposition(|&byte| byte == b':')? + 1;
                let (group, number) = rest.0.split_at(end);
                let number = number_of(number)?.try_into().ok()?;
                OwnKey::AggregateCell { collection, name, generation, group, number }
            }
            OwnKind::AggregateMark => OwnKey::AggregateMark {
                collection: rest.name()?,
                name: rest.name()?,
                generation: rest.generation()?,
                record: Digest::read(rest.all().strip_prefix(b":")?)?,
            },
            OwnKind::HistoryVersion => {
                OwnKey::HistoryVersion { collection: rest.name()?, version: rest.version()? }
            }
            OwnKind::HistoryTrace => OwnKey::HistoryTrace {
                collection: rest.name()?,
                record: rest.any_text()?,
                at: rest.digits(13)?,
                version: rest.version()?,
            },
            OwnKind::Lease => OwnKey::Lease {
                collection: rest.name()?,
                index: rest.name()?,
                entry: Digest::read(rest.all())?,
            },
            OwnKind::Answer => match rest.0.strip_prefix(HASHED.as_bytes()) {
                Some(hash) => OwnKey::HashedAnswer(Digest::read(hash)?),
                None => {
                    let user = unescaped(rest.part()?)?;
                    OwnKey::Answer { user, key: unescaped(rest.all())? }
                }
            },
            OwnKind::End => OwnKey::End { collection: rest.name()?, entry: rest.all() },
        };
        Some(decoded)
    }
}

/// The page that is written so; `None` for another spelling of it.
fn page_of(text: &str) -> Option<u32> {
    let page = text.parse().ok()?;
    (format!("{page:04}") == text).then_some(page)
}

/// What is left of a key.
pub(super) struct Rest<'k>(pub(super) &'k [u8]);

impl<'k> Rest<'k> {
    fn all(&mut self) -> &'k [u8] {
        std::mem::take(&mut self.0)
    }

    /// What stands before the next colon.
    fn part(&mut self) -> Option<&'k [u8]> {
        let colon = self.0.iter().position(|&byte| byte == b':')?;
        let (part, rest) = self.0.split_at(colon);
        self.0 = &rest[1..];
        Some(part)
    }

    pub(super) fn name(&mut self) -> Option<&'k str> {
        std::str::from_utf8(self.part()?).ok()
    }

    /// A generation; the colon behind it stays.
    pub(super) fn generation(&mut self) -> Option<u32> {
        let colon = self.0.iter().position(|&byte| byte == b':')?;
        let (number, rest) = self.0.split_at(colon);
        self.0 = rest;
        number_of(number)?.try_into().ok()
    }

    /// A number of so many digits, up to a colon or the end.
    fn digits(&mut self, digits: usize) -> Option<u64> {
        let part = self.part().unwrap_or_else(|| self.all());
        let is_number = part.len() == digits && part.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(part).ok().filter(|_| is_number)?.parse().ok()
    }

    /// The stamp of a version: its incarnation and, up to the end, its revision.
    fn version(&mut self) -> Option<Stamp> {
        let incarnation = self.part().filter(|part| part.len() == 32)?;
        let mut stamp = Stamp([0; Stamp::BYTES]);
        for (byte, digits) in stamp.0.iter_mut().zip(incarnation.chunks_exact(2)) {
            *byte = hex_value(digits[0])? << 4 | hex_value(digits[1])?;
        }
        if self.0.contains(&b':') {
            return None;
        }
        stamp.0[16..].copy_from_slice(&self.digits(20)?.to_be_bytes());
        Some(stamp)
    }

    fn any_text(&mut self) -> Option<Text<'k>> {
        let part = self.part()?;
        match part.strip_prefix(HASHED.as_bytes()) {
            Some(hash) => Digest::read(hash).map(Text::Hashed),
            None => unescaped(part).map(Text::Whole),
        }
    }
}

/// A decimal number as it is written: without a sign or leading zeros.
fn number_of(digits: &[u8]) -> Option<u64> {
    let is_number = digits.iter().all(u8::is_ascii_digit)
        && (digits[..] == *b"0" || digits.first() != Some(&b'0'));
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// The text that was escaped so.
fn unescaped(part: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text = percent::unescape(part)?;
    let mut again = Vec::with_capacity(part.len());
    percent::escape(&text, Some(b':'), &mut again);
    (again == part).then_some(Cow::Owned(text))
}
