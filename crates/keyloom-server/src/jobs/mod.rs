//! Work that outlasts a request: verifications, repairs, builds.
//!
//! A job runs as a task of its own. Callers start it, look at it, and stop it; what it found stays
//! to be read until newer jobs take its place.

mod build;
mod findings;
mod repair;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use keyloom::{Store, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::app::App;
use crate::problem::Problem;
use crate::refusal;

pub(crate) use build::build;
pub(crate) use repair::repair;
pub(crate) use verify::verify;

/// How many jobs that are over are kept to be looked at.
const KEPT_MAX: usize = 100;

/// The jobs of a server, of all spaces.
#[derive(Default)]
pub(crate) struct Jobs {
    list: Mutex<VecDeque<Arc<Job>>>,
    last_id: AtomicU64,
}

/// One job.
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) space: String,
    asked: Asked,
    started: Instant,
    started_at_ms: u64,
    progress: Progress,
    /// Told to stop.
    stopping: watch::Sender<bool>,
    state: Mutex<State>,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) kind: &'static str,
    /// What exactly is to be done.
    pub(crate) request: Value,
    /// The idempotency key: asked for again with the same one, it is the same job.
    pub(crate) key: Option<String>,
}

/// How far a job is.
#[derive(Default)]
struct Progress {
    records: AtomicU64,
    entries: AtomicU64,
    findings: AtomicU64,
}

enum State {
    Running,
    Done { result: Value, took_ms: u64 },
    Failed { problem: Problem, took_ms: u64 },
    Stopped { took_ms: u64 },
}

/// What a job comes to.
pub(crate) type Outcome = Result<Value, Problem>;

impl Jobs {
    /// Starts a job, unless one of its kind runs in the space: that one is given back as the
    /// error. One that was asked for before with the same key is given as it is, over or not.
    pub(crate) fn start<F, Fut>(
        &self,
        app: &App,
        store: &Store,
        asked: Asked,
        work: F,
    ) -> Result<Arc<Job>, Arc<Job>>
    where
        F: FnOnce(Store, Arc<Job>) -> Fut,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        let job = Arc::new(Job::new(self.next_id(), store.space_name(), asked));
        {
            let mut list = self.list();
            if let Some(same) = list.iter().find(|found| found.is_repeated_by(&job)) {
                return Ok(same.clone());
            }
            let rival = list.iter().find(|found| found.is_rival_of(&job));
            if let Some(rival) = rival {
                return Err(rival.clone());
            }
            list.push_back(job.clone());
            let over = |job: &Arc<Job>| !job.is_running();
            while list.iter().filter(|job| over(job)).count() > KEPT_MAX {
                let Some(oldest) = list.iter().position(over) else { break };
                list.remove(oldest);
            }
        }
        let working = tokio::spawn(work(store.clone(), job.clone()));
        tokio::spawn(job.clone().see_through(working, app.stopped()));
        Ok(job)
    }

    /// The jobs of a space, the newest first.
    pub(crate) fn of_space(&self, space: &str) -> Vec<Arc<Job>> {
        self.list().iter().rev().filter(|job| job.space == space).cloned().collect()
    }

    /// A job of a space by its id.
    pub(crate) fn get(&self, space: &str, id: &str) -> Option<Arc<Job>> {
        let id: u64 = id.parse().ok()?;
        self.list().iter().find(|job| job.space == space && job.id == id).cloned()
    }

    fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Job>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn new(id: u64, space: &str, asked: Asked) -> Self {
        Job {
            id,
            space: space.to_owned(),
            asked,
            started: Instant::now(),
            started_at_ms: u64::try_from(Timestamp::now().millis()).unwrap_or_default(),
            progress: Progress::default(),
            stopping: watch::Sender::new(false),
            state: Mutex::new(State::Running),
        }
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

    fn is_rival_of(&self, other: &Job) -> bool {
        self.is_running() && self.asked.kind == other.asked.kind && self.space == other.space
    }

    fn is_repeated_by(&self, other: &Job) -> bool {
        let is_same = self.asked.kind == other.asked.kind
            && self.asked.request == other.asked.request
            && self.asked.key == other.asked.key;
        is_same && self.asked.key.is_some() && self.space == other.space
    }

    /// Waits for the work, or for somebody who stops it, and notes what became of it.
    async fn see_through(
        self: Arc<Self>,
        mut working: tokio::task::JoinHandle<Outcome>,
        server_stops: impl Future<Output = ()>,
    ) {
        let mut stopping = self.stopping.subscribe();
        let told_to_stop = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
        let state = tokio::select! {
            ended = &mut working => match ended {
                Ok(Ok(result)) => State::Done { result, took_ms: self.took_ms() },
                Ok(Err(problem)) => State::Failed { problem, took_ms: self.took_ms() },
                // What it panicked with may quote what is stored.
                Err(_) => {
                    tracing::error!(kind = self.asked.kind, "a job panicked");
                    let problem = refusal::internal("the job came to a sudden end; see the log");
                    State::Failed { problem, took_ms: self.took_ms() }
                }
            },
            () = told_to_stop => self.abort(working).await,
            () = server_stops => self.abort(working).await,
        };
        *self.state() = state;
        self.stopping.send_replace(true);
    }

    /// Every step of the work is a batch, so that ending it anywhere leaves nothing half done.
    async fn abort(&self, working: tokio::task::JoinHandle<Outcome>) -> State {
        working.abort();
        match working.await {
            Ok(Ok(result)) => State::Done { result, took_ms: self.took_ms() },
            Ok(Err(problem)) => State::Failed { problem, took_ms: self.took_ms() },
            Err(_) => State::Stopped { took_ms: self.took_ms() },
        }
    }

    fn took_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let (records, entries, findings) = self.progress.read();
        let mut job = json!({
            "id": self.id.to_string(),
            "kind": self.asked.kind,
            "request": self.asked.request,
            "started_at": self.started_at_ms,
            "progress": {"records": records, "entries": entries, "findings": findings},
        });
        let (state, took_ms) = match &*self.state() {
            State::Running => ("running", self.took_ms()),
            State::Stopped { took_ms } => ("stopped", *took_ms),
            State::Done { result, took_ms } => {
                job["result"] = result.clone();
                ("done", *took_ms)
            }
            State::Failed { problem, took_ms } => {
                job["problem"] = problem.to_json();
                ("failed", *took_ms)
            }
        };
        job["state"] = state.into();
        job["took_ms"] = took_ms.into();
        job
    }
}

impl Progress {
    /// Notes how much was looked at, and how much was found, since the job began.
    fn set(&self, records: u64, entries: u64, findings: u64) {
        self.records.store(records, Ordering::Relaxed);
        self.entries.store(entries, Ordering::Relaxed);
        self.findings.store(findings, Ordering::Relaxed);
    }

    fn read(&self) -> (u64, u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.records), read(&self.entries), read(&self.findings))
    }
}
