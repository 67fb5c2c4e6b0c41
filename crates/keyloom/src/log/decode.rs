//! From the bytes of an entry to what it tells.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};

use super::entry::{ADDED, Author, Became, DELETED, Entry, FORMAT, PUT, Told};
use crate::engine::{Addition, Address, Area, Effect, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;

/// 64 bits, seven a byte.
const NUMBER_BYTES_MAX: usize = 10;

impl Entry {
    /// Reads an entry. Contents are shared with the bytes that are given, not copied.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self> {
        if bytes.first().is_some_and(|format| *format > FORMAT) {
            return Err(Error::new(
                ErrorKind::UnknownFormat,
                "an entry of the log has a format that this version does not know",
            )
            .with("format", bytes[0])
            .with("known", FORMAT));
        }
        let mut rest = In(bytes.clone());
        let entry = rest.entry().filter(|_| rest.0.is_empty());
        entry.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "an entry of the log cannot be understood")
        })
    }

    /// When the batch was made, read alone.
    pub(crate) fn time(bytes: &Bytes) -> Result<u64> {
        let mut rest = In(bytes.clone());
        let time = rest.byte().filter(|format| *format == FORMAT).and_then(|_| rest.number());
        time.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "an entry of the log cannot be understood")
        })
    }
}

/// What is left to read. Every method is `None` where the bytes end too early or mean nothing.
struct In(Bytes);

impl In {
    fn entry(&mut self) -> Option<Entry> {
        self.byte().filter(|format| *format == FORMAT)?;
        let at = self.number()?;
        let by = Some(self.string()?).filter(|by| !by.is_empty());
        let stamps = self.many(Self::stamp)?;
        let cells = self.many(|rest| {
            let address = rest.address()?;
            let effect = rest.effect(&stamps)?;
            Some((address, effect))
        })?;
        let changes = self.many(|rest| rest.change(&stamps, &cells))?;
        Some(Entry { author: Author { at, by }, cells, changes })
    }

    fn change(&mut self, stamps: &[Stamp], cells: &[(Address, Effect)]) -> Option<(Told, Became)> {
        let collection = self.string()?;
        let (address, became) = match self.place()? {
            None => (self.address()?, Became::Untouched),
            Some(place) => {
                let (address, effect) = cells.get(place)?;
                let became = match effect {
                    Effect::Put { stamp, bytes } => Became::Written {
                        version: Version::from_stamp(*stamp),
                        text: bytes.clone(),
                    },
                    Effect::Delete => Became::Deleted,
                    Effect::Add { .. } => return None,
                };
                (address.clone(), became)
            }
        };
        let before = match self.place()? {
            None => None,
            Some(place) => Some(Version::from_stamp(*stamps.get(place)?)),
        };
        let increments: BTreeMap<String, i64> = self.integers()?.into_iter().collect();
        Some((Told { collection, address, before, increments }, became))
    }

    fn effect(&mut self, stamps: &[Stamp]) -> Option<Effect> {
        let kind = self.byte()?;
        if kind == DELETED {
            return Some(Effect::Delete);
        }
        let stamp = *stamps.get(self.count()?)?;
        match kind {
            PUT => Some(Effect::Put { stamp, bytes: self.text()? }),
            ADDED => {
                let addition = |(name, delta)| Addition { name, delta, min: None, max: None };
                let additions = self.integers()?.into_iter().map(addition).collect();
                Some(Effect::Add { stamp, additions })
            }
            _ => None,
        }
    }

    fn integers(&mut self) -> Option<Vec<(String, i64)>> {
        self.many(|rest| {
            let name = rest.string()?;
            let value = rest.number()?;
            Some((name, (value >> 1) as i64 ^ -((value & 1) as i64)))
        })
    }

    fn address(&mut self) -> Option<Address> {
        let area = self.string()?;
        let area = if area == Area::own().name() { Area::own() } else { Area::new(&area).ok()? };
        Some(Address::new(area, self.text()?))
    }

    /// A place plus 1, or 0 for none.
    fn place(&mut self) -> Option<Option<usize>> {
        Some(self.count()?.checked_sub(1))
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let stamp = Stamp(*self.0.first_chunk()?);
        self.0.advance(Stamp::BYTES);
        Some(stamp)
    }

    /// A count and that many items. Each has a byte at least, so that a wrong count cannot ask for
    /// more memory than the entry has bytes.
    fn many<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| item(self)).collect()
    }

    fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.into()).ok()
    }

    fn text(&mut self) -> Option<Bytes> {
        let length = self.count().filter(|length| *length <= self.0.len())?;
        Some(self.0.split_to(length))
    }

    fn count(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for place in 0..NUMBER_BYTES_MAX {
            let byte = self.byte()?;
            let (bits, shift) = (u64::from(byte & 0x7f), 7 * place);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.0.first()?;
        self.0.advance(1);
        Some(byte)
    }
}
