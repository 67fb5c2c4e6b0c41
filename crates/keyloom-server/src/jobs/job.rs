//! One job, as this server knows it.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use keyloom::{JobProgress, JobResult, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Asked;
use super::results::result;
use crate::problem::Problem;
use crate::refusal;

/// What a job comes to; `None` if somebody else has ended it.
pub(super) type Outcome = Result<Option<JobResult>, Problem>;

/// One job.
pub(crate) struct Job {
    job: keyloom::Job,
    /// When this server began to work on it, or to wait for it.
    since: Instant,
    /// How long it had been under way by then.
    before_ms: u64,
    progress: Mutex<JobProgress>,
    /// Told to stop.
    pub(super) stopping: watch::Sender<bool>,
    state: Mutex<State>,
}

enum State {
    Running,
    Done {
        result: Value,
        took_ms: u64,
    },
    Failed {
        problem: Problem,
        took_ms: u64,
    },
    Stopped {
        took_ms: u64,
    },
    /// Another server has ended it, and knows what it came to.
    Elsewhere,
}

/// The note that the store keeps with a job: the request and its idempotency key.
pub(super) fn note(asked: &Asked) -> Value {
    json!({ "request": asked.request, "key": asked.key })
}

impl Job {
    pub(super) fn new(job: keyloom::Job) -> Self {
        let now_ms = u64::try_from(Timestamp::now().millis()).unwrap_or_default();
        Job {
            since: Instant::now(),
            before_ms: now_ms.saturating_sub(job.started_at()),
            progress: Mutex::new(job.progress()),
            stopping: watch::Sender::new(false),
            state: Mutex::new(State::Running),
            job,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.job.id()
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.job.work().kind()
    }

    pub(super) fn space(&self) -> &str {
        self.job.space_name()
    }

    /// Does the work, and notes how far it is.
    pub(super) async fn work(&self) -> Outcome {
        let hear = |progress| *self.progress() = progress;
        Ok(self.job.run(hear).await?)
    }

    /// Stops the job, and waits until it has stopped. One that is over stays as it is.
    pub(crate) async fn stop(&self) {
        let mut changes = self.stopping.subscribe();
        self.stopping.send_if_modified(|stopping| !std::mem::replace(stopping, true));
        // The task tells again when the state has changed.
        while self.is_running() && changes.changed().await.is_ok() {}
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(*self.state(), State::Running)
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(*self.state(), State::Elsewhere)
    }

    /// Whether it is in the way of another one. Of those that are kept, the store lets only one in.
    pub(super) fn is_rival_of(&self, other: &Job) -> bool {
        let is_same = self.kind() == other.kind() && self.space() == other.space();
        !other.job.is_kept() && is_same && self.is_running()
    }

    /// Whether it is what was asked for, with a key and by it.
    pub(super) fn answers(&self, asked: &Asked) -> bool {
        let is_same = *self.job.work() == asked.work && *self.job.note() == note(asked);
        is_same && asked.key.is_some() && self.job.pace() == asked.pace
    }

    /// Waits for the work, or for somebody who stops it, and notes what became of it.
    pub(super) async fn see_through(
        self: Arc<Self>,
        mut working: JoinHandle<Outcome>,
        server_stops: impl Future<Output = ()>,
    ) {
        let mut stopping = self.stopping.subscribe();
        let told_to_stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
        let state = tokio::select! {
            ended = &mut working => match ended {
                Ok(outcome) => self.ended(outcome),
                // What it panicked with may quote what is stored.
                Err(_) => {
                    tracing::error!(kind = self.kind(), "a job panicked");
                    self.end_in_store().await;
                    let problem = refusal::internal("the job came to a sudden end; see the log");
                    State::Failed { problem, took_ms: self.took_ms() }
                }
            },
            () = told_to_stop => {
                let state = self.abort(working).await;
                self.end_in_store().await;
                state
            }
            // The store keeps it for the next server.
            () = server_stops => self.abort(working).await,
        };
        *self.state() = state;
        self.stopping.send_replace(true);
    }

    /// Tells the store that the job is over.
    async fn end_in_store(&self) {
        if let Err(error) = self.job.stop().await {
            let (kind, error) = (self.kind(), error.message());
            tracing::warn!(kind, error, "a job that is over goes on with the next server");
        }
    }

    /// Every step of the work is a batch, so that ending it anywhere leaves nothing half done.
    async fn abort(&self, working: JoinHandle<Outcome>) -> State {
        working.abort();
        match working.await {
            // Who stopped it elsewhere was faster.
            Ok(Ok(None)) | Err(_) => State::Stopped { took_ms: self.took_ms() },
            Ok(outcome) => self.ended(outcome),
        }
    }

    fn ended(&self, outcome: Outcome) -> State {
        let took_ms = self.took_ms();
        match outcome {
            Ok(Some(came_to)) => State::Done { result: result(self.job.work(), &came_to), took_ms },
            Ok(None) => State::Elsewhere,
            Err(problem) => State::Failed { problem, took_ms },
        }
    }

    fn took_ms(&self) -> u64 {
        let here = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.before_ms.saturating_add(here)
    }

    fn progress(&self) -> MutexGuard<'_, JobProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let progress = *self.progress();
        let JobProgress { records, entries, findings, .. } = progress;
        let mut job = json!({
            "id": self.id(),
            "kind": self.kind(),
            "request": self.job.note()["request"],
            "started_at": self.job.started_at(),
            "progress": {"records": records, "entries": entries, "findings": findings},
        });
        let (state, took_ms) = match &*self.state() {
            State::Running => {
                job["estimate"] = estimate(&progress);
                ("running", self.took_ms())
            }
            State::Stopped { took_ms } => ("stopped", *took_ms),
            State::Done { result, took_ms } => {
                job["result"] = result.clone();
                ("done", *took_ms)
            }
            State::Failed { problem, took_ms } => {
                job["problem"] = problem.to_json();
                ("failed", *took_ms)
            }
            // It is not shown; whoever had it in hand already sees that it does not run.
            State::Elsewhere => ("stopped", self.took_ms()),
        };
        job["state"] = state.into();
        job["took_ms"] = took_ms.into();
        job
    }
}

/// How much is done, of about how much, how fast it goes, and how long it will take, as far as
/// known.
fn estimate(progress: &JobProgress) -> Value {
    let mut estimate = json!({ "done": progress.done });
    if let Some(about) = progress.about {
        estimate["about"] = about.into();
    }
    if let Some(rate) = progress.per_second {
        estimate["per_second"] = (rate.round() as u64).into();
    }
    if let Some(left) = progress.left {
        estimate["left_ms"] = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).into();
    }
    estimate
}
