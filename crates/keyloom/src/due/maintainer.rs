//! Maintenance again and again, beside the program's own work.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::maintain::{MaintainOptions, Maintained, maintain};
use crate::error::{Error, ErrorKind, Result};
use crate::space::Session;

/// What a maintainer has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaintainerReport {
    /// How many passes it made, whether they succeeded or not.
    pub passes: u64,
    /// What it removed in all: records, leases, cells and entries of the log.
    pub removed: u64,
    /// What the last pass did.
    pub last: Maintained,
    /// How many passes failed, in one part or several.
    pub failures: u64,
    /// Why the last of them failed.
    pub last_failure: Option<String>,
}

/// A maintainer at work. Dropping it stops it too, but does not wait for the batch that is under
/// way.
#[derive(Debug)]
pub struct Maintainer {
    stop: watch::Sender<()>,
    report: watch::Receiver<MaintainerReport>,
    task: JoinHandle<()>,
}

impl Maintainer {
    /// Starts at once, on the runtime of the caller, and goes on after each pause, where a bound
    /// stopped it. A pass that fails is counted, and the next one tries again.
    pub(crate) fn start(
        session: Session,
        pause: Duration,
        options: MaintainOptions,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
            let message =
                "a maintainer needs an async runtime; without one, call maintain from a thread";
            Error::new(ErrorKind::InvalidArgument, message).with_source(error)
        })?;
        let (stop, stopped) = watch::channel(());
        let (reporter, report) = watch::channel(MaintainerReport::default());
        let task = runtime.spawn(run(session, pause, options, stopped, reporter));
        Ok(Maintainer { stop, report, task })
    }

    /// What it has done so far.
    pub fn report(&self) -> MaintainerReport {
        self.report.borrow().clone()
    }

    /// Waits until a pass ends that had not ended at the last call.
    pub async fn next_pass(&mut self) -> MaintainerReport {
        // The other end is dropped when the maintainer stops: then there is no next pass.
        let _ = self.report.changed().await;
        self.report.borrow_and_update().clone()
    }

    /// Stops it, and waits until the batch that is under way is done.
    pub async fn stop(self) -> MaintainerReport {
        drop(self.stop);
        // A pass that panicked is over, too.
        let _ = self.task.await;
        self.report.borrow().clone()
    }
}

async fn run(
    session: Session,
    pause: Duration,
    mut options: MaintainOptions,
    mut stopped: watch::Receiver<()>,
    reporter: watch::Sender<MaintainerReport>,
) {
    let wanted = stopped.clone();
    let goes_on = move || wanted.has_changed().is_ok();
    loop {
        let (done, failed) = maintain(&session, &options, &goes_on).await;
        options = options.after(&done);
        reporter.send_modify(|report| {
            report.passes += 1;
            report.removed += done.removed();
            report.last = done;
            if let Some(error) = failed {
                report.failures += 1;
                report.last_failure = Some(error.to_string());
            }
        });
        tokio::select! {
            // Nothing is ever sent: it ends when the maintainer is stopped or dropped.
            _ = stopped.changed() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
