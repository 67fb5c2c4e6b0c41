//! Tokens: 32 random bytes as text, stored as their SHA-256.
//!
//! A slow hash such as Argon2 protects secrets that people choose, because each guess takes time.
//! These tokens have 256 random bits, so guessing is hopeless, and a single round of SHA-256 is as
//! hard to invert as a thousand. A slow hash would only cost time on every request.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::grant::Grant;

/// The prefix of every token, so that people and scanners for leaked secrets recognise it.
pub(super) const PREFIX: &str = "klm_";

/// A SHA-256.
pub(super) type Hash = [u8; 32];

/// The tokens of an access file.
#[derive(Default)]
pub(super) struct Tokens(Vec<(Hash, Arc<Grant>)>);

impl Tokens {
    pub(super) fn new(tokens: Vec<(Hash, Grant)>) -> Self {
        Tokens(tokens.into_iter().map(|(hash, grant)| (hash, Arc::new(grant))).collect())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, grant)| grant.name.as_str())
    }

    /// The grant of a token. The token is compared with every entry in constant time, so that the
    /// time reveals neither the matching entry nor how close a guess was.
    pub(super) fn find(&self, token: &str) -> Option<Arc<Grant>> {
        let hash = hash(token);
        let mut found = None;
        for (known, grant) in &self.0 {
            if is_equal(known, &hash) {
                found = Some(grant);
            }
        }
        found.cloned()
    }
}

/// Makes a token: the token itself, which is shown only once, and its SHA-256 in hexadecimal for
/// the access file.
pub fn new_token() -> (String, String) {
    let token = format!("{PREFIX}{}", random_text());
    let hash = hex(&hash(&token));
    (token, hash)
}

/// 32 random bytes as text.
#[allow(clippy::expect_used, reason = "without random bytes nothing may be made up instead")]
pub(crate) fn random_text() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(super) fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

/// Reads a SHA-256 in hexadecimal.
pub(super) fn read_hex(text: &str) -> Option<Hash> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let bytes: Vec<u8> =
        digits?.chunks(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit)).collect();
    if text.len() == 64 { bytes.try_into().ok() } else { None }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares every byte, wherever the first difference is.
fn is_equal(left: &Hash, right: &Hash) -> bool {
    let difference = left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn a_token_has_256_random_bits_and_its_hash_is_what_the_file_holds() {
        let (token, text) = new_token();
        let random = URL_SAFE_NO_PAD.decode(token.strip_prefix(PREFIX).unwrap()).unwrap();
        assert_eq!(random.len(), 32);
        assert_ne!(new_token().0, token);
        assert_eq!(read_hex(&text).unwrap(), hash(&token));
        assert_eq!(read_hex(&text.to_uppercase()).unwrap(), hash(&token));
    }

    #[test]
    fn what_is_no_hash_is_not_read() {
        let text = new_token().1;
        for broken in ["", "zz", &text[1..], &format!("{text}0"), &text.replace(&text[..1], "g")] {
            assert!(read_hex(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn hashes_are_equal_only_in_every_byte() {
        let known = hash("klm_a");
        assert!(is_equal(&known, &known.clone()));
        for at in 0..32 {
            let mut other = known;
            other[at] ^= 1;
            assert!(!is_equal(&known, &other), "byte {at}");
        }
    }
}
