//! Work that Ctrl-C ends with a message about how to continue.

use std::panic::resume_unwind;
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::{FAILED, Failure, INTERRUPTED, TERMINATED};

/// Runs the work on a thread of its own. If Ctrl-C or SIGTERM comes first, the work is abandoned,
/// and the failure says so. Only for work that may be abandoned at any point.
pub(crate) fn unless_interrupted<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    interrupted: impl FnOnce(u8) -> Failure,
) -> Result<T, Failure> {
    let failed = |error| Failure::new(FAILED, format!("no signals: {error}"));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let (tell, told) = oneshot::channel();
        // If a signal came first, nobody waits for the result any more.
        let worker = thread::spawn(move || drop(tell.send(work())));
        tokio::select! {
            ended = told => match (ended, worker.join()) {
                (Ok(ended), _) => ended,
                (Err(_), Err(panic)) => resume_unwind(panic),
                (Err(_), Ok(())) => Err(Failure::new(FAILED, "the work ended without an answer")),
            },
            _ = interrupt.recv() => Err(interrupted(INTERRUPTED)),
            _ = terminate.recv() => Err(interrupted(TERMINATED)),
        }
    })
}
