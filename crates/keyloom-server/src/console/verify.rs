//! Verifications, repairs and builds: starts and shows them, with their findings.

mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keyloom::{Pace, RepairOptions, VerifyOptions, Work};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::visit::{Sent, Visit};
use crate::jobs::{Asked, Job};
use crate::params::Params;
use crate::problem::Problem;

/// The page of all jobs of a space.
#[derive(Serialize)]
struct VerifyPage {
    jobs: Vec<JobTold>,
}

/// The page of one job.
#[derive(Serialize)]
struct JobPage {
    job: JobTold,
}

/// A job as its JSON describes it.
#[derive(Deserialize, Serialize)]
struct JobTold {
    id: String,
    kind: String,
    state: String,
    request: Value,
    started_at: u64,
    took_ms: u64,
    progress: ProgressTold,
    /// Of jobs that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<EstimateTold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultTold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Value>,
}

/// The progress of a job.
#[derive(Deserialize, Serialize)]
struct ProgressTold {
    records: u64,
    entries: u64,
    findings: u64,
}

/// How far it has to go, as far as known.
#[derive(Deserialize, Serialize)]
struct EstimateTold {
    done: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_ms: Option<u64>,
}

/// What came of it. Each kind of job has some of these.
#[derive(Deserialize, Serialize)]
struct ResultTold {
    #[serde(default)]
    records: u64,
    #[serde(default)]
    entries: u64,
    #[serde(default)]
    unsettled: u64,
    /// For verifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<FindingTold>>,
    /// For repairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    mended: Option<Vec<FindingTold>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mended_counts: Option<BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Vec<FindingTold>>,
    /// For verifications and repairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_ready: Option<Vec<NotReadyTold>>,
    /// For builds.
    #[serde(skip_serializing_if = "Option::is_none")]
    put: Option<u64>,
}

/// An index or an aggregate that is not ready.
#[derive(Deserialize, Serialize)]
struct NotReadyTold {
    collection: String,
    index: String,
    state: String,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A finding.
#[derive(Deserialize, Serialize)]
struct FindingTold {
    kind: String,
    collection: Option<String>,
    index: Option<String>,
    area: String,
    key: String,
    /// The key itself, if the shown text differs from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    reason: String,
}

impl FindingTold {
    /// The key, byte for byte.
    fn key_bytes(&self) -> Vec<u8> {
        let own = self.key_base64.as_ref().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        own.unwrap_or_else(|| self.key.clone().into())
    }
}

/// `GET /verify`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = all(&mut visit).await;
    visit.answer(made)
}

/// `GET /verify/{id}`
pub(super) async fn job_page(mut visit: Visit) -> Response {
    let made = one(&mut visit).await;
    visit.answer(made)
}

/// `POST /verify`
pub(super) async fn verify(mut visit: Visit, Sent(sent): Sent) -> Response {
    let made = match visit.take_button(sent) {
        Ok(()) => verifying(&visit).await,
        Err(problem) => Err(problem),
    };
    visit.go_on(made)
}

/// `POST /repair`, with `dry_run`.
pub(super) async fn repair(mut visit: Visit, Sent(sent): Sent) -> Response {
    let made = match sent {
        Ok(sent) => repairing(&mut visit, sent).await,
        Err(problem) => Err(problem),
    };
    visit.go_on(made)
}

/// `POST /verify/{id}/stop`
pub(super) async fn stop(mut visit: Visit, Sent(sent): Sent) -> Response {
    let made = match visit.take_button(sent) {
        Ok(()) => stopping(&visit).await,
        Err(problem) => Err(problem),
    };
    visit.go_on(made)
}

async fn stopping(visit: &Visit) -> Result<String, Problem> {
    let job = found(visit).await?;
    job.stop().await;
    Ok(url(visit, &job))
}

async fn all(visit: &mut Visit) -> Result<VerifyPage, Problem> {
    visit.take_params().finish()?;
    let jobs = visit.app.jobs().of_space(&visit.app, visit.caller.admin()?).await?;
    let jobs = jobs.iter().map(|job| JobTold::of(job)).collect::<Result<_, Problem>>()?;
    Ok(VerifyPage { jobs })
}

async fn one(visit: &mut Visit) -> Result<JobPage, Problem> {
    visit.take_params().finish()?;
    Ok(JobPage { job: JobTold::of(&*found(visit).await?)? })
}

async fn found(visit: &Visit) -> Result<Arc<Job>, Problem> {
    let job = visit.app.jobs().get(&visit.app, visit.caller.admin()?, visit.part("id")).await?;
    job.ok_or_else(|| Problem::not_found("there is no such job; older ones make way for newer"))
}

async fn verifying(visit: &Visit) -> Result<String, Problem> {
    start(visit, Work::Verify(VerifyOptions::default()), Value::Null).await
}

async fn repairing(visit: &mut Visit, mut sent: Params) -> Result<String, Problem> {
    let dry_run = sent.take_flag("dry_run")?;
    visit.take_button(Ok(sent))?;
    let work = Work::Repair(RepairOptions { dry_run, ..RepairOptions::default() });
    start(visit, work, json!({ "dry_run": dry_run })).await
}

/// Builds an index or an aggregate, and gives the page of that job.
pub(super) async fn build(visit: &Visit, collection: &str, index: &str) -> Result<String, Problem> {
    let request = json!({ "collection": collection, "index": index });
    let (collection, index) = (collection.to_owned(), index.to_owned());
    start(visit, Work::Build { collection, index }, request).await
}

/// Starts a job, and gives its page; that of the one that runs where there is one already.
async fn start(visit: &Visit, work: Work, request: Value) -> Result<String, Problem> {
    let store = visit.caller.admin()?;
    let asked = Asked { work, request, key: visit.caller.key.clone(), pace: Pace::Full };
    let job = visit.app.jobs().start(&visit.app, store, asked).await?;
    Ok(url(visit, &job.unwrap_or_else(|running| running)))
}

/// The page of a job.
fn url(visit: &Visit, job: &Job) -> String {
    visit.links.to(&format!("/verify/{}", job.id()), [])
}

impl ResultTold {
    /// How many faults were repaired, including those that are not listed.
    fn mended_total(&self) -> u64 {
        self.mended_counts.iter().flat_map(BTreeMap::values).sum()
    }

    /// The indexes and aggregates that are not ready.
    fn idle(&self) -> &[NotReadyTold] {
        self.not_ready.as_deref().unwrap_or_default()
    }
}

impl JobTold {
    fn of(job: &Job) -> Result<Self, Problem> {
        serde_json::from_value(job.to_json()).map_err(|error| {
            // The error's message may quote a finding.
            tracing::error!(kind = ?error.classify(), "a job tells of itself in an unknown way");
            Problem::from(keyloom::Error::new(
                keyloom::ErrorKind::Internal,
                "the job tells of itself in a way that the console does not know",
            ))
        })
    }

    fn is_running(&self) -> bool {
        self.state == "running"
    }

    /// Whether it was a dry run.
    fn is_dry(&self) -> bool {
        self.request["dry_run"] == true
    }
}
