//! A sweep again and again, beside the program's own work.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::sweep::{SweepOptions, sweep};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Session;

/// What a sweeper has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweeperReport {
    /// How many passes it made, whether they succeeded or not.
    pub passes: u64,
    /// How many records they removed.
    pub records: u64,
    /// How many leases they removed.
    pub leases: u64,
    /// How many passes failed.
    pub failures: u64,
    /// Why the last of them failed.
    pub last_failure: Option<String>,
}

/// A sweeper at work. Dropping it stops it too, but does not wait for the batch that is under way.
#[derive(Debug)]
pub struct Sweeper {
    stop: watch::Sender<()>,
    report: watch::Receiver<SweeperReport>,
    task: JoinHandle<()>,
}

impl Sweeper {
    /// Starts at once, on the runtime of the caller, and sweeps again after each pause. A pass
    /// that fails is counted, and the next one tries again.
    pub(crate) fn start(session: Session, pause: Duration, options: SweepOptions) -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
            let message = "a sweeper needs an async runtime; without one, call sweep from a thread";
            Error::new(ErrorKind::InvalidArgument, message).with_source(error)
        })?;
        let (stop, stopped) = watch::channel(());
        let (reporter, report) = watch::channel(SweeperReport::default());
        let task = runtime.spawn(run(session, pause, options, stopped, reporter));
        Ok(Sweeper { stop, report, task })
    }

    /// What it has done so far.
    pub fn report(&self) -> SweeperReport {
        self.report.borrow().clone()
    }

    /// Waits until a pass ends that had not ended at the last call.
    pub async fn next_pass(&mut self) -> SweeperReport {
        // The other end is dropped when the sweeper stops: then there is no next pass.
        let _ = self.report.changed().await;
        self.report.borrow_and_update().clone()
    }

    /// Stops it, and waits until the batch that is under way is done.
    pub async fn stop(self) -> SweeperReport {
        drop(self.stop);
        // A pass that panicked is over, too.
        let _ = self.task.await;
        self.report.borrow().clone()
    }
}

async fn run(
    session: Session,
    pause: Duration,
    options: SweepOptions,
    mut stopped: watch::Receiver<()>,
    reporter: watch::Sender<SweeperReport>,
) {
    loop {
        let goes_on = || stopped.has_changed().is_ok();
        let outcome = sweep(&session, &options, &goes_on).await;
        reporter.send_modify(|report| {
            report.passes += 1;
            match outcome {
                Ok(swept) => {
                    report.records += swept.records;
                    report.leases += swept.leases;
                }
                Err(error) => {
                    report.failures += 1;
                    report.last_failure = Some(error.to_string());
                }
            }
        });
        tokio::select! {
            // Nothing is ever sent: it ends when the sweeper is stopped or dropped.
            _ = stopped.changed() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
