//! Starts, shows and stops jobs.

use std::fmt::Display;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use keyloom::{Pace, RepairOptions, VerifyOptions, Work};
use serde_json::{Value, json};

use crate::api::answer;
use crate::api::operation::{Members, whole};
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::{WordsBody, WordsJson};
use crate::caller::Caller;
use crate::jobs::{Asked, Job};
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/verify", post(start_verify))
        .route("/repair", post(start_repair))
        .route("/build", post(start_build))
        .route("/jobs", get(list))
        .route("/jobs/{id}", get(show).delete(stop))
}

/// `POST /admin/verify`
async fn start_verify(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    WordsBody(body): WordsBody,
) -> Result<Response, Problem> {
    caller.admin()?;
    params.finish()?;
    let request = if body.is_empty() { json!({}) } else { keyloom::read_json(&body)? };
    let mut members = Members::of(request.clone(), "the body")?;
    let pace = pace(&mut members)?;
    members.finish()?;
    // Whoever asks for nothing in particular is told so.
    let request = if request == json!({}) { Value::Null } else { request };
    start(&app, &caller, Work::Verify(VerifyOptions::default()), request, pace).await
}

/// `POST /admin/repair`
async fn start_repair(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    WordsJson(body): WordsJson,
) -> Result<Response, Problem> {
    caller.admin()?;
    params.finish()?;
    let request = body.clone();
    let mut members = Members::of(body, "the body")?;
    let dry_run = members.flag("dry_run")?;
    let pace = pace(&mut members)?;
    members.finish()?;
    let dry_run = dry_run.ok_or_else(|| {
        Problem::invalid_request("say whether anything is to be written: dry_run is true or false")
    })?;
    let options = RepairOptions { dry_run, ..RepairOptions::default() };
    start(&app, &caller, Work::Repair(options), request, pace).await
}

/// `POST /admin/build`
async fn start_build(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    WordsJson(body): WordsJson,
) -> Result<Response, Problem> {
    caller.admin()?;
    params.finish()?;
    let request = body.clone();
    let mut members = Members::of(body, "the body")?;
    let (collection, index) = (members.text("collection")?, members.text("index")?);
    let pace = pace(&mut members)?;
    members.finish()?;
    // Refuses a missing index at once, rather than with a failed job.
    caller.store.index_state(&collection, &index).await?;
    start(&app, &caller, Work::Build { collection, index }, request, pace).await
}

/// How fast a job is to go.
fn pace(members: &mut Members) -> Result<Pace, Problem> {
    let keys = at_most::<u32>(members, "keys_per_second", u32::MAX)?;
    let percent = at_most::<u8>(members, "percent_of_time", 100)?;
    match (keys, percent) {
        (None, None) => Ok(Pace::Full),
        (Some(keys), None) => Ok(Pace::KeysPerSecond(keys)),
        (None, Some(percent)) => Ok(Pace::PercentOfTime(percent)),
        (Some(_), Some(_)) => {
            Err(Problem::invalid_request("a job has one pace: keys_per_second or percent_of_time"))
        }
    }
}

/// A member that is a whole number from 1 on, if it is there.
fn at_most<N>(members: &mut Members, name: &str, most: N) -> Result<Option<N>, Problem>
where
    N: TryFrom<i64> + PartialOrd + From<u8> + Display,
{
    let Some(sent) = members.take_if_there(name) else { return Ok(None) };
    let number = whole(&sent).and_then(|number| N::try_from(number).ok());
    match number.filter(|number| *number >= N::from(1) && *number <= most) {
        Some(number) => Ok(Some(number)),
        None => {
            let detail = format!("{name} is a whole number from 1 to {most}");
            Err(Problem::invalid_request(detail))
        }
    }
}

/// `GET /admin/jobs`
async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Response, Problem> {
    let store = caller.admin()?;
    params.finish()?;
    let jobs = app.jobs().of_space(&app, store).await?;
    let jobs: Vec<Value> = jobs.iter().map(|job| job.to_json()).collect();
    Ok(answer::json(&json!({"jobs": jobs})))
}

/// `GET /admin/jobs/{id}`
async fn show(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    Ok(answer::json(&found(&app, &caller, &path).await?.to_json()))
}

/// `DELETE /admin/jobs/{id}`
async fn stop(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let job = found(&app, &caller, &path).await?;
    job.stop().await;
    Ok(answer::json(&job.to_json()))
}

async fn found(app: &App, caller: &Caller, path: &PathParts) -> Result<Arc<Job>, Problem> {
    let job = app.jobs().get(app, caller.admin()?, path.get("id")).await?;
    job.ok_or_else(|| Problem::not_found("there is no such job; those that are long over are gone"))
}

/// Starts a job and says where to look at it.
async fn start(
    app: &App,
    caller: &Caller,
    work: Work,
    request: Value,
    pace: Pace,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    let kind = work.kind();
    let asked = Asked { work, request, key: caller.key.clone(), pace };
    match app.jobs().start(app, store, asked).await? {
        Ok(job) => {
            let mut accepted = answer::json(&job.to_json());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            Ok(answer::with_path(accepted, header::LOCATION, location(caller, &job)))
        }
        Err(running) => {
            let title = "A job of this kind is running";
            let detail = format!("wait for the {kind} that runs in this space, or stop it");
            let problem = Problem::new(StatusCode::CONFLICT, "already-running", title, detail)
                .with("job", running.id());
            let refused = problem.into_response();
            Ok(answer::with_path(refused, header::LOCATION, location(caller, &running)))
        }
    }
}

fn location(caller: &Caller, job: &Job) -> String {
    format!("{}/v1/admin/jobs/{}", caller.base, job.id())
}
