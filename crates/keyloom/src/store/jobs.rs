//! Work over a whole space that outlasts the process that began it.

use serde_json::Value;

use super::Store;
use crate::engine::{Address, Batch, Condition, Direction, Effect, EngineExt, Space};
use crate::error::Result;
use crate::index::{JobProgress, JobResult, Order, Work, jobs_under_way};
use crate::own::{OwnKey, OwnRange};
use crate::record::{Version, new_id, now_ms};
use crate::space::{Pace, Session};

/// The kind of the marks that say, in the main space, which other spaces have a job.
const DIRECTORY: &str = "jobs";

/// How a job is done.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobOptions {
    /// How fast it goes.
    pub pace: Pace,
    /// What the program wants to know of the job later: see [`Job::note`].
    pub note: Value,
}

impl JobOptions {
    /// The same at another pace.
    #[must_use]
    pub fn with_pace(self, pace: Pace) -> Self {
        JobOptions { pace, ..self }
    }

    /// The same with a note.
    #[must_use]
    pub fn with_note(self, note: Value) -> Self {
        JobOptions { note, ..self }
    }
}

/// Work over a whole space: a verification, a repair or a build.
///
/// While a job is under way, the store knows what is to be done and how far it is. So whoever opens
/// the store after its process has ended can go on with it. That is neither in the change log nor
/// in a backup.
#[derive(Clone)]
pub struct Job {
    store: Store,
    order: Order,
    progress: JobProgress,
    is_kept: bool,
}

/// What became of the wish to start a job.
#[derive(Clone, Debug)]
pub enum Started {
    /// It is to be [run](Job::run).
    Job(Job),
    /// The space has a job of that kind, and none was started.
    Rival(Job),
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Job").field(&self.order).finish()
    }
}

impl Store {
    /// Starts a job, which is done by [`Job::run`]. A space has one job of a kind at a time: if it
    /// has one, that one is given back.
    pub async fn start_job(&self, work: Work, options: JobOptions) -> Result<Started> {
        let job = self.job(work, options, true)?;
        // First, or a job that nobody knows of might be left.
        job.mark().await?;
        match job.order.leave(self.session()).await? {
            None => Ok(Started::Job(job)),
            Some(order) => {
                let rival = Job { order, ..job };
                rival.mark().await?;
                Ok(Started::Rival(rival))
            }
        }
    }

    /// A job that ends with this process: nothing of it is written to the store.
    pub fn job_of_this_process(&self, work: Work, options: JobOptions) -> Result<Job> {
        self.job(work, options, false)
    }

    fn job(&self, work: Work, options: JobOptions, is_kept: bool) -> Result<Job> {
        self.session().program()?;
        let JobOptions { pace, note } = options;
        let order = Order { id: new_id(), work, note, started_at: now_ms(), pace };
        Ok(Job { store: self.clone(), order, progress: JobProgress::default(), is_kept })
    }

    /// The jobs of this space that are under way, whoever works on them, or nobody. One read.
    pub async fn jobs(&self) -> Result<Vec<Job>> {
        let found = jobs_under_way(self.session().program()?).await?;
        let jobs = found.into_iter().map(|(order, progress)| Job {
            store: self.clone(),
            order,
            progress,
            is_kept: true,
        });
        Ok(jobs.collect())
    }

    /// The jobs of all spaces that are under way.
    pub async fn jobs_of_all_spaces(&self) -> Result<Vec<Job>> {
        let main = self.space(Space::main().name())?;
        let mut jobs = main.jobs().await?;
        for name in main.spaces_with_jobs().await? {
            jobs.extend(self.space(&name)?.jobs().await?);
        }
        Ok(jobs)
    }

    /// The spaces besides the main one that may have a job.
    async fn spaces_with_jobs(&self) -> Result<Vec<String>> {
        let range = OwnRange::Tasks { kind: DIRECTORY }.range();
        let engine = self.engine();
        let rows = engine.scan_all(&Space::main(), &range, 1_000, Direction::Forward).await?;
        let mut names: Vec<String> = rows
            .iter()
            .filter_map(|row| match OwnKey::decode(&row.key)? {
                OwnKey::Task { collection: space, .. } => Some(space.to_owned()),
                _ => None,
            })
            .collect();
        names.dedup();
        Ok(names)
    }
}

