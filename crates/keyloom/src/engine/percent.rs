//! `%XX` escaping, shared by key codecs and recipes.
//!
//! | byte | written as |
//! | --- | --- |
//! | the separator that follows, `%`, 0x00 to 0x1f, 0x7f | `%` and two upper-case hex digits |
//! | every other byte | itself |

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether `byte` is written as `%XX` before `separator`.
pub(crate) fn is_escaped(byte: u8, separator: Option<u8>) -> bool {
    byte == b'%' || byte < 0x20 || byte == 0x7f || Some(byte) == separator
}

/// Appends `%XX` for one byte.
pub(crate) fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends `bytes`, escaped so that they do not contain `separator`.
pub(crate) fn escape(bytes: &[u8], separator: Option<u8>, out: &mut Vec<u8>) {
    for &byte in bytes {
        if is_escaped(byte, separator) {
            escape_byte(byte, out);
        } else {
            out.push(byte);
        }
    }
}

/// How many bytes [`escape`] appends.
pub(crate) fn escaped_len(bytes: &[u8], separator: Option<u8>) -> usize {
    bytes.len() + 2 * bytes.iter().filter(|&&byte| is_escaped(byte, separator)).count()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(bytes: &[u8], separator: Option<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        escape(bytes, separator, &mut out);
        out
    }

    #[test]
    fn only_what_must_be_is_escaped() {
        assert_eq!(escaped(b"plain text/-_~", Some(b':')), b"plain text/-_~");
        assert_eq!(escaped(b"a:b%c", Some(b':')), b"a%3Ab%25c");
        assert_eq!(escaped(b"a:b", Some(b'/')), b"a:b");
        assert_eq!(escaped(b"\x00\x1f\x20\x7f\x80\xff", None), b"%00%1F\x20%7F\x80\xff");
    }

    #[test]
    fn what_was_not_escaped_so_is_refused() {
        for bytes in [&b"%"[..], b"a%", b"%4", b"%3a", b"%G0", b"%%41", b"% 1"] {
            assert_eq!(unescape(bytes), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn escaping_can_be_undone(bytes: Vec<u8>, separator: Option<u8>) {
            prop_assert_eq!(unescape(&escaped(&bytes, separator)), Some(bytes));
        }

        /// Leaves out separators that escapes themselves contain.
        #[test]
        fn the_separator_does_not_occur(bytes: Vec<u8>, separator: u8) {
            prop_assume!(separator != b'%' && !HEX.contains(&separator));
            prop_assert!(!escaped(&bytes, Some(separator)).contains(&separator));
        }

        #[test]
        fn any_bytes_can_be_tried(bytes: Vec<u8>) {
            let _ = unescape(&bytes);
        }
    }
}
