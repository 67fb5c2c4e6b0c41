//! What the embedded engine writes into fjall, byte by byte.
//!
//! | what | bytes | example |
//! | --- | --- | --- |
//! | key | space, `00`, area, `00`, key | `main␀␀approval:record:7` |
//! | cell of bytes | `01`, stamp (24 bytes), the bytes as they are | `01` `…` `{"id":"7"}` |
//! | cell of integers | `02`, stamp (24 bytes), the integers in the order of their names | |
//! | one integer | length of its name (1 byte), name, zigzag value as a varint | `up` = -2: `02` `75 70` `03` |
//!
//! Names of spaces and areas hold no `00`, so that a key belongs to one area, an area is one
//! range, and the order within it is the order of the keys. A varint holds seven bits a byte,
//! lowest first, with the top bit set on all but the last byte. Zigzag maps 0, -1, 1, -2 … to
//! 0, 1, 2, 3 ….

use bytes::{Buf, Bytes};

use super::super::{Address, Area, Cell, Content, Integers, Range, ShowKey, Space, Stamp};
use crate::error::{Error, ErrorKind, Result};

const KIND_BYTES: u8 = 1;
const KIND_INTEGERS: u8 = 2;
const HEADER_BYTES: usize = 1 + Stamp::BYTES;
const VARINT_BYTES_MAX: usize = 10;

/// Replaces the content of `out` by the key that fjall has for a cell.
pub(super) fn stored_key(space: &Space, area: &Area, key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    write_stored_key(space, area, key, out);
}

/// The length of the key that fjall has for a cell.
pub(super) fn stored_key_bytes(space: &Space, address: &Address) -> usize {
    space.name().len() + address.area.name().len() + 2 + address.key.len()
}

/// Appends the key that fjall has for a cell.
pub(super) fn write_stored_key(space: &Space, area: &Area, key: &[u8], out: &mut Vec<u8>) {
    out.reserve(space.name().len() + area.name().len() + 2 + key.len());
    out.extend_from_slice(space.name().as_bytes());
    out.push(0);
    out.extend_from_slice(area.name().as_bytes());
    out.push(0);
    out.extend_from_slice(key);
}

/// A range of keys as fjall has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredRange {
    /// The lowest key that belongs to it.
    pub(super) start: Vec<u8>,
    /// The lowest key above it.
    pub(super) end: Vec<u8>,
    /// How many bytes of each key name the space and the area.
    pub(super) prefix_bytes: usize,
}

/// Where a range lies in fjall.
pub(super) fn stored_range(space: &Space, range: &Range) -> StoredRange {
    let mut start = Vec::new();
    stored_key(space, &range.area, &range.start, &mut start);
    let prefix_bytes = start.len() - range.start.len();
    let mut end = start[..prefix_bytes].to_vec();
    match &range.end {
        Some(key) => end.extend_from_slice(key),
        // No name holds 01 either, so that this is the lowest key above all of the area.
        None => end[prefix_bytes - 1] = 1,
    }
    StoredRange { start, end, prefix_bytes }
}

/// The lowest key that a cell of the space can have in fjall, and the lowest above all of them.
pub(super) fn stored_space(space: &Space) -> (Vec<u8>, Vec<u8>) {
    let name = space.name().as_bytes();
    // No name holds 01.
    ([name, &[0]].concat(), [name, &[1]].concat())
}

/// The area of a key of the space.
pub(super) fn area_of(space: &Space, stored_key: &[u8]) -> Result<Area> {
    let rest = stored_key.get(space.name().len() + 1..).unwrap_or_default();
    let name = rest.split(|byte| *byte == 0).next().and_then(|name| str::from_utf8(name).ok());
    name.and_then(|name| Area::known(name).ok()).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "the area of a stored cell cannot be understood")
            .with("stored key", ShowKey(stored_key))
    })
}

/// The length of a cell of bytes, as it is stored.
pub(super) fn stored_bytes(bytes: &[u8]) -> usize {
    HEADER_BYTES + bytes.len()
}

/// Appends a cell of bytes.
pub(super) fn write_bytes(stamp: Stamp, bytes: &[u8], out: &mut Vec<u8>) {
    write_header(KIND_BYTES, stamp, out);
    out.extend_from_slice(bytes);
}

/// A cell of integers.
pub(super) fn encode_integers(stamp: Stamp, integers: &Integers) -> Vec<u8> {
    let body_bytes = integers.keys().map(|name| 1 + name.len() + VARINT_BYTES_MAX).sum::<usize>();
    let mut out = Vec::with_capacity(HEADER_BYTES + body_bytes);
    write_header(KIND_INTEGERS, stamp, &mut out);
    for (name, &value) in integers {
        // `Batch::check` refuses names over 255 bytes.
        out.push(name.len() as u8);
        out.extend_from_slice(name.as_bytes());
        write_varint(zigzag(value), &mut out);
    }
    out
}

fn write_header(kind: u8, stamp: Stamp, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&stamp.0);
}

/// The cell that fjall's bytes stand for. Bytes are shared, not copied.
pub(super) fn decode(stored_key: &[u8], stored: Bytes) -> Result<Cell> {
    decode_parts(stored).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "a stored cell cannot be understood")
            .with("stored key", ShowKey(stored_key))
    })
}

