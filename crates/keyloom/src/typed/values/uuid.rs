//! UUIDs in their simple form.

use super::text::{Ascii, text_value};
use crate::key::Kind;
use crate::record::new_uuid;

/// A UUID in simple form: 32 lower-case hex digits.
///
/// ```
/// use keyloom::Uuid;
///
/// let user: Uuid = "b068e9ee14224edf878440ab8b6c1d2e".parse()?;
/// assert_eq!(user.version(), 4);
/// assert!("b068e9ee-1422-4edf-8784-40ab8b6c1d2e".parse::<Uuid>().is_err());
/// assert_eq!(Uuid::new().version(), 4);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(Ascii<32>);

impl Uuid {
    /// A new random UUID, of version 4.
    #[allow(
        clippy::new_without_default,
        reason = "a default that differs each time would surprise"
    )]
    pub fn new() -> Self {
        Uuid(Ascii::made(new_uuid().as_bytes()))
    }

    /// The version: the 13th digit.
    pub fn version(&self) -> u8 {
        let digit = self.as_str().chars().nth(12).and_then(|digit| digit.to_digit(16));
        digit.and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default()
    }
}

text_value!(Uuid, Kind::Uuid { version: None }, "uuid");
