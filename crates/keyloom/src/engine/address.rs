//! Addresses of cells: a space, an area within it, and a key within that.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};

/// The longest key in bytes, on every engine. DynamoDB's sort key holds 1,024 bytes, some of which
/// an engine needs for itself.
pub const KEY_BYTES_MAX: usize = 900;

/// The longest value in bytes, on every engine. A DynamoDB item holds 400 KB, including its names.
pub const VALUE_BYTES_MAX: usize = 380 * 1024;

/// The longest name of a space or an area, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The space of a store, unless another is named.
const MAIN: &str = "main";

/// A name. Every address has two of them. The most frequent names are fixed, so that copying them
/// changes no reference count: a count that all threads change is expensive.
#[derive(Clone)]
enum Name {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl Name {
    /// A name with this text; the fixed one if the text is the same.
    fn new(name: &str, fixed: &'static str) -> Self {
        if name == fixed { Name::Fixed(fixed) } else { Name::Shared(name.into()) }
    }

    fn text(&self) -> &str {
        match self {
            Name::Fixed(text) => text,
            Name::Shared(text) => text,
        }
    }
}

/// Names are compared for every address, and most of them are empty. A constant empty text has no
/// real address in memory. A comparison that first reads from it takes the processor thirty times
/// as long, so the lengths are compared first.
impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.text(), other.text());
        one.len() == other.len() && (one.is_empty() || one == other)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other) = (self.text(), other.text());
        match one.is_empty() || other.is_empty() {
            true => one.len().cmp(&other.len()),
            false => one.cmp(other),
        }
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

/// An isolated keyspace, and the largest unit of atomicity.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Space(Name);

impl Space {
    /// A space by its name: 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub fn new(name: &str) -> Result<Self> {
        if name.is_empty() || !is_plain_name(name) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "a space's name is 1 to 64 letters, digits, '.', '_' or '-'",
            )
            .with("space", format_args!("{name:?}")));
        }
        Ok(Space(Name::new(name, MAIN)))
    }

    /// The space of a store, unless another is named.
    pub fn main() -> Self {
        Space(Name::Fixed(MAIN))
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.text()
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A part of a space with keys of its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Area(Name);

impl Area {
    /// An area by its name: up to 64 of `A-Z a-z 0-9 . _ -`. The empty name is the default area.
    pub fn new(name: &str) -> Result<Self> {
        if !is_plain_name(name) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "an area's name is up to 64 letters, digits, '.', '_' or '-'",
            )
            .with("area", format_args!("{name:?}")));
        }
        Ok(Area(Name::new(name, "")))
    }

    /// An area by its name, including Keyloom's own: for stored names, and for callers that only
    /// read.
    pub(crate) fn known(name: &str) -> Result<Self> {
        if name == Area::own().name() { Ok(Area::own()) } else { Area::new(name) }
    }

    /// The area that collections share unless they declare one.
    pub fn default_area() -> Self {
        Area(Name::Fixed(""))
    }

    /// Keyloom's own area, whose name users cannot declare.
    pub fn own() -> Self {
        Area(Name::Fixed("~"))
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.text()
    }
}

impl fmt::Debug for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.name())
    }
}

fn is_plain_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// The address of one cell within a space.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The area.
    pub area: Area,
    /// The key: 1 to 900 bytes of any values.
    pub key: Bytes,
}

impl Address {
    /// The address of `key` in `area`.
    pub fn new(area: Area, key: impl Into<Bytes>) -> Self {
        Address { area, key: key.into() }
    }

    /// Refuses the empty key, and keys beyond the portable limit. Every engine calls this for every
    /// address that it is given, so that all engines refuse the same keys.
    pub fn check(&self) -> Result<()> {
        check_key(&self.key)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.area, ShowKey(&self.key))
    }
}

pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::new(ErrorKind::InvalidKey, "a key has at least one byte"));
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::new(ErrorKind::LimitExceeded, "a key has at most 900 bytes")
            .with("bytes", key.len())
            .with("key", ShowKey(&key[..64])));
    }
    Ok(())
}

/// Shows a key as text, with unprintable bytes as `\xNN`.
pub struct ShowKey<'a>(pub &'a [u8]);

impl fmt::Display for ShowKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() {
                    write!(f, "\\x{:02x}", u32::from(c))?;
                } else {
                    write!(f, "{c}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        for name in ["main", "a", "A-z_0.9", &longest] {
            assert_eq!(Space::new(name).unwrap().name(), name);
            assert_eq!(Area::new(name).unwrap().name(), name);
        }
        let too_long = "n".repeat(NAME_BYTES_MAX + 1);
        for name in ["~", "a b", "a:b", "a/b", "{a}", "é", "\0", &too_long] {
            assert_eq!(Space::new(name).unwrap_err().kind(), ErrorKind::InvalidArgument);
            let error = Area::new(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert_eq!(error.context_value("area"), Some(&*format!("{name:?}")));
        }
    }

    #[test]
    fn only_an_area_may_have_no_name() {
        assert_eq!(Area::new("").unwrap(), Area::default_area());
        assert_eq!(Space::new("").unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(Space::new("main").unwrap(), Space::main());
    }

    /// Names are compared, ordered and hashed by their text, whichever variant they are.
    #[test]
    fn a_name_is_its_text() {
        let kept_apart = [Name::Fixed("b"), Name::Shared("b".into())];
        let hasher = std::hash::RandomState::new();
        let hashes = kept_apart.clone().map(|name| hasher.hash_one(name));
        assert!(kept_apart[0] == kept_apart[1] && hashes[0] == hashes[1]);
        for name in kept_apart {
            assert!(Name::Shared("a".into()) < name && name < Name::Fixed("c"));
        }
        let texts = ["", "~", "a", "ab", "b", "main"];
        for (one, other) in texts.iter().flat_map(|one| texts.map(|other| (*one, other))) {
            let (name, other_name) = (Name::Fixed(one), Name::Shared(other.into()));
            assert_eq!(name == other_name, one == other, "{one:?} and {other:?}");
            assert_eq!(name.cmp(&other_name), one.cmp(other), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn a_key_has_1_to_900_bytes() {
        let check = |length| Address::new(Area::own(), vec![0xff; length]).check();
        assert_eq!(check(0).unwrap_err().kind(), ErrorKind::InvalidKey);
        assert!(check(1).is_ok() && check(KEY_BYTES_MAX).is_ok());
        let error = check(KEY_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(error.context_value("bytes"), Some("901"));
    }

    #[test]
    fn keys_are_shown_as_text_as_far_as_they_are() {
        let shown = |key: &[u8]| ShowKey(key).to_string();
        assert_eq!(shown("user:é:日本".as_bytes()), "user:é:日本");
        assert_eq!(shown(b"a\x00b\x7f\xff\xc3"), r"a\x00b\x7f\xff\xc3");
        let address = Address::new(Area::new("x").unwrap(), "k\n");
        assert_eq!(format!("{address:?}"), r"[x]k\x0a");
    }
}
