//! Why a value does not fit into a key.

use serde_json::Value;

use super::path::Path;
use crate::engine::KEY_BYTES_MAX;

/// How many characters of a refused value are shown.
const SHOWN_CHARS_MAX: usize = 80;

/// Why a value does not fit into a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRefusal {
    /// The field; `None` when the key as a whole is at fault (too long, empty).
    pub(crate) path: Option<Path>,
    /// The value as JSON, shortened when very long.
    pub(crate) value: String,
    /// A sentence without a final stop, e.g. "a timestamp is 0 to 9999999999999 milliseconds".
    pub(crate) reason: String,
}

impl KeyRefusal {
    /// The value of one field is at fault.
    pub(super) fn of_field(path: &Path, value: &Value, reason: String) -> Self {
        KeyRefusal { path: Some(path.clone()), value: shorten(&value.to_string()), reason }
    }

    /// The key as a whole is at fault.
    pub(super) fn of_key(values: &[&Value], reason: String) -> Self {
        let shown: Vec<String> = values.iter().map(|value| value.to_string()).collect();
        KeyRefusal { path: None, value: shorten(&format!("[{}]", shown.join(","))), reason }
    }
}

/// Whether a key of so many bytes fits the portable limits; the reason if not.
pub(super) fn check_length(bytes: usize) -> Result<(), String> {
    match bytes {
        0 => Err("a key has at least one byte, and this one would be empty".into()),
        1..=KEY_BYTES_MAX => Ok(()),
        _ => {
            Err(format!("a key has at most {KEY_BYTES_MAX} bytes, and this one would have {bytes}"))
        }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(shorten(&"é".repeat(80)), "é".repeat(80));
        assert_eq!(shorten(&"é".repeat(81)), format!("{}…", "é".repeat(80)));
    }
}
