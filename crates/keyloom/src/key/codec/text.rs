//! Text of any length, in four forms.
//!
//! | form | bytes | `a:b` before `:` |
//! | --- | --- | --- |
//! | plain | UTF-8; `%XX` for the separator, `%`, 0x00 to 0x1f and 0x7f | `a%3Ab` |
//! | sorted | UTF-8; `%XX` for 0x00 to 0x25; then `!` | `a:b!` |
//! | sorted, descending | two upper-case hex digits of 255 - byte for each byte; then `~` | `9EC59D~` |
//! | raw | UTF-8 as it is, to the end of the key | `a:b` |
//!
//! Sorted text keeps its order, because its terminator is below every byte that can follow, and it
//! escapes exactly the lowest bytes. In descending text, the terminator is above every hex digit.

use crate::engine::percent;

/// Ends sorted text: below `%`, the lowest byte that sorted text can contain.
pub(in crate::key) const SORTED_END: u8 = b'!';
/// Ends descending text: above every hex digit.
pub(in crate::key) const DESCENDING_END: u8 = b'~';
/// The highest byte that sorted text escapes: `%` itself.
pub(in crate::key) const SORTED_ESCAPED_MAX: u8 = b'%';

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Undoes `percent::escape` for this separator; `None` unless the bytes are exactly what it writes.
pub(super) fn read_plain(bytes: &[u8], separator: Option<u8>) -> Option<String> {
    if bytes.iter().any(|&byte| byte != b'%' && percent::is_escaped(byte, separator)) {
        return None;
    }
    read_escaped(bytes, |byte| percent::is_escaped(byte, separator))
}

/// Appends the text without its terminator.
pub(super) fn write_sorted(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        if byte <= SORTED_ESCAPED_MAX {
            percent::escape_byte(byte, out);
        } else {
            out.push(byte);
        }
    }
}

pub(super) fn read_sorted(bytes: &[u8]) -> Option<String> {
    if bytes.iter().any(|&byte| byte < SORTED_ESCAPED_MAX) {
        return None;
    }
    read_escaped(bytes, |byte| byte <= SORTED_ESCAPED_MAX)
}

/// Appends the text without its terminator.
pub(super) fn write_descending(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        out.extend([HEX[usize::from(!byte >> 4)], HEX[usize::from(!byte & 15)]]);
    }
}

pub(super) fn read_descending(bytes: &[u8]) -> Option<String> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    let text: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some(!(hex_digit(high)? << 4 | hex_digit(low)?))).collect();
    String::from_utf8(text?).ok()
}

/// Undoes `%XX`; `None` if a byte was escaped needlessly, or if the text is not UTF-8.
fn read_escaped(bytes: &[u8], is_escaped: impl Fn(u8) -> bool) -> Option<String> {
    if !bytes.contains(&b'%') {
        return String::from_utf8(bytes.to_vec()).ok();
    }
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let (&[high, low], tail) = rest.split_first_chunk::<2>()?;
        let escaped = hex_digit(high)? << 4 | hex_digit(low)?;
        if !is_escaped(escaped) {
            return None;
        }
        text.push(escaped);
        rest = tail;
    }
    String::from_utf8(text).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
