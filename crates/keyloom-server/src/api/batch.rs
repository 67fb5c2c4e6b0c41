//! Many independent operations in one round trip.

use std::fmt::Display;

use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::answer;
use super::operation::{Lane, Prepared, Preparing, lanes, read_all};
use super::transaction::{fingerprint, run};
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::{Caller, IDEMPOTENCY_KEY_BYTES_MAX};
use crate::params::Params;
use crate::problem::Problem;

/// How many records are written at once.
const AT_ONCE: usize = 32;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/batch", post(run_batch))
}

/// `POST /batch`
async fn run_batch(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.finish()?;
    let prints: Vec<String> =
        body["operations"].as_array().into_iter().flatten().map(fingerprint).collect();
    let operations = read_all(body, &app.config().limits)?;
    let mut preparing = Preparing::new(&caller).await?;
    let mut asked = Vec::with_capacity(operations.len());
    for (number, operation) in operations.into_iter().enumerate() {
        asked.push(preparing.prepare(number, operation).await);
    }
    let subjects = asked.iter().map(|asked| asked.as_ref().ok().and_then(Prepared::subject));
    let lanes = lanes(subjects.collect::<Vec<_>>());
    let work_off = |lane: Lane| {
        let (app, caller, asked, prints) = (&app, &caller, &asked, &prints);
        async move {
            let mut done = Vec::with_capacity(lane.len());
            for number in lane {
                let Some(Ok(prepared)) = asked.get(number) else { continue };
                let print = prints.get(number).cloned().unwrap_or_default();
                let operation = &prepared.operation;
                app.metrics().operation(&operation.collection, operation.verb());
                done.push((number, by_itself(caller, prepared, print).await));
            }
            done
        }
    };
    let mut done: Vec<(usize, Result<Value, Problem>)> = stream::iter(lanes)
        .map(work_off)
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .flatten()
        .collect();
    let refused = asked.into_iter().enumerate();
    done.extend(refused.filter_map(|(number, asked)| Some((number, Err(asked.err()?)))));
    done.sort_by_key(|(number, _)| *number);
    let results: Vec<Value> =
        done.into_iter().map(|(_, done)| done.unwrap_or_else(|problem| told(&problem))).collect();
    Ok(answer::json(&json!({"results": results})))
}

/// Does one operation, and answers as if it were alone.
async fn by_itself(caller: &Caller, prepared: &Prepared, print: String) -> Result<Value, Problem> {
    let key = caller.key.as_deref().map(|key| derived_key(key, prepared.number));
    if prepared.is_direct() {
        return Ok(prepared.do_direct(key.as_deref()).await?.into_result());
    }
    let alone = std::slice::from_ref(prepared);
    let done = run(&caller.store, alone, key.as_deref(), print).await?;
    let status = done.statuses.first().copied().unwrap_or_default();
    if status == 404 {
        return Err(Problem::not_found("the collection has no such record"));
    }
    let body = done.results.into_iter().next().unwrap_or_default();
    let mut result = json!({"status": status, "body": body});
    if let Some(version) = done.versions.into_iter().next().flatten() {
        result["etag"] = format!("\"{version}\"").into();
    }
    Ok(result)
}

/// The idempotency key of one part of what has this key.
pub(super) fn derived_key(key: &str, part: impl Display) -> String {
    let derived = format!("{key}#{part}");
    match derived.len() <= IDEMPOTENCY_KEY_BYTES_MAX {
        true => derived,
        false => format!("{}#{part}", fingerprint(&key.into())),
    }
}

fn told(problem: &Problem) -> Value {
    json!({"status": problem.status().as_u16(), "body": problem.to_json()})
}
