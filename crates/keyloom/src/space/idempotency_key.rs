//! A key that names one write of one user, and where the answer to it is kept.

use std::sync::Arc;

use crate::engine::Address;
use crate::error::{Error, ErrorKind, Result};
use crate::own::OwnKey;

/// The longest key, in bytes.
const KEY_MAX: usize = 255;

/// A key that names one write of one user.
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
        OwnKey::answer(user.unwrap_or_default(), &self.0).address()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

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
