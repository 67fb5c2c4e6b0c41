//! The address of the answer to an idempotency key.
//!
//! | part | form | example |
//! | --- | --- | --- |
//! | user | the acting user, `%XX` for `:`, `%` and control bytes; empty without one | `ana` |
//! | key | as the caller gave it, escaped the same way | `order-17` |
//!
//! If both together are too long for a key, `%sha256.` and 64 hex digits replace them. Keys of two
//! users never share a cell: an escaped text has no `:`, and after `%` it has two upper-case hex
//! digits.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::engine::{Address, Area, KEY_BYTES_MAX, Range, percent};
use crate::error::{Error, ErrorKind, Result};

const PREFIX: &str = "idempotency:";
const HASHED: &str = "%sha256.";

/// The longest key, in bytes.
const KEY_MAX: usize = 255;

/// An idempotency key, which names one write of one user.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    pub(crate) fn new(key: &str) -> Result<Self> {
        let refused =
            |message| Err(Error::new(ErrorKind::InvalidArgument, message).with("bytes", key.len()));
        if key.is_empty() {
            return refused("an idempotency key is not empty");
        }
        if key.len() > KEY_MAX {
            return refused("an idempotency key has at most 255 bytes");
        }
        Ok(IdempotencyKey(key.into()))
    }

    /// The cell of the key for this user.
    pub(crate) fn address(&self, user: Option<&str>) -> Address {
        let user = user.unwrap_or_default();
        let mut key = PREFIX.as_bytes().to_vec();
        percent::escape(user.as_bytes(), Some(b':'), &mut key);
        key.push(b':');
        percent::escape(self.0.as_bytes(), Some(b':'), &mut key);
        if key.len() > KEY_BYTES_MAX {
            let mut hash = Sha256::new();
            hash.update((user.len() as u64).to_be_bytes());
            hash.update(user);
            hash.update(&*self.0);
            let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            key = format!("{PREFIX}{HASHED}{hex}").into_bytes();
        }
        Address::new(Area::own(), key)
    }
}

/// The cells of all keys.
pub(crate) fn own_range() -> Range {
    Range::prefix(Area::own(), PREFIX)
}

/// Whether a key of Keyloom's own area is one that [`IdempotencyKey::address`] can give.
pub(crate) fn is_key_address(key: &[u8]) -> bool {
    let Some(rest) = key.strip_prefix(PREFIX.as_bytes()) else { return false };
    if let Some(hash) = rest.strip_prefix(HASHED.as_bytes()) {
        return hash.len() == 64 && hash.iter().all(u8::is_ascii_hexdigit);
    }
    let mut parts = rest.split(|&byte| byte == b':');
    let is_text = |part: Option<&[u8]>| part.is_some_and(|part| percent::unescape(part).is_some());
    is_text(parts.next()) && is_text(parts.next()) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a:%\\x00é]{1,6}",
            (1..256_usize, prop::sample::select(vec![':', '%', 'a']))
                .prop_map(|(length, letter)| letter.to_string().repeat(length)),
        ]
    }

    proptest! {
        #[test]
        fn no_two_share_a_cell(
            one in (prop::option::of(text()), text()),
            other in (prop::option::of(text()), text()),
        ) {
            let address = |(user, key): &(Option<String>, String)| {
                IdempotencyKey::new(key).unwrap().address(user.as_deref())
            };
            prop_assert!(address(&one).check().is_ok() && is_key_address(&address(&one).key));
            prop_assert_eq!(address(&one) == address(&other), one == other);
        }
    }

    #[test]
    fn keys_are_readable_and_have_a_length() {
        let key = IdempotencyKey::new("order-17").unwrap();
        assert_eq!(&key.address(Some("a:b")).key[..], b"idempotency:a%3Ab:order-17");
        assert_eq!(&key.address(None).key[..], b"idempotency::order-17");
        for wrong in [String::new(), "k".repeat(256)] {
            let error = IdempotencyKey::new(&wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }
}
