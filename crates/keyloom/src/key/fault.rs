//! Explains why a text is not a key of a template, for the person who sent it.

use super::codec::Codec;
use super::template::{Segment, Template, TemplatePart};
use crate::engine::{KEY_BYTES_MAX, ShowKey};

/// The most bytes of a wrong part that are shown.
const SHOWN_BYTES_MAX: usize = 60;

/// The fault of a text that should be a key.
pub(crate) struct KeyFault {
    /// The field at whose place something else was found, if it is a field.
    pub(crate) field: Option<String>,
    /// A sentence without a final stop.
    pub(crate) reason: String,
}

impl Template {
    /// The first part of the template that these bytes do not have; `None` if they are a key.
    pub(crate) fn fault(&self, key: &[u8]) -> Option<KeyFault> {
        if self.decode(key).is_some() {
            return None;
        }
        let of_key = |reason| Some(KeyFault { field: None, reason });
        match key.len() {
            0 => return of_key("a key has at least one byte, and this one would be empty".into()),
            1..=KEY_BYTES_MAX => {}
            bytes => {
                return of_key(format!(
                    "a key has at most {KEY_BYTES_MAX} bytes, and this one would have {bytes}"
                ));
            }
        }
        let mut rest = key;
        for (place, part) in self.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(literal) => match rest.strip_prefix(literal.as_bytes()) {
                    Some(tail) => rest = tail,
                    None => {
                        let found = shown(rest);
                        return of_key(format!("'{literal}' is expected where {found} stands"));
                    }
                },
                TemplatePart::Segment(segment) => {
                    let is_last = place + 1 == self.parts.len();
                    let read = segment.codec.read(rest, segment.desc, segment.separator, is_last);
                    match read {
                        Some((_, tail)) => rest = tail,
                        None => return Some(segment.fault(rest, is_last)),
                    }
                }
            }
        }
        of_key(format!("nothing is expected where {} stands", shown(rest)))
    }
}

impl Segment {
    fn fault(&self, rest: &[u8], is_last: bool) -> KeyFault {
        let separator = self.separator.filter(|_| !is_last);
        let end = separator.and_then(|end| rest.iter().position(|byte| *byte == end));
        let found = shown(&rest[..end.unwrap_or(rest.len())]);
        let described = self.codec.describe();
        let reason = match (&self.codec, separator) {
            (Codec::Text | Codec::Enum { .. }, Some(separator)) if end.is_none() => {
                format!(
                    "a value and then '{}' are expected where {found} stands",
                    char::from(separator)
                )
            }
            (Codec::Text, _) => format!(
                "{found} is not as this key writes a text: %XX, with upper-case hex digits, \
                 stands for control characters, for %{} and for nothing else",
                self.separator
                    .map(|byte| format!(", for {}", char::from(byte)))
                    .unwrap_or_default(),
            ),
            (Codec::SortedText, _) => {
                format!("{found} is not as this key writes a text that is sorted")
            }
            (Codec::Raw, _) => format!("{found} is not a text"),
            _ if self.desc => format!("{described}; {found} is not the descending form of one"),
            _ => format!("{described}; {found} is none"),
        };
        KeyFault { field: Some(self.path.to_string()), reason }
    }
}

fn shown(bytes: &[u8]) -> String {
    match bytes.len() {
        0 => "the end".to_owned(),
        1..=SHOWN_BYTES_MAX => format!("'{}'", ShowKey(bytes)),
        _ => format!("'{}…'", ShowKey(&bytes[..SHOWN_BYTES_MAX])),
    }
}
