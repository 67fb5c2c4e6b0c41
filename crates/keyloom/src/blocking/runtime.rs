//! What waits.

use std::fmt;
use std::future::Future;

use tokio::runtime::{Builder, Handle, Runtime as Tokio};

use crate::error::{Error, ErrorKind, Result};

/// What a blocking store waits with: a runtime of its own, without threads of its own.
pub struct Runtime(Option<Tokio>);

impl Runtime {
    pub(super) fn new() -> Result<Self> {
        let built = Builder::new_current_thread().enable_time().build();
        built.map(|runtime| Runtime(Some(runtime))).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "a runtime to wait with cannot be made")
                .with("reason", &error)
                .with_source(error)
        })
    }

    /// Waits for a future of the store.
    pub(crate) fn run<A, E: From<Error>>(
        &self,
        future: impl Future<Output = Result<A, E>>,
    ) -> Result<A, E> {
        self.wait(future)?
    }

    /// Waits for any future.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output> {
        if Handle::try_current().is_ok() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "a blocking store cannot be used inside an async runtime",
            )
            .with("instead", "keyloom::Store, whose methods are awaited"));
        }
        let closed = || Error::new(ErrorKind::Internal, "the runtime is gone before its store");
        Ok(self.0.as_ref().ok_or_else(closed)?.block_on(future))
    }
}

impl Drop for Runtime {
    /// The last handle may be dropped inside an async runtime, where waiting for the end of this
    /// one would panic.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runtime")
    }
}
