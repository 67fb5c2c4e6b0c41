//! Many independent operations in one round trip.

use std::fmt::Display;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use futures_util::{StreamExt, stream};

use super::answer;
use super::names::Names;
use super::operation::{Lane, Prepared, Preparing, Room, Told, lanes, read_all, results};
use super::transaction::{fingerprint, go_aside_with, make_room};
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::JsonBody;
use crate::caller::{Caller, IDEMPOTENCY_KEY_BYTES_MAX};
use crate::guard::Arrival;
use crate::params::Params;
use crate::path::PathParts;
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
    path: PathParts,
    params: Params,
    Extension(arrival): Extension<Arrival>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    params.finish()?;
    let limits = &app.config().limits;
    go_aside_with(&body, &arrival).await;
    let operations = read_all(body, limits)?;
    make_room(&app, &arrival, &operations).await;
    let mut preparing = Preparing::new(&caller);
    let mut asked = Vec::with_capacity(operations.len());
    for (number, operation) in operations.into_iter().enumerate() {
        asked.push(preparing.prepare(number, operation).await);
    }
    let subjects = asked.iter().map(|asked| asked.as_ref().ok().and_then(Prepared::subject));
    let lanes = lanes(subjects.collect::<Vec<_>>());
    let room = Room::new(limits);
    let work_off = |lane: Lane| {
        let (app, caller, path, asked, room) = (&app, &caller, &path, &asked, &room);
        async move {
            let mut done = Vec::with_capacity(lane.len());
            for number in lane {
                let Some(Ok(prepared)) = asked.get(number) else { continue };
                let operation = &prepared.operation;
                app.metrics().operation(&operation.collection, operation.verb());
                let told = by_itself(app, caller, path, prepared, room).await;
                done.push((number, told.unwrap_or_else(|problem| refused(problem, room))));
                // A store that answers without waiting would otherwise block other requests for the
                // whole batch.
                tokio::task::yield_now().await;
            }
            done
        }
    };
    let mut done: Vec<(usize, Told)> = stream::iter(lanes)
        .map(work_off)
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .flatten()
        .collect();
    let unprepared = asked.into_iter().enumerate();
    let unprepared = unprepared.filter_map(|(number, asked)| Some((number, asked.err()?)));
    done.extend(unprepared.map(|(number, problem)| (number, refused(problem, &room))));
    done.sort_by_key(|(number, _)| *number);
    Ok(answer::text(results(done.into_iter().map(|(_, told)| told).collect())))
}

/// Does one operation, and answers as if it had been sent alone.
async fn by_itself(
    app: &App,
    caller: &Caller,
    path: &PathParts,
    prepared: &Prepared,
    room: &Room,
) -> Result<Told, Problem> {
    room.check(&prepared.operation)?;
    let key = caller.key.as_deref();
    let key = key.zip(prepared.number).map(|(key, number)| derived_key(key, number));
    let limits = &app.config().limits;
    let answered = match prepared.alone(&caller.store, limits, key.as_deref()).await {
        Ok(answered) => answered,
        Err(refused) => {
            let mut names = Names::new(app, path, caller, &prepared.collection);
            return Err(prepared.refusal(refused, &mut names).await);
        }
    };
    let version = answered.version.map(|version| version.to_string());
    let told = room.fit(&prepared.operation, prepared.body(&answered).await?)?;
    Ok(told.as_result(answered.status, version.as_deref()))
}

/// The result of a refused operation.
fn refused(problem: Problem, room: &Room) -> Told {
    let status = problem.status().as_u16();
    room.fit_problem(problem).as_result(status, None)
}

/// The idempotency key of one part of a request with this key.
pub(super) fn derived_key(key: &str, part: impl Display) -> String {
    let derived = format!("{key}#{part}");
    match derived.len() <= IDEMPOTENCY_KEY_BYTES_MAX {
        true => derived,
        false => format!("{}#{part}", fingerprint(&key.into())),
    }
}
