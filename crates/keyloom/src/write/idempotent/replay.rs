//! Answers that can be given again, and failures that tell whether the write may have happened.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind, Fate, Result};
use crate::record::{Document, Version};
use crate::side::{Answer, CREATED, REPLACED};
use crate::write::{Counters, Effect, WrittenDocument};

/// What a write did that changed nothing.
const UNCHANGED: &str = "unchanged";
const IGNORED: &str = "ignored";

/// The answer to a write, as it is kept for its key.
pub(crate) trait Replay: Sized {
    /// The answer to keep, and the text of the record in it.
    fn to_answer(&self) -> Result<(Answer, Option<Bytes>)>;

    /// The answer as it was given; `None` when another kind of answer was kept.
    fn from_answer(answer: &Answer, text: Option<&Bytes>) -> Option<Self>;

    /// Whether the schema let the write pass without effect. No commit has shown that the schema
    /// still holds.
    fn is_passed_over(&self) -> bool {
        false
    }
}

impl Replay for WrittenDocument {
    fn to_answer(&self) -> Result<(Answer, Option<Bytes>)> {
        let effect = match self.effect {
            Effect::Created => CREATED,
            Effect::Replaced => REPLACED,
            Effect::Unchanged => UNCHANGED,
            Effect::Ignored => IGNORED,
        };
        Ok(Answer::of_record(self.document.clone(), effect))
    }

    fn from_answer(answer: &Answer, text: Option<&Bytes>) -> Option<Self> {
        let Answer::Record { key, version, effect } = answer else { return None };
        let effect = match effect.as_str() {
            CREATED => Effect::Created,
            REPLACED => Effect::Replaced,
            UNCHANGED => Effect::Unchanged,
            IGNORED => Effect::Ignored,
            _ => return None,
        };
        let version = version.parse().ok()?;
        let document = Document::new(Bytes::from(key.clone()), version, text?.clone());
        Some(WrittenDocument { document, effect })
    }

    fn is_passed_over(&self) -> bool {
        self.effect == Effect::Ignored
    }
}

/// A deletion: the version of what was there.
impl Replay for Option<Version> {
    fn to_answer(&self) -> Result<(Answer, Option<Bytes>)> {
        Ok((Answer::Deleted { version: self.map(|version| version.to_string()) }, None))
    }

    fn from_answer(answer: &Answer, _: Option<&Bytes>) -> Option<Self> {
        match answer {
            Answer::Deleted { version: None } => Some(None),
            Answer::Deleted { version: Some(text) } => text.parse().ok().map(Some),
            _ => None,
        }
    }
}

/// A plain put: the version of what is there now.
impl Replay for Version {
    fn to_answer(&self) -> Result<(Answer, Option<Bytes>)> {
        Ok((Answer::Value(self.to_string().into()), None))
    }

    fn from_answer(answer: &Answer, _: Option<&Bytes>) -> Option<Self> {
        match answer {
            Answer::Record { version, .. } => version.parse().ok(),
            Answer::Value(version) => version.as_str()?.parse().ok(),
            Answer::Deleted { .. } | Answer::Done => None,
        }
    }
}

/// Counters right after an addition; when it was answered before, they are read anew.
pub(crate) struct Added(pub(crate) Option<Vec<Counters>>);

impl Replay for Added {
    fn to_answer(&self) -> Result<(Answer, Option<Bytes>)> {
        Ok((Answer::Done, None))
    }

    fn from_answer(answer: &Answer, _: Option<&Bytes>) -> Option<Self> {
        matches!(answer, Answer::Done).then_some(Added(None))
    }
}

/// What the closure of a transaction answers.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize + DeserializeOwned> Replay for Json<T> {
    fn to_answer(&self) -> Result<(Answer, Option<Bytes>)> {
        let value = serde_json::to_value(&self.0).map_err(|error| {
            let message = "the answer of a transaction with a key cannot be written as JSON";
            Error::new(ErrorKind::InvalidArgument, message)
                .with("reason", &error)
                .with_source(error)
        })?;
        Ok((Answer::Value(value), None))
    }

    fn from_answer(answer: &Answer, _: Option<&Bytes>) -> Option<Self> {
        let Answer::Value(value) = answer else { return None };
        serde_json::from_value(value.clone()).ok().map(Json)
    }
}

/// Why a write failed, as far as repeating it is concerned.
pub(crate) trait Failure: From<Error> {
    /// The error of the store; `None` for one of the caller's own.
    fn error(&self) -> Option<&Error>;

    /// The same failure of a write that was tried before with an unknown outcome.
    fn after_doubt(self, in_doubt: bool) -> Self;

    /// Whether the store could not be reached, or its answer was lost.
    fn is_unavailable(&self) -> bool {
        self.may_have_happened()
            || self.error().is_some_and(|error| error.kind() == ErrorKind::Unavailable)
    }

    fn may_have_happened(&self) -> bool {
        self.error().is_some_and(|error| error.fate() == Fate::MayHaveHappened)
    }
}

impl Failure for Error {
    fn error(&self) -> Option<&Error> {
        Some(self)
    }

    fn after_doubt(self, in_doubt: bool) -> Self {
        if in_doubt { self.with_fate(Fate::MayHaveHappened) } else { self }
    }
}

/// Why a transaction failed.
pub(crate) enum Failed<E> {
    /// The store refused it.
    Store(Error),
    /// Its closure gave up.
    Closure(E),
}

impl<E> From<Error> for Failed<E> {
    fn from(error: Error) -> Self {
        Failed::Store(error)
    }
}

impl<E> Failure for Failed<E> {
    fn error(&self) -> Option<&Error> {
        match self {
            Failed::Store(error) => Some(error),
            Failed::Closure(_) => None,
        }
    }

    fn after_doubt(self, in_doubt: bool) -> Self {
        match self {
            Failed::Store(error) => Failed::Store(error.after_doubt(in_doubt)),
            Failed::Closure(error) => Failed::Closure(error),
        }
    }
}

impl<E: From<Error>> Failed<E> {
    /// The error as the caller of the transaction knows it.
    pub(crate) fn into_own(self) -> E {
        match self {
            Failed::Store(error) => error.into(),
            Failed::Closure(error) => error,
        }
    }
}
