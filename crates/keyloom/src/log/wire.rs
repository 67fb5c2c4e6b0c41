//! Encodes numbers, texts and integers, for log entries and backups.
//!
//! | what | bytes | example |
//! | --- | --- | --- |
//! | number | seven bits a byte, lowest first, the top bit set on all bytes but the last | 300 is `ac 02` |
//! | text | its length as a number, then its bytes | `ab` is `02 61 62` |
//! | address | area (text), key (text) | |
//! | integers | how many, then each a name (text) and a value, mapped from 0, -1, 1, -2 … to the numbers 0, 1, 2, 3 … | `{n: -1}` is `01 01 6e 01` |

use bytes::{Buf, Bytes};

use crate::engine::{Address, Area, Stamp};

/// The most bytes of a number: 64 bits, seven in each byte.
const NUMBER_BYTES_MAX: usize = 10;

/// Writes values one after another.
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    pub(crate) fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.count(text.len());
        self.0.extend_from_slice(text);
    }

    pub(crate) fn stamp(&mut self, stamp: Stamp) {
        self.0.extend_from_slice(&stamp.0);
    }

    pub(crate) fn address(&mut self, address: &Address) {
        self.text(address.area.name().as_bytes());
        self.text(&address.key);
    }

    pub(crate) fn integers<'i>(&mut self, integers: impl ExactSizeIterator<Item = (&'i str, i64)>) {
        self.count(integers.len());
        for (name, value) in integers {
            self.text(name.as_bytes());
            self.number(((value << 1) ^ (value >> 63)) as u64);
        }
    }
}

/// The bytes that are left to read. Every method gives `None` if the bytes end too early or make no
/// sense. Texts share the input's bytes, without a copy.
pub(crate) struct In(pub(crate) Bytes);

impl In {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn integers(&mut self) -> Option<Vec<(String, i64)>> {
        self.many(|rest| {
            let name = rest.string()?;
            let value = rest.number()?;
            Some((name, (value >> 1) as i64 ^ -((value & 1) as i64)))
        })
    }

    pub(crate) fn address(&mut self) -> Option<Address> {
        let area = Area::known(&self.string()?).ok()?;
        Some(Address::new(area, self.text()?))
    }

    pub(crate) fn stamp(&mut self) -> Option<Stamp> {
        let stamp = Stamp(*self.0.first_chunk()?);
        self.0.advance(Stamp::BYTES);
        Some(stamp)
    }

    /// A count and that many items. Each item has at least one byte, so a wrong count cannot
    /// reserve more memory than there are bytes.
    pub(crate) fn many<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.count().filter(|count| *count <= self.0.len())?;
        (0..count).map(|_| item(self)).collect()
    }

    pub(crate) fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.into()).ok()
    }

    pub(crate) fn text(&mut self) -> Option<Bytes> {
        let length = self.count().filter(|length| *length <= self.0.len())?;
        Some(self.0.split_to(length))
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
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

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.0.first()?;
        self.0.advance(1);
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn examples_of_the_table() {
        let mut out = Out(Vec::new());
        out.number(300);
        out.text(b"ab");
        out.integers([("n", -1)].into_iter());
        assert_eq!(out.0, b"\xac\x02\x02ab\x01\x01n\x01");
        let mut rest = In(out.0.into());
        assert_eq!(rest.number().unwrap(), 300);
        assert_eq!(rest.string().unwrap(), "ab");
        assert_eq!(rest.integers().unwrap(), [("n".to_owned(), -1)]);
        assert!(rest.is_empty() && rest.byte().is_none());
    }
}
