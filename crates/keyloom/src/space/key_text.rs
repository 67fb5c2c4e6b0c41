//! Keys as text that a person can read, for what is kept as JSON.

use bytes::Bytes;

use crate::engine::percent;

/// A key as text, each byte that is none escaped.
pub(crate) fn to_text(key: &[u8]) -> String {
    let mut text = Vec::new();
    for &byte in key {
        match percent::is_escaped(byte, None) || !byte.is_ascii() {
            true => percent::escape_byte(byte, &mut text),
            false => text.push(byte),
        }
    }
    // Every byte that is not ASCII was escaped.
    String::from_utf8_lossy(&text).into_owned()
}

/// The key that a text was made of; `None` for a text that was made of none.
pub(crate) fn from_text(text: &str) -> Option<Bytes> {
    percent::unescape(text.as_bytes()).map(Bytes::from)
}