impl Job {
    /// Its id: 26 characters that no other job has.
    pub fn id(&self) -> &str {
        &self.order.id
    }

    /// The space that it is about.
    pub fn space_name(&self) -> &str {
        self.store.space_name()
    }

    /// What it does.
    pub fn work(&self) -> &Work {
        &self.order.work
    }

    /// What the program said of it when it was started.
    pub fn note(&self) -> &Value {
        &self.order.note
    }

    /// When it was started, in milliseconds since 1970.
    pub fn started_at(&self) -> u64 {
        self.order.started_at
    }

    /// Whether the store knows of it; otherwise it ends with this process.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// How fast it goes.
    pub fn pace(&self) -> Pace {
        self.order.pace
    }

    /// How far it was when the store was asked for it, or [run](Self::run) told last.
    pub fn progress(&self) -> JobProgress {
        self.progress
    }

    /// Does what is left of it, and tells its progress after each chunk of keys. While another
    /// handle or another process works on it, it waits, and takes over if that one ends early.
    /// `None` if somebody else has ended the job.
    ///
    /// If the future is dropped, the job stays where it is: [`Store::jobs`] finds it. If it fails,
    /// it is over.
    pub async fn run(&self, hear: impl Fn(JobProgress) + Send + Sync) -> Result<Option<JobResult>> {
        if !self.is_kept {
            return self.order.carry_out_here(self.session(), &hear).await.map(Some);
        }
        let done = self.order.carry_out(self.session(), &hear).await;
        match &done {
            Ok(Some(_)) => self.unmark().await?,
            // It stays where the store could not be told that it is over.
            Err(_) if matches!(self.is_under_way().await, Ok(false)) => self.unmark().await?,
            Err(_) | Ok(None) => {}
        }
        done
    }

    /// Ends the job, whoever works on it; `false` if it has ended already. Each of its steps is one
    /// batch, so that nothing is left half done.
    pub async fn stop(&self) -> Result<bool> {
        if !self.is_kept {
            return Ok(false);
        }
        let is_ended = self.order.end(self.session().program()?).await?;
        if is_ended {
            self.unmark().await?;
        }
        Ok(is_ended)
    }

    fn session(&self) -> &Session {
        self.store.session()
    }

    async fn is_under_way(&self) -> Result<bool> {
        Ok(self.store.jobs().await?.iter().any(|job| job.id() == self.id()))
    }

    /// Where the main space says that this space has a job; nowhere for jobs of the main space
    /// itself.
    fn mark_address(&self) -> Option<Address> {
        let (space, kind) = (self.space_name(), self.work().kind());
        let mark = OwnKey::Task { kind: DIRECTORY, collection: space, name: kind };
        (space != Space::main().name()).then(|| mark.address())
    }

    async fn mark(&self) -> Result<()> {
        let Some(address) = self.mark_address() else { return Ok(()) };
        let (stamp, bytes) = (Version::first().stamp(), self.id().to_owned().into());
        self.commit_mark(address, None, Effect::Put { stamp, bytes }).await
    }

    /// Takes the mark away, unless it is that of a later job.
    async fn unmark(&self) -> Result<()> {
        let Some(address) = self.mark_address() else { return Ok(()) };
        let engine = self.store.engine();
        let Some(cell) = engine.get_one(&Space::main(), &address).await? else { return Ok(()) };
        if cell.bytes().is_none_or(|id| id != self.id().as_bytes()) {
            return Ok(());
        }
        self.commit_mark(address, Some(Condition::Unchanged(cell.stamp)), Effect::Delete).await
    }

    /// Changes a cell of the main space, which means the same under every schema.
    async fn commit_mark(
        &self,
        mark: Address,
        condition: Option<Condition>,
        effect: Effect,
    ) -> Result<()> {
        let main = self.store.space(Space::main().name())?;
        let mut batch = Batch::new(Space::main());
        batch.push(mark, condition, Some(effect));
        main.session().commit_under_any_schema(batch).await.map(drop)
    }
}
