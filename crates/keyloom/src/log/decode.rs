//! Decodes log entries.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::entry::{ADDED, Author, Became, DELETED, Entry, FORMAT, PUT, Told};
use super::wire::In;
use crate::engine::{Addition, Address, Effect, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;

impl Entry {
    /// Decodes an entry. Contents share the given bytes, without a copy.
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
        let entry = rest.entry().filter(|_| rest.is_empty());
        entry.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "an entry of the log cannot be understood")
        })
    }

    /// The time of the batch, read alone.
    pub(crate) fn time(bytes: &Bytes) -> Result<u64> {
        let mut rest = In(bytes.clone());
        let time = rest.byte().filter(|format| *format == FORMAT).and_then(|_| rest.number());
        time.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "an entry of the log cannot be understood")
        })
    }
}

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

    /// A place plus 1, or 0 for none.
    fn place(&mut self) -> Option<Option<usize>> {
        Some(self.count()?.checked_sub(1))
    }
}