fn decode_parts(mut stored: Bytes) -> Option<Cell> {
    let (head, body) = stored.split_at_checked(HEADER_BYTES)?;
    let stamp = Stamp(head[1..].try_into().ok()?);
    let content = match head[0] {
        KIND_BYTES => {
            stored.advance(HEADER_BYTES);
            Content::Bytes(stored)
        }
        KIND_INTEGERS => Content::Integers(read_integers(body)?),
        _ => return None,
    };
    Some(Cell { stamp, content })
}

fn read_integers(mut rest: &[u8]) -> Option<Integers> {
    let mut integers = Integers::new();
    while let Some((&name_bytes, tail)) = rest.split_first() {
        let (name, tail) = tail.split_at_checked(usize::from(name_bytes))?;
        let name = std::str::from_utf8(name).ok()?;
        let (value, tail) = read_varint(tail)?;
        let is_in_order = integers.last_key_value().is_none_or(|(last, _)| last.as_str() < name);
        if name.is_empty() || !is_in_order {
            return None;
        }
        integers.insert(name.to_owned(), unzigzag(value));
        rest = tail;
    }
    Some(integers)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The value and what follows it; `None` when it is cut off or does not fit into 64 bits.
fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (place, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * place;
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn place(space: &str, area: &str, key: &[u8]) -> Vec<u8> {
        let mut out = b"left over".to_vec();
        stored_key(&Space::new(space).unwrap(), &Area::new(area).unwrap(), key, &mut out);
        out
    }

    fn encode(cell: &Cell) -> Vec<u8> {
        match &cell.content {
            Content::Integers(integers) => encode_integers(cell.stamp, integers),
            Content::Bytes(bytes) => {
                let mut out = Vec::new();
                write_bytes(cell.stamp, bytes, &mut out);
                assert_eq!(out.len(), stored_bytes(bytes));
                out
            }
        }
    }

    fn any_cell() -> impl Strategy<Value = Cell> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..300);
        let integers = proptest::collection::btree_map(".{1,20}", any::<i64>(), 0..20);
        let stamp = any::<[u8; Stamp::BYTES]>().prop_map(Stamp);
        (stamp, any::<bool>(), bytes, integers).prop_map(|(stamp, is_bytes, bytes, integers)| {
            let content =
                if is_bytes { Content::Bytes(bytes.into()) } else { Content::Integers(integers) };
            Cell { stamp, content }
        })
    }

    fn any_name() -> impl Strategy<Value = String> {
        "[A-Za-z0-9._-]{0,4}"
    }

    #[test]
    fn examples_of_the_table() {
        assert_eq!(place("main", "", b"approval:record:7"), b"main\0\0approval:record:7");
        let stamp = Stamp([7; Stamp::BYTES]);
        let bytes = Cell { stamp, content: Content::Bytes(Bytes::from_static(b"{}")) };
        assert_eq!(encode(&bytes), [&[1][..], &[7; 24], b"{}"].concat());
        let integers = Integers::from([("up".to_owned(), -2)]);
        let integers = Cell { stamp, content: Content::Integers(integers) };
        assert_eq!(encode(&integers), [&[2][..], &[7; 24], &[2], b"up", &[3]].concat());
    }

    #[test]
    fn bytes_are_shared_and_not_copied() {
        let content = Content::Bytes(Bytes::from_static(b"record"));
        let stored = Bytes::from(encode(&Cell { stamp: Stamp([0; 24]), content }));
        let cell = decode(b"k", stored.clone()).unwrap();
        assert_eq!(cell.bytes().unwrap().as_ptr(), stored[HEADER_BYTES..].as_ptr());
    }

    #[test]
    fn what_is_not_a_cell_is_corrupt() {
        let header = [2; HEADER_BYTES];
        let bodies: [&[u8]; 6] = [
            b"\x02u",                                         // a name that is cut off
            b"\x02up",                                        // no value
            b"\x02up\x80",                                    // a value that is cut off
            b"\x00\x01",                                      // an empty name
            b"\x01b\x01\x01a\x01",                            // out of order
            b"\x01a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", // over 64 bits
        ];
        for body in bodies {
            let stored = [&header[..], body].concat();
            assert_eq!(decode(b"k", stored.into()).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        for stored in [&[][..], &[1; HEADER_BYTES - 1], &[9; HEADER_BYTES]] {
            let error = decode(b"k", Bytes::copy_from_slice(stored)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(cell in any_cell()) {
            prop_assert_eq!(decode(b"k", encode(&cell).into()).unwrap(), cell);
        }

        #[test]
        fn decoding_never_panics(stored in proptest::collection::vec(0u8..4, 0..60)) {
            let _ = decode(b"k", stored.into());
        }

        #[test]
        fn a_range_holds_the_keys_of_its_own_area_and_no_other(
            (space, area) in ("[a-b]{1,2}", any_name()),
            (other_space, other_area) in ("[a-b]{1,2}", any_name()),
            start in proptest::collection::vec(any::<u8>(), 0..3),
            end in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..3)),
            key in proptest::collection::vec(any::<u8>(), 1..4),
        ) {
            let range = Range {
                area: Area::new(&area).unwrap(),
                start: start.into(),
                end: end.map(Into::into),
            };
            let stored = stored_range(&Space::new(&space).unwrap(), &range);
            let found = place(&other_space, &other_area, &key);
            let is_inside = stored.start <= found && found < stored.end;
            let belongs = space == other_space && area == other_area && range.contains(&key);
            prop_assert_eq!(is_inside, belongs);
            if is_inside {
                prop_assert_eq!(&found[stored.prefix_bytes..], &key[..]);
            }
        }
    }
}
