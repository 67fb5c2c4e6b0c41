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
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::predicate::Query;
use crate::error::{Error, ErrorKind, Result};

const FORMAT: u8 = 1;
const FINGERPRINT_BYTES: usize = 16;
const SEAL_BYTES: usize = 16;
const TOWARDS_START: u8 = 1;
const INCLUSIVE: u8 = 2;

/// What a cursor is bound to. The cursors of a page share it, and it is hashed only when one of
/// them is turned into text.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) secret: Vec<u8>,
    pub(crate) space: String,
    /// The acting user, if there is one.
    pub(crate) actor: Option<String>,
    pub(crate) collection: String,
    pub(crate) query: Question,
}

/// The query of a cursor. Most cursors never become text, so most queries need no text either.
#[derive(Debug)]
pub(crate) enum Question {
    /// A query as it is.
    Query(Box<Query>),
    /// A query of another kind: the same text for the same query.
    Words(String),
}

impl Question {
    fn words(&self) -> Cow<'_, str> {
        match self {
            Question::Query(query) => query.canonical().into(),
            Question::Words(words) => words.into(),
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

/// Where to continue. Its text can be stored or sent to a browser. The text reveals nothing, cannot
/// be altered, and is valid only for the query and the space that it came from.
///
/// A cursor can be displayed, parsed and serialized as its text. Parsing refuses a text that cannot
/// be a cursor; only the query can tell whether the cursor belongs to it.
///
/// ```
/// use keyloom::{Cursor, ErrorKind};
///
/// let error = "page 2".parse::<Cursor>().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidCursor);
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(Form);

#[derive(Clone)]
enum Form {
    /// From a page. The text is made only on demand, since most cursors never need it.
    Given { position: Position, binding: Arc<Binding> },
    /// From a text. Only its space can open it.
    Parsed(Arc<str>),
}

impl Cursor {
    pub(crate) fn new(position: Position, binding: Arc<Binding>) -> Self {
        Cursor(Form::Given { position, binding })
    }

    /// Opens the text of a cursor with this binding.
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

    /// Whether pages go from this position towards the start, judged by the text alone. Only the
    /// page that opens the cursor finds out whether the text was altered.
    pub(crate) fn is_towards_start(text: &str) -> bool {
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        bytes.get(1).is_some_and(|flags| flags & TOWARDS_START != 0)
    }
}

fn seal(position: &Position, binding: &Binding) -> Result<String> {
    let Position { indexes, key, towards_start, inclusive } = position;
    let mut bytes = vec![FORMAT];
    bytes.push(
        if *towards_start { TOWARDS_START } else { 0 } | if *inclusive { INCLUSIVE } else { 0 },
    );
    bytes.extend(binding.fingerprint());
    bytes.extend(u16::try_from(indexes.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend(indexes.as_bytes());
    bytes.extend(&key[..]);
    let seal = binding.mac(&bytes)?.finalize().into_bytes();
    bytes.extend(&seal[..SEAL_BYTES]);
    Ok(URL_SAFE_NO_PAD.encode(bytes))
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
        match &self.0 {
            Form::Given { position, binding } => {
                f.write_str(&seal(position, binding).map_err(|_| fmt::Error)?)
            }
            Form::Parsed(text) => f.write_str(text),
        }
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let body = URL_SAFE_NO_PAD.decode(text).ok().and_then(|mut bytes| {
            bytes.truncate(bytes.len().checked_sub(SEAL_BYTES)?);
            read_body(&bytes)
        });
        match body {
            Some(_) => Ok(Cursor(Form::Parsed(text.into()))),
            None => Err(Error::new(
                ErrorKind::InvalidCursor,
                "this is not a cursor; one is the text of a page's `next` or `previous`",
            )
            .with("cursor", format_args!("{text:?}"))),
        }
    }
}

impl TryFrom<String> for Cursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.to_string()
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

/// A cursor, its text, or neither.
pub trait IntoCursor {
    /// The cursor's text; `None` for the first page.
    fn into_cursor(self) -> Option<String>;
}

impl<C: IntoCursor> IntoCursor for Option<C> {
    fn into_cursor(self) -> Option<String> {
        self.and_then(C::into_cursor)
    }
}

impl<C: IntoCursor + Clone> IntoCursor for &Option<C> {
    fn into_cursor(self) -> Option<String> {
        self.clone().into_cursor()
    }
}

macro_rules! cursors {
    ($($kind:ty),*) => {$(
        impl IntoCursor for $kind {
            fn into_cursor(self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

cursors!(Cursor, &Cursor, String, &String, &str);

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
            query: Question::Words("[]".into()),
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
    fn a_parsed_cursor_is_the_same_text() {
        let (position, text) = cursor();
        let given = Cursor::new(position, Arc::new(binding()));
        let parsed: Cursor = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(parsed, given);
        let json = serde_json::to_value(&given).unwrap();
        assert_eq!(json, text);
        assert_eq!(serde_json::from_value::<Cursor>(json).unwrap(), given);
    }

    #[test]
    fn what_cannot_be_a_cursor_is_refused_at_once() {
        let (_, text) = cursor();
        let format_2 = format!("Ag{}", &text[2..]);
        for wrong in ["", "page 2", "20", &text[..40], &format!("{text}="), &format_2] {
            let error = wrong.parse::<Cursor>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidCursor, "{wrong}");
            assert!(serde_json::from_value::<Cursor>(wrong.into()).is_err());
        }
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
            Binding { query: Question::Words("[1]".into()), ..binding() },
            Binding { query: Question::Query(Box::default()), ..binding() },
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
