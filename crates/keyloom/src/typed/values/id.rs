//! Ids of 26 letters and digits.

use super::text::{Ascii, text_value};
use crate::key::Kind;
use crate::record::new_id;

/// An id: 26 letters and digits. New ones begin with the time, so that they sort by creation.
///
/// ```
/// use keyloom::Id;
///
/// let id = Id::new();
/// assert_eq!(id.as_str().len(), 26);
/// assert_eq!(id.to_string().parse::<Id>()?, id);
/// assert!("A-X7K9Q2".parse::<Id>().is_err());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Ascii<26>);

impl Id {
    /// A new unique id.
    #[allow(
        clippy::new_without_default,
        reason = "a default that differs each time would surprise"
    )]
    pub fn new() -> Self {
        Id(Ascii::made(new_id().as_bytes()))
    }
}

text_value!(Id, Kind::Id, "id");
