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
            Some("running") => {
                let (done, left) = (words(&job["progress"]), left(&job["estimate"]));
                progress.tell(&format!("{what} {done}{left}"));
            }
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

/// How much of it is done, and how long the rest takes, as far as the server knows.
fn left(estimate: &Value) -> String {
    let number = |name: &str| estimate[name].as_u64();
    let (Some(done), Some(about)) = (number("done"), number("about")) else {
        return String::new();
    };
    let percent = done.saturating_mul(100) / about.max(1);
    let left = number("left_ms").map_or_else(String::new, |ms| {
        let seconds = ms.div_ceil(1_000);
        match seconds {
            0..120 => format!(", {seconds} s left"),
            120..7_200 => format!(", {} min left", seconds.div_ceil(60)),
            _ => format!(", {} h left", seconds.div_ceil(3_600)),
        }
    });
    format!(", {percent} %{left}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_is_told_as_far_as_it_is_known() {
        let left_of = |estimate: Value| left(&estimate);
        assert_eq!(left_of(Value::Null), "");
        assert_eq!(left_of(json!({ "done": 5 })), "");
        assert_eq!(left_of(json!({ "done": 5, "about": 20 })), ", 25 %");
        assert_eq!(left_of(json!({ "done": 0, "about": 0 })), ", 0 %");
        for (left_ms, told) in
            [(1, "1 s"), (119_000, "119 s"), (120_001, "3 min"), (7_200_000, "2 h")]
        {
            let told = format!(", 25 %, {told} left");
            assert_eq!(left_of(json!({ "done": 5, "about": 20, "left_ms": left_ms })), told);
        }
    }
}
