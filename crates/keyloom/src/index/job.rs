//! Verifications, repairs and builds that go on after their process has ended.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | `task:job::{kind}` | a [task](crate::space::Task): what is to be done, since when, what has come of it |
//!
//! A space has one job of a kind at a time, whoever works on it. What a verification or a repair
//! has found is kept as notes of the task. A build keeps its position in a task of its own.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::account::Account;
use super::build::{Built, build};
use super::estimate::{Estimate, Gauge, keys_of_space, records};
use super::repair::{Repair, RepairOptions, repair_on};
use super::verification::{Verification, VerifyOptions};
use super::verify::verify_on;
use crate::error::{Error, ErrorKind, Result};
use crate::space::{
    Ended, Kept, Live, Pace, Session, Subject, Task, end_task, leave_task, tasks_under_way,
};

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Work {
    /// As [`Store::verify_with`](crate::Store::verify_with).
    Verify(VerifyOptions),
    /// As [`Store::repair`](crate::Store::repair).
    Repair(RepairOptions),
    /// As [`Store::build`](crate::Store::build).
    Build {
        /// The collection.
        collection: String,
        /// The index or aggregate.
        index: String,
    },
}

/// The kinds of jobs.
const KINDS: [&str; 3] = ["verify", "repair", "build"];

impl Work {
    /// One word for it: `verify`, `repair` or `build`. A space has one job of a kind at a time.
    pub fn kind(&self) -> &'static str {
        let [verify, repair, build] = KINDS;
        match self {
            Work::Verify(_) => verify,
            Work::Repair(_) => repair,
            Work::Build { .. } => build,
        }
    }

    /// How much of the work is done after so many records and entries. The entries of a build come
    /// from its records.
    fn done(&self, records: u64, entries: u64) -> u64 {
        match self {
            Work::Verify(_) | Work::Repair(_) => records + entries,
            Work::Build { .. } => records,
        }
    }
}

/// What a job came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobResult {
    /// What a verification found.
    Verified(Verification),
    /// What a repair did.
    Repaired(Repair),
    /// What a build did.
    Built(Built),
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobProgress {
    /// How many records were looked at.
    pub records: u64,
    /// How many index entries were looked at; those of a build were put.
    pub entries: u64,
    /// How many faults were found; those of a repair were mended or left.
    pub findings: u64,
    /// How many of those that `about` counts were looked at.
    pub done: u64,
    /// About how many there are to look at: records of a build, records and entries otherwise.
    /// `None` while nobody knows: a collection has more than 10,000 and no count of all records is
    /// declared.
    pub about: Option<u64>,
    /// How many of them are looked at in a second, lately.
    pub per_second: Option<f64>,
    /// About how long it will take.
    pub left: Option<Duration>,
}

impl JobProgress {
    fn of(work: &Work, account: &Account) -> Self {
        let Account { records, entries, .. } = *account;
        let findings = account.findings();
        let done = work.done(records, entries);
        JobProgress { records, entries, findings, done, ..JobProgress::default() }
    }

    fn by(self, gauge: &Gauge) -> Self {
        let Estimate { about, per_second, left } = gauge.at(self.done);
        JobProgress { about, per_second, left, ..self }
    }
}

/// What is known of a job from its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) work: Work,
    /// What whoever asked for it wants to know of it later.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) note: Value,
    /// In milliseconds since 1970.
    pub(crate) started_at: u64,
    #[serde(default)]
    pub(crate) pace: Pace,
}

/// Hears how far a job is.
pub(crate) type HearJob<'h> = &'h (dyn Fn(JobProgress) + Send + Sync);

impl Order {
    fn subject(&self) -> Subject {
        let (kind, collection) = ("job".to_owned(), String::new());
        let (name, definition) = (self.work.kind().to_owned(), self.id.clone());
        Subject { kind, collection, name, number: 0, definition }
    }

    /// Keeps the order in the store, unless there is one of its kind: that one is given then.
    pub(crate) async fn leave(&self, session: &Session) -> Result<Option<Order>> {
        let about = serde_json::to_value(self).map_err(unwritable)?;
        let account = Account::begun(session.now());
        let is_valid = |kept: &Kept<Account>| order_of(kept).is_some();
        let live = session.program()?;
        let rival = leave_task(live, self.subject(), about, account, is_valid).await?;
        Ok(rival.as_ref().and_then(order_of))
    }

