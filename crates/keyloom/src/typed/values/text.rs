//! What all values with a text of fixed length have in common.

use crate::error::{Error, ErrorKind, Result};
use crate::key::Kind;

/// A text of exactly `N` ASCII bytes, so that the values are `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Ascii<const N: usize>([u8; N]);

impl<const N: usize> Ascii<N> {
    /// Reads a text that must be of this type.
    pub(super) fn parse(kind: &Kind, expected: &'static str, text: &str) -> Result<Self> {
        let refused = |reason: String| {
            Error::new(ErrorKind::InvalidArgument, "the text is not a value of its type")
                .with("type", expected)
                .with("value", format_args!("{text:?}"))
                .with("reason", reason)
        };
        kind.check(&text.into()).map_err(refused)?;
        let bytes: [u8; N] =
            text.as_bytes().try_into().map_err(|_| refused(format!("it has not {N} bytes")))?;
        Ok(Ascii(bytes))
    }

    /// A text that Keyloom made itself. A text of the wrong length, which never happens, would be
    /// cut or padded.
    pub(super) fn made(text: &[u8]) -> Self {
        let mut bytes = [b'0'; N];
        bytes.iter_mut().zip(text).for_each(|(byte, made)| *byte = *made);
        Ascii(bytes)
    }

    pub(super) fn as_str(&self) -> &str {
        // Every value was made from valid text.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Implements the usual conversions and traits for a newtype of [`Ascii`].
macro_rules! text_value {
    ($name:ident, $kind:expr, $expected:literal) => {
        impl $name {
            /// The value as text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                Ok($name(super::text::Ascii::parse(&$kind, $expected, text)?))
            }
        }

        impl TryFrom<&str> for $name {
            type Error = $crate::Error;

            fn try_from(text: &str) -> $crate::Result<Self> {
                text.parse()
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::Error;

            fn try_from(text: String) -> $crate::Result<Self> {
                text.parse()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.as_str())
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.as_str().to_owned()
            }
        }

        impl From<$name> for serde_json::Value {
            fn from(value: $name) -> Self {
                value.as_str().into()
            }
        }

        impl From<&$name> for serde_json::Value {
            fn from(value: &$name) -> Self {
                value.as_str().into()
            }
        }

        impl $crate::KeyFields for $name {
            fn into_values(self) -> Vec<serde_json::Value> {
                vec![self.into()]
            }
        }

        impl $crate::KeyFields for &$name {
            fn into_values(self) -> Vec<serde_json::Value> {
                vec![self.into()]
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(super) use text_value;
