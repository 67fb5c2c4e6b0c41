//! Why a value does not fit into a key.

use serde_json::Value;

use super::codec::number::name_of_not_finite;
use super::path::Path;
use crate::engine::KEY_BYTES_MAX;
use crate::error::{Error, ErrorKind};

/// The most characters of a refused value that are shown.
const SHOWN_CHARS_MAX: usize = 80;

/// Why a value does not fit into a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRefusal {
    /// The field; `None` if the problem is the key as a whole.
    pub(crate) path: Option<Path>,
    /// The value as JSON, shortened if it is very long.
    pub(crate) value: String,
    /// A sentence without a final stop, e.g. "a boolean is true or false".
    pub(crate) reason: String,
    /// Whether the key would exceed the maximal length.
    is_too_long: bool,
}

impl KeyRefusal {
    /// A refusal of the value of one field.
    pub(super) fn of_field(path: &Path, value: &Value, reason: String) -> Self {
        let (path, value) = (Some(path.clone()), shorten(&value.to_string()));
        KeyRefusal { path, value, reason, is_too_long: false }
    }

    /// The same refusal, for a field of floats. If the value stands for NaN or an infinity, it
    /// names the number; for `null` it says that JSON writes such numbers as `null`.
    pub(super) fn of_float(mut self, value: &Value) -> Self {
        let name = name_of_not_finite(value);
        if let Some(name) = name {
            self.value = name.to_owned();
            self.reason.push_str(", and JSON has neither NaN nor infinities");
        } else if value.is_null() {
            self.reason.push_str("; NaN and infinities are null in JSON");
        }
        self
    }

    /// The error for a record that cannot be written.
    pub(crate) fn into_error(self) -> Error {
        self.into_error_of(ErrorKind::InvalidKey, "a value does not fit into a key")
    }

    /// The error for a query that is not possible.
    pub(crate) fn into_query_error(self) -> Error {
        self.into_error_of(
            ErrorKind::InvalidQuery,
            "a value that is asked for does not fit its field",
        )
    }

    /// A key that is too long gets the same error everywhere, including in engines.
    fn into_error_of(self, kind: ErrorKind, message: &'static str) -> Error {
        let error = match self.is_too_long {
            true => Error::new(ErrorKind::LimitExceeded, "a key has at most 900 bytes"),
            false => Error::new(kind, message),
        };
        let error = match self.path {
            Some(path) => error.with("field", path),
            None => error,
        };
        error.with("value", self.value).with("reason", self.reason)
    }

    /// A refusal of the key as a whole.
    pub(super) fn of_key(values: &[&Value], reason: String) -> Self {
        let shown: Vec<String> = values.iter().map(|value| value.to_string()).collect();
        let value = shorten(&format!("[{}]", shown.join(",")));
        KeyRefusal { path: None, value, reason, is_too_long: false }
    }
}

/// Refuses a key of this length if it exceeds the portable limits.
pub(super) fn check_length(
    bytes: usize,
    refuse: impl FnOnce(String) -> KeyRefusal,
) -> Result<(), KeyRefusal> {
    match bytes {
        0 => Err(refuse("a key has at least one byte, and this one would be empty".into())),
        1..=KEY_BYTES_MAX => Ok(()),
        _ => {
            let reason =
                format!("a key has at most {KEY_BYTES_MAX} bytes, and this one would have {bytes}");
            Err(KeyRefusal { is_too_long: true, ..refuse(reason) })
        }
    }
}

/// A value as JSON, shortened if it is very long.
pub(crate) fn shortened(value: &Value) -> String {
    shorten(&value.to_string())
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