    /// Ends the job wherever it is worked on; `false` when it has ended already.
    pub(crate) async fn end(&self, live: &Live) -> Result<bool> {
        end_task(live, &self.subject()).await
    }

    /// Does what is left of a job that is kept. Waits while somebody else does it; `None` when they
    /// have ended it.
    pub(crate) async fn carry_out(
        &self,
        session: &Session,
        hear: HearJob<'_>,
    ) -> Result<Option<JobResult>> {
        let live = session.program()?;
        let subject = self.subject();
        loop {
            let hear_other = |account: &Account| hear(JobProgress::of(&self.work, account));
            let taken = Task::take(live, None, &subject, None, hear_other).await;
            let Some(mut task) = taken.map_err(|ended| Ended::from(ended).of_memory())? else {
                return Ok(None);
            };
            match self.do_all(&mut task, session, hear).await {
                Err(Ended::TakenOver) => {}
                Err(Ended::Failed(error)) => {
                    // Where the store is closed, the job stays and goes on when it is opened.
                    drop(task.end().await);
                    return Err(error);
                }
                Ok(result) => match task.end().await.map_err(Ended::from) {
                    Ok(()) => return Ok(Some(result)),
                    Err(Ended::TakenOver) => {}
                    Err(Ended::Failed(error)) => return Err(error),
                },
            }
        }
    }

    /// Does a job that ends with this process.
    pub(crate) async fn carry_out_here(
        &self,
        session: &Session,
        hear: HearJob<'_>,
    ) -> Result<JobResult> {
        let mut task = Task::in_memory(session.program()?, Account::begun(session.now()));
        self.do_all(&mut task, session, hear).await.map_err(Ended::of_memory)
    }

    async fn do_all(
        &self,
        task: &mut Task<'_, Account>,
        session: &Session,
        hear: HearJob<'_>,
    ) -> Result<JobResult, Ended> {
        let live = session.program()?;
        let before = task.progress().clone();
        let about = task.while_at(self.about(live), |_| {}).await??;
        let gauge = Gauge::new(self.work.done(before.records, before.entries), about);
        task.keep_pace(self.pace);
        let hear_examined = |account: &Account| {
            hear(JobProgress::of(&self.work, account).by(&gauge));
        };
        match &self.work {
            Work::Verify(options) => {
                let verified = verify_on(task, session, options, &hear_examined).await?;
                Ok(JobResult::Verified(verified))
            }
            Work::Repair(options) => {
                let repaired = repair_on(task, session, options, &hear_examined).await?;
                Ok(JobResult::Repaired(repaired))
            }
            Work::Build { collection, index } => {
                let account = Mutex::new(before);
                let so_far = || account.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let hear_built = |built: Built| {
                    let counted = {
                        let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
                        (account.records, account.entries) = (built.records, built.put);
                        account.clone()
                    };
                    hear_examined(&counted);
                };
                let building = build(live, collection, index, self.pace, &hear_built);
                let built = task.while_at(building, |kept| *kept = so_far()).await??;
                Ok(JobResult::Built(built))
            }
        }
    }

    /// About how much there is to do.
    async fn about(&self, live: &Live) -> Result<Option<u64>> {
        let loaded = live.loaded().await?;
        match &self.work {
            Work::Verify(_) | Work::Repair(_) => keys_of_space(live, &loaded).await,
            Work::Build { collection, .. } => match loaded.schema.collection(collection) {
                Ok(collection) => records(live, &loaded, collection).await,
                Err(_) => Ok(None),
            },
        }
    }
}

/// The jobs of a space that are under way, each with how far it was when that was kept last.
pub(crate) async fn under_way(live: &Live) -> Result<Vec<(Order, JobProgress)>> {
    let names = KINDS.map(|kind| ("job", "", kind));
    let kept: Vec<Kept<Account>> = tasks_under_way(live, names).await?;
    let told = |kept: &Kept<Account>| {
        let order = order_of(kept)?;
        let progress = JobProgress::of(&order.work, &kept.progress);
        Some((order, progress))
    };
    Ok(kept.iter().filter_map(told).collect())
}

/// The order of a job; `None` for one that this version cannot read, or carry out.
fn order_of(kept: &Kept<Account>) -> Option<Order> {
    serde_json::from_value(kept.about.clone()).ok()
}

fn unwritable(source: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "a job cannot be written as JSON").with_source(source)
}
