//! The one error of Keyloom.
//!
//! An error has a kind that a program may match on, a message that never changes for its kind of
//! failure, and context that says where and with which value. Every error of a write says what
//! became of the write ([`Fate`]), and whether the same call may succeed when repeated.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;

/// The result of every fallible call of Keyloom.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kinds of failure, in terms that a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A schema that cannot be loaded. The context lists every problem, not only the first.
    InvalidSchema,
    /// A schema that contradicts the one in the store.
    IncompatibleSchema,
    /// A value that does not fit into its place in a key, or a key that fits no template.
    InvalidKey,
    /// A record that breaks its schema.
    InvalidRecord,
    /// A query that cannot be asked in this form.
    InvalidQuery,
    /// A cursor that was altered, or that belongs to another query, space or version.
    InvalidCursor,
    /// An argument outside its allowed values, such as an unknown collection or store address.
    InvalidArgument,
    /// No index serves the query, and a scan was not asked for.
    NoIndex,
    /// The index exists but may not be read yet (building), or not any more (disabled, failed).
    IndexNotReady,
    /// The acting user may not do this.
    Forbidden,
    /// The record does not exist, or the acting user may not see it.
    NotFound,
    /// A record with this key is there already.
    AlreadyExists,
    /// Another record holds this unique value.
    UniqueConflict,
    /// The record changed since it was read.
    VersionConflict,
    /// A worker's lease ran out and the work was given to another, or it is done already.
    LeaseLost,
    /// A declared transition does not allow this change.
    IllegalTransition,
    /// An addition would overflow, or leave the bounds that were declared for it.
    OutOfBounds,
    /// A key, value, batch or result is larger than the limit.
    LimitExceeded,
    /// Other writers won every attempt.
    Contention,
    /// The schema in the store changed under the call.
    StaleSchema,
    /// Another process holds the store.
    Locked,
    /// The store was written by a newer or unknown format.
    UnknownFormat,
    /// The store turned read-only after an I/O error, or was opened so.
    ReadOnly,
    /// The stored data cannot be decoded.
    Corrupt,
    /// The log no longer goes back to this position.
    LogTrimmed,
    /// The engine underneath cannot do this.
    Unsupported,
    /// The store was closed.
    Closed,
    /// The store cannot be reached, or failed to read or write.
    Unavailable,
    /// The idempotency key belongs to another request.
    IdempotencyConflict,
    /// The history does not reach back to the time that was asked for.
    NotKept,
    /// The closure of a transaction chose to give up.
    Aborted,
    /// A defect in Keyloom.
    Internal,
}

/// Whether a failed call changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The call changed nothing. Errors of reads have this fate too.
    DidNotHappen,
    /// The write may or may not be in the store; read before repeating it.
    MayHaveHappened,
}

/// The one error. It has a kind to match on, a fixed message, and context that says where it failed
/// and with which value. It also says what became of the write, and whether a retry may help.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    fate: Fate,
    retryable: bool,
    message: &'static str,
    context: Vec<(&'static str, String)>,
    /// The key of the record that holds the unique value.
    holder: Option<String>,
    /// A value of a higher layer, which alone knows its type.
    carried: Option<Box<dyn Any + Send + Sync>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of a call that changed nothing. The message is a fixed sentence; values go into
    /// [`with`](Self::with).
    pub fn new(kind: ErrorKind, message: &'static str) -> Self {
        let retryable = matches!(
            kind,
            ErrorKind::Contention
                | ErrorKind::Unavailable
                | ErrorKind::StaleSchema
                | ErrorKind::VersionConflict
        );
        Error(Box::new(Inner {
            kind,
            fate: Fate::DidNotHappen,
            retryable,
            message,
            context: Vec::new(),
            holder: None,
            carried: None,
            source: None,
        }))
    }

    /// Adds a value to the context, shown as `name: value` in the order of addition.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((name, value.to_string()));
        self
    }

    /// Says what became of the write.
    #[must_use]
    pub fn with_fate(mut self, fate: Fate) -> Self {
        self.0.fate = fate;
        self
    }

    /// Says whether the same call may succeed when it is repeated.
    #[must_use]
    pub fn with_retry(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds the key of the record that holds the unique value. Only for callers who may read it.
    #[must_use]
    pub(crate) fn with_holder(mut self, key: String) -> Self {
        self.0.holder = Some(key);
        self
    }

    /// Carries a value that [`carried`](Self::carried) gives back by its type.
    #[must_use]
    pub(crate) fn carrying(mut self, value: impl Any + Send + Sync) -> Self {
        self.0.carried = Some(Box::new(value));
        self
    }

    /// The value that the error carries, if it is of this type.
    pub(crate) fn carried<T: Any>(&self) -> Option<&T> {
        self.0.carried.as_ref()?.downcast_ref()
    }

    /// The kind of failure, to match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether the call changed anything.
    pub fn fate(&self) -> Fate {
        self.0.fate
    }

    /// Whether the same call may succeed when it is repeated. After
    /// [`Fate::MayHaveHappened`] the repetition must itself be safe to apply twice.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// The key of the record that holds the value of a
    /// [`UniqueConflict`](ErrorKind::UniqueConflict). `None` if the acting user may not read that
    /// record, or if the store cannot tell which record it is.
    pub fn holder(&self) -> Option<&str> {
        self.0.holder.as_deref()
    }

    /// The fixed sentence of this failure.
    pub fn message(&self) -> &'static str {
        self.0.message
    }

    /// Where, with which value, and what to do, in the order of addition.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.context.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Whether both errors have the same kind, message and context.
    pub(crate) fn says_the_same_as(&self, other: &Error) -> bool {
        (self.0.kind, self.0.message, &self.0.context)
            == (other.0.kind, other.0.message, &other.0.context)
    }

    /// The first value of that name in the context.
    pub fn context_value(&self, name: &str) -> Option<&str> {
        self.context().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message)?;
        for (name, value) in &self.0.context {
            write!(f, "; {name}: {value}")?;
        }
        if self.0.fate == Fate::MayHaveHappened {
            f.write_str("; the write may have happened")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        if let Some(source) = &self.0.source {
            write!(f, " (caused by: {source})")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
