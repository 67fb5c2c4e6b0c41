//! Work under one state of the schema, and what follows when the schema changed meanwhile.
//!
//! Whatever reads or writes by the schema is told when it changed: a batch by its fence, a read by
//! its epoch. Then nothing that was decided holds, and the work is done again under the new one.
//! This is the one place that says so, and that gives up when the schema never comes to rest.

use super::live::Live;
use super::retry::Retry;
use crate::engine::{Cause, Outcome};
use crate::error::{Error, ErrorKind, Result};

/// How often work is tried while the schema keeps changing.
const ATTEMPTS: u32 = 16;

/// How many of these follow each other at once.
const ATTEMPTS_AT_ONCE: u32 = 4;

/// What work under one state of the schema came to.
pub(crate) type Under<T> = std::result::Result<T, Interrupted>;

/// Why work under one state of the schema ended early.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// The schema is another one now.
    SchemaChanged,
    /// Somebody else goes on with the work.
    TakenOver,
    /// It failed, whatever the schema is.
    Failed(Error),
}

impl From<Error> for Interrupted {
    /// A read that fails since its epoch has passed was interrupted.
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::StaleSchema => Interrupted::SchemaChanged,
            _ => Interrupted::Failed(error),
        }
    }
}

/// Why work that rests on no state of the schema ended early.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Somebody else has ended it, or goes on with it.
    TakenOver,
    Failed(Error),
}

impl Ended {
    /// What is told of work that ends with its process, and so is never taken over.
    pub(crate) fn of_memory(self) -> Error {
        match self {
            Ended::Failed(error) => error,
            Ended::TakenOver => {
                Error::new(ErrorKind::Internal, "work was taken over that nobody knows of")
            }
        }
    }
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Ended::Failed(error)
    }
}

impl From<Interrupted> for Ended {
    fn from(interrupted: Interrupted) -> Self {
        match interrupted {
            Interrupted::TakenOver => Ended::TakenOver,
            Interrupted::Failed(error) => Ended::Failed(error),
            Interrupted::SchemaChanged => {
                let message = "work that rests on no schema was interrupted by a change of it";
                Ended::Failed(Error::new(ErrorKind::Internal, message))
            }
        }
    }
}

/// What became of a batch that its fence let through.
pub(crate) fn past_fence(outcome: Outcome) -> Under<Outcome> {
    match outcome {
        Outcome::Rejected(rejection) if rejection.cause == Cause::Fence => {
            Err(Interrupted::SchemaChanged)
        }
        outcome => Ok(outcome),
    }
}

/// The attempts at work that rests on the schema.
pub(crate) struct Attempts<'l> {
    live: &'l Live,
    interrupted: u32,
    /// What is said when the schema never comes to rest.
    message: &'static str,
}

impl Live {
    /// Attempts at work that rests on the schema; the message says what to tell if it never comes
    /// to rest.
    pub(crate) fn attempts(&self, message: &'static str) -> Attempts<'_> {
        Attempts { live: self, interrupted: 0, message }
    }

    /// Attempts at a write.
    pub(crate) fn writes(&self) -> Attempts<'_> {
        self.attempts("the schema kept changing under the write")
    }

    /// Attempts at a read.
    pub(crate) fn reads(&self) -> Attempts<'_> {
        self.attempts("the schema kept changing under the read")
    }
}

impl Attempts<'_> {
    /// Forgets earlier interruptions: the work has come further since.
    pub(crate) fn begin_anew(&mut self) {
        self.interrupted = 0;
    }

    /// What the work came to; `None` when it is to be done again: somebody else has taken it over, or
    /// the schema changed under it, and the new one is loaded by then.
    pub(crate) async fn settle<T, I: Into<Interrupted>>(
        &mut self,
        attempt: std::result::Result<T, I>,
    ) -> Result<Option<T>> {
        match attempt.map_err(Into::into) {
            Ok(done) => Ok(Some(done)),
            Err(Interrupted::Failed(error)) => Err(error),
            Err(Interrupted::TakenOver) => Ok(None),
            Err(Interrupted::SchemaChanged) => {
                self.interrupted += 1;
                if self.interrupted >= ATTEMPTS {
                    return Err(Error::new(ErrorKind::StaleSchema, self.message));
                }
                // Builds change the schema now and then. Whoever is interrupted more often reads it
                // late, or meets somebody who changes it all the time: time helps against both.
                if let Some(made @ 1..) = self.interrupted.checked_sub(ATTEMPTS_AT_ONCE) {
                    Retry::eager().pause(made).await;
                }
                self.live.reload().await?;
                Ok(None)
            }
        }
    }
}
