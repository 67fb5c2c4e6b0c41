//! Runs long jobs on the server, and watches them until they end.

use std::time::Duration;

use axum::http::Method;
use serde_json::Value;

use crate::exit::{FAILED, Failure};
use crate::output::{Progress, grouped};
use crate::target::{Request, Target, runtime};

/// Starts a job and waits for its result.
pub(crate) fn run(target: &Target, request: Request, what: &str) -> Result<Value, Failure> {
    let started = target.ask(request)?;
    let id = match started.located() {
        Some(id) => id,
        None => started.json()?["id"].as_str().unwrap_or_default().to_owned(),
    };
    let progress = Progress::spinner(what);
    let clock = runtime()?;
    let mut pause = Duration::from_millis(10);
    loop {
        let job = target.value(Request::get(&["admin", "jobs", &id]))?;
        match job["state"].as_str() {
            Some("running") => progress.tell(&format!("{what} {}", words(&job["progress"]))),
            Some("done") => return Ok(job["result"].clone()),
            Some("failed") => return Err(Failure::of_problem(&job["problem"])),
            Some("stopped") => {
                return Err(Failure::new(FAILED, format!("{what} was stopped by somebody else")));
            }
            _ => return Err(Failure::new(FAILED, "the server told no state of the job")),
        }
        clock.block_on(async { tokio::time::sleep(pause).await });
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// A job without a body.
pub(crate) fn request(kind: &str, body: &Value) -> Request {
    Request::new(Method::POST, &["admin", kind]).json(body.to_string())
}

/// The numbers and names of a job's progress, in one line.
fn words(progress: &Value) -> String {
    let members = progress.as_object().into_iter().flatten();
    let words = members.filter_map(|(name, value)| match value {
        Value::Number(number) => {
            let number = number.as_u64().map_or_else(|| number.to_string(), grouped);
            Some(format!("{number} {name}"))
        }
        Value::String(text) => Some(text.clone()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}
