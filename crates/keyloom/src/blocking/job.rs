//! Jobs for programs without an async runtime.

use std::sync::Arc;

use serde_json::Value;

use super::runtime::Runtime;
use crate::error::Result;
use crate::index::{JobProgress, JobResult, Work};
use crate::space::Pace;

/// A [`Job`](crate::Job) for programs without an async runtime.
#[derive(Clone, Debug)]
pub struct Job {
    inner: crate::Job,
    runtime: Arc<Runtime>,
}

/// What became of the wish to start a job.
#[derive(Clone, Debug)]
pub enum Started {
    /// It is to be [run](Job::run).
    Job(Job),
    /// The space has a job of that kind, and none was started.
    Rival(Job),
}

impl Started {
    pub(super) fn new(started: crate::Started, runtime: &Arc<Runtime>) -> Self {
        match started {
            crate::Started::Job(job) => Started::Job(Job::new(job, runtime)),
            crate::Started::Rival(job) => Started::Rival(Job::new(job, runtime)),
        }
    }
}

/// Defines methods that answer as those of the same name on `self.inner`.
macro_rules! tells {
    ($(fn $name:ident(&self) -> $answer:ty;)*) => {$(
        #[doc = concat!("As [`Job::", stringify!($name), "`](crate::Job::", stringify!($name), ").")]
        pub fn $name(&self) -> $answer {
            self.inner.$name()
        }
    )*};
}

impl Job {
    pub(super) fn new(inner: crate::Job, runtime: &Arc<Runtime>) -> Self {
        Job { inner, runtime: Arc::clone(runtime) }
    }

    tells! {
        fn id(&self) -> &str;
        fn space_name(&self) -> &str;
        fn work(&self) -> &Work;
        fn note(&self) -> &Value;
        fn started_at(&self) -> u64;
        fn is_kept(&self) -> bool;
        fn pace(&self) -> Pace;
        fn progress(&self) -> JobProgress;
    }

    /// As [`Job::run`](crate::Job::run).
    pub fn run(&self, hear: impl Fn(JobProgress) + Send + Sync) -> Result<Option<JobResult>> {
        self.runtime.run(self.inner.run(hear))
    }

    /// As [`Job::stop`](crate::Job::stop).
    pub fn stop(&self) -> Result<bool> {
        self.runtime.run(self.inner.stop())
    }
}
