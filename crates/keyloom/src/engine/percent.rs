//! `%XX` escaping, shared by key codecs and recipes.
//!
//! | byte | written as |
//! | --- | --- |
//! | the separator that follows, `%`, 0x00 to 0x1f, 0x7f | `%` and two upper-case hex digits |
//! | every other byte | itself |

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether `byte` is written as `%XX` in front of `separator`.
pub(crate) fn is_escaped(byte: u8, separator: Option<u8>) -> bool {
    byte == b'%' || byte < 0x20 || byte == 0x7f || Some(byte) == separator
}

/// Appends `%XX` for one byte.
pub(crate) fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends `bytes`, escaped so that `separator` does not occur in them.
pub(crate) fn escape(bytes: &[u8], separator: Option<u8>, out: &mut Vec<u8>) {
    for &byte in bytes {
        if is_escaped(byte, separator) {
            escape_byte(byte, out);
        } else {
            out.push(byte);
        }
    }
}

/// Undoes [`escape`]; `None` when a `%` is not followed by two upper-case hex digits.
pub(crate) fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (digits, tail) = tail.split_at_checked(2)?;
            out.push(hex_digit(digits[0])? << 4 | hex_digit(digits[1])?);
            rest = tail;
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

fn hex_digit(byte: u8) -> Option<u8> {
    HEX.iter().position(|&digit| digit == byte).map(|place| place as u8)
}
