//! Work that outlasts a request: verifications, repairs, builds.
//!
//! A job runs as a task of its own. Callers start it, look at it, and stop it; what it found stays
//! to be read until newer jobs take its place. While it is under way, the store knows of it, so that
//! the next server goes on with it when this one ends.

mod findings;
mod job;
mod results;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::{Error, ErrorKind, JobOptions, Pace, Started, Store, Work};
use serde_json::Value;

use crate::app::App;

pub(crate) use job::Job;

/// How many jobs that are over are kept to be looked at.
const KEPT_MAX: usize = 100;

/// The jobs of a server, of all spaces.
#[derive(Default)]
pub(crate) struct Jobs {
    list: Mutex<VecDeque<Arc<Job>>>,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) work: Work,
    /// What exactly was asked for, to be told again.
    pub(crate) request: Value,
    /// The idempotency key: asked for again with the same one, it is the same job.
    pub(crate) key: Option<String>,
    pub(crate) pace: Pace,
}

/// The job that somebody asked for, or the one that is in its way.
pub(crate) type Admitted = Result<Arc<Job>, Arc<Job>>;

impl Jobs {
    /// Starts a job, unless one of its kind runs in the space: that one is given back as the
    /// error. One that was asked for before with the same key is given as it is, over or not.
    pub(crate) async fn start(
        &self,
        app: &App,
        store: &Store,
        asked: Asked,
    ) -> keyloom::Result<Admitted> {
        if let Some(same) = self.repeated(store.space_name(), &asked) {
            return Ok(Ok(same));
        }
        let Asked { work, pace, .. } = asked.clone();
        let options = JobOptions::default().with_pace(pace).with_note(job::note(&asked));
        if !app.config().keeps_jobs {
            return Ok(self.admit(app, store.job_of_this_process(work, options)?));
        }
        match store.start_job(work.clone(), options.clone()).await {
            Ok(Started::Job(started)) => Ok(self.admit(app, started)),
            Ok(Started::Rival(rival)) => Ok(self
                .admit(app, rival)
                .and_then(|rival| if rival.answers(&asked) { Ok(rival) } else { Err(rival) })),
            // A store that takes no writes can still be looked at.
            Err(error) if is_only_for_writers(&error, &work) => {
                Ok(self.admit(app, store.job_of_this_process(work, options)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Goes on with what is under way in the store.
    pub(crate) async fn resume(&self, app: &App) -> keyloom::Result<()> {
        if app.config().keeps_jobs {
            for found in app.store().jobs_of_all_spaces().await? {
                drop(self.admit(app, found));
            }
        }
        Ok(())
    }

    /// The jobs of a space, the newest first, those included that another server began.
    pub(crate) async fn of_space(
        &self,
        app: &App,
        store: &Store,
    ) -> keyloom::Result<Vec<Arc<Job>>> {
        if app.config().keeps_jobs {
            for found in store.jobs().await? {
                drop(self.admit(app, found));
            }
        }
        let space = store.space_name();
        let is_told = |job: &&Arc<Job>| job.space() == space && !job.is_elsewhere();
        Ok(self.list().iter().rev().filter(is_told).cloned().collect())
    }

    /// A job of a space by its id.
    pub(crate) async fn get(
        &self,
        app: &App,
        store: &Store,
        id: &str,
    ) -> keyloom::Result<Option<Arc<Job>>> {
        let is_it = |job: &&Arc<Job>| job.id() == id && job.space() == store.space_name();
        let known = self.list().iter().find(is_it).cloned();
        let found = match known {
            Some(job) => Some(job),
            None => self.of_space(app, store).await?.into_iter().find(|job| is_it(&job)),
        };
        Ok(found.filter(|job| !job.is_elsewhere()))
    }

    /// Runs a job, unless it runs here already. One that ends with this process is refused while
    /// another one of its kind runs.
    fn admit(&self, app: &App, job: keyloom::Job) -> Admitted {
        let job = Arc::new(Job::new(job));
        let working = {
            let job = job.clone();
            async move { job.work().await }
        };
        self.admit_with(app, job, working)
    }

    fn admit_with(
        &self,
        app: &App,
        job: Arc<Job>,
        working: impl Future<Output = job::Outcome> + Send + 'static,
    ) -> Admitted {
        {
            let mut list = self.list();
            if let Some(same) = list.iter().find(|found| found.id() == job.id()) {
                return Ok(same.clone());
            }
            if let Some(rival) = list.iter().find(|found| found.is_rival_of(&job)) {
                return Err(rival.clone());
            }
            list.push_back(job.clone());
            let over = |job: &Arc<Job>| !job.is_running();
            while list.iter().filter(|job| over(job)).count() > KEPT_MAX {
                let Some(oldest) = list.iter().position(over) else { break };
                list.remove(oldest);
            }
        }
        let working = tokio::spawn(working);
        tokio::spawn(job.clone().see_through(working, app.stopped()));
        Ok(job)
    }

    /// The job that was asked for before with the same key.
    fn repeated(&self, space: &str, asked: &Asked) -> Option<Arc<Job>> {
        self.list().iter().find(|job| job.space() == space && job.answers(asked)).cloned()
    }

    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Job>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether work that only reads was refused since the store takes no writes.
fn is_only_for_writers(error: &Error, work: &Work) -> bool {
    error.kind() == ErrorKind::ReadOnly && matches!(work, Work::Verify(_))
}
