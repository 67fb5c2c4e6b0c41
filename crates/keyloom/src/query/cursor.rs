//! A position between two records of an answer, as opaque text.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | format, 1 |
//! | 1 | bit 0: towards the start; bit 1: the record at the position belongs to the page |
//! | 16 | fingerprint of space, collection, query and acting user |
//! | 2 + n | length and names of the indexes in use, separated by commas |
//! | rest | position: the part of the key that orders the answer |
//! | 16 | seal: HMAC-SHA-256 of everything before, with the space's secret |
//!
//! Written as URL-safe base64 without padding.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::predicate::Query;
use crate::error::{Error, ErrorKind, Result};

const FORMAT: u8 = 1;
const FINGERPRINT_BYTES: usize = 16;
const SEAL_BYTES: usize = 16;
const TOWARDS_START: u8 = 1;
const INCLUSIVE: u8 = 2;

/// What a cursor is bound to. Shared by the cursors of a page, and hashed only when one of them
/// is written out.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) secret: Vec<u8>,
    pub(crate) space: String,
    /// The acting user, if there is one.
    pub(crate) actor: Option<String>,
    pub(crate) collection: String,
    pub(crate) query: Asked,
}

/// What was asked. Most cursors are never written out, so that most queries need not be put into
/// words.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A query as it is.
    Query(Box<Query>),
    /// A question of another kind: the same text for the same question.
    Words(String),
}

impl Asked {
    fn words(&self) -> Cow<'_, str> {
        match self {
            Asked::Query(query) => query.canonical().into(),
            Asked::Words(words) => words.into(),
        }
    }
}

impl Binding {
    fn fingerprint(&self) -> [u8; FINGERPRINT_BYTES] {
        let mut hash = Sha256::new();
        let words = self.query.words();
        let actor = self.actor.as_deref();
        for part in [&*self.space, &self.collection, &words].into_iter().chain(actor) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut fingerprint = [0; FINGERPRINT_BYTES];
        fingerprint.copy_from_slice(&hash.finalize()[..FINGERPRINT_BYTES]);
        fingerprint
    }

    fn mac(&self, body: &[u8]) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret)
            .map_err(|_| Error::new(ErrorKind::Internal, "the cursor secret has an odd length"))?;
        mac.update(body);
        Ok(mac)
    }
}

/// Where a page starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The indexes in use, separated by commas; empty for the records themselves.
    pub(crate) indexes: String,
    /// The part of the key that orders the answer.
    pub(crate) key: Bytes,
    /// Whether the page lies before the position, not after it.
    pub(crate) towards_start: bool,
    /// Whether a record exactly at the position belongs to the page.
    pub(crate) inclusive: bool,
}

/// Where to go on. Its text can be stored or sent to a browser; it tells nothing, cannot be
/// altered, and fits only the query and the space that it came from.
#[derive(Clone)]
pub struct Cursor {
    position: Position,
    binding: Arc<Binding>,
}

impl Cursor {
    pub(crate) fn new(position: Position, binding: Arc<Binding>) -> Self {
        Cursor { position, binding }
    }

    /// Reads the text of a cursor that is bound so.
    pub(crate) fn open(text: &str, binding: &Binding) -> Result<Position> {
        let invalid = |message| Error::new(ErrorKind::InvalidCursor, message);
        let altered = "the cursor is not one of this space, or was altered";
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| invalid(altered))?;
        let sealed = bytes.len().checked_sub(SEAL_BYTES).ok_or_else(|| invalid(altered))?;
        let (body, seal) = bytes.split_at(sealed);
        binding.mac(body)?.verify_truncated_left(seal).map_err(|_| invalid(altered))?;
        let unsealed = read_body(body).ok_or_else(|| invalid("the cursor has another format"))?;
        if unsealed.0 != binding.fingerprint() {
            return Err(invalid("the cursor belongs to another query"));
        }
        Ok(unsealed.1)
    }

    fn seal(&self) -> Result<String> {
        let Position { indexes, key, towards_start, inclusive } = &self.position;
        let mut bytes = vec![FORMAT];
        bytes.push(
            if *towards_start { TOWARDS_START } else { 0 } | if *inclusive { INCLUSIVE } else { 0 },
        );
        bytes.extend(self.binding.fingerprint());
        bytes.extend(u16::try_from(indexes.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(indexes.as_bytes());
        bytes.extend(&key[..]);
        let seal = self.binding.mac(&bytes)?.finalize().into_bytes();
        bytes.extend(&seal[..SEAL_BYTES]);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn read_body(body: &[u8]) -> Option<([u8; FINGERPRINT_BYTES], Position)> {
    let (&[FORMAT, flags], rest) = body.split_first_chunk::<2>()? else { return None };
    let (fingerprint, rest) = rest.split_first_chunk::<FINGERPRINT_BYTES>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (indexes, key) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    let position = Position {
        indexes: std::str::from_utf8(indexes).ok()?.to_owned(),
        key: Bytes::copy_from_slice(key),
        towards_start: flags & TOWARDS_START != 0,
        inclusive: flags & INCLUSIVE != 0,
    };
    Some((*fingerprint, position))
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.seal().map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({self})")
    }
}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Cursor {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    fn binding() -> Binding {
        Binding {
            secret: vec![7; 32],
            space: "main".into(),
            actor: None,
            collection: "approval".into(),
            query: Asked::Words("[]".into()),
        }
    }

    fn cursor() -> (Position, String) {
        let position = Position {
            indexes: "requester,approver".into(),
            key: Bytes::from_static(b"8325049212765:x\xff"),
            towards_start: true,
            inclusive: false,
        };
        (position.clone(), Cursor::new(position, Arc::new(binding())).to_string())
    }

    #[test]
    fn text_keeps_the_position() {
        let (position, text) = cursor();
        assert_eq!(Cursor::open(&text, &binding()).unwrap(), position);
    }

    #[test]
    fn every_altered_character_is_noticed() {
        let (_, text) = cursor();
        for place in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[place] = if altered[place] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(
                Cursor::open(&altered, &binding()).unwrap_err().kind(),
                ErrorKind::InvalidCursor,
                "{altered}"
            );
            assert!(Cursor::open(&text[..place], &binding()).is_err());
        }
    }

    #[test]
    fn other_queries_spaces_and_secrets_are_noticed() {
        let (_, text) = cursor();
        for other in [
            Binding { query: Asked::Words("[1]".into()), ..binding() },
            Binding { query: Asked::Query(Box::default()), ..binding() },
            Binding { space: "other".into(), ..binding() },
            Binding { actor: Some("ana".into()), ..binding() },
            Binding { collection: "other".into(), ..binding() },
            Binding { secret: vec![8; 32], ..binding() },
            Binding { space: "mai".into(), collection: "napproval".into(), ..binding() },
        ] {
            assert_eq!(Cursor::open(&text, &other).unwrap_err().kind(), ErrorKind::InvalidCursor);
        }
    }
}
