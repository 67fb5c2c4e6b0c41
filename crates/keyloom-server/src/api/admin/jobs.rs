//! Starts, shows and stops jobs.

use std::future::Future;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use keyloom::Store;
use serde_json::{Value, json};

use crate::api::answer;
use crate::api::operation::Members;
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::{WordsBody, WordsJson};
use crate::caller::Caller;
use crate::jobs::{Asked, Job, Outcome, build, repair, verify};
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
    if !body.is_empty() && keyloom::read_json(&body)? != json!({}) {
        return Err(Problem::invalid_request("a verification takes no body"));
    }
    start(&app, &caller, "verify", Value::Null, verify)
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
    members.finish()?;
    let dry_run = dry_run.ok_or_else(|| {
        Problem::invalid_request("say whether anything is to be written: dry_run is true or false")
    })?;
    start(&app, &caller, "repair", request, move |store, job| repair(store, job, dry_run))
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
    members.finish()?;
    // Refuses a missing index at once, rather than with a failed job.
    caller.store.index_state(&collection, &index).await?;
    let work = move |store, job| build(store, job, collection, index);
    start(&app, &caller, "build", request, work)
}

/// `GET /admin/jobs`
async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Response, Problem> {
    let store = caller.admin()?;
    params.finish()?;
    let jobs = app.jobs().of_space(store.space_name());
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
    Ok(answer::json(&found(&app, &caller, &path)?.to_json()))
}

/// `DELETE /admin/jobs/{id}`
async fn stop(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let job = found(&app, &caller, &path)?;
    job.stop().await;
    Ok(answer::json(&job.to_json()))
}

fn found(app: &App, caller: &Caller, path: &PathParts) -> Result<Arc<Job>, Problem> {
    let job = app.jobs().get(caller.admin()?.space_name(), path.get("id"));
    job.ok_or_else(|| Problem::not_found("there is no such job; those that are long over are gone"))
}

/// Starts a job and says where to watch it.
fn start<F, Fut>(
    app: &App,
    caller: &Caller,
    kind: &'static str,
    request: Value,
    work: F,
) -> Result<Response, Problem>
where
    F: FnOnce(Store, Arc<Job>) -> Fut,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    let store = caller.admin()?;
    let asked = Asked { kind, request, key: caller.key.clone() };
    match app.jobs().start(app, store, asked, work) {
        Ok(job) => {
            let mut accepted = answer::json(&job.to_json());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            Ok(answer::with_path(accepted, header::LOCATION, location(caller, &job)))
        }
        Err(running) => {
            let title = "A job of this kind is running";
            let detail = format!("wait for the {kind} that runs in this space, or stop it");
            let problem = Problem::new(StatusCode::CONFLICT, "already-running", title, detail)
                .with("job", running.id.to_string());
            let refused = problem.into_response();
            Ok(answer::with_path(refused, header::LOCATION, location(caller, &running)))
        }
    }
}

fn location(caller: &Caller, job: &Job) -> String {
    format!("{}/v1/admin/jobs/{}", caller.base, job.id)
}
