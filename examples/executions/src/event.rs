//! What Step Functions tells EventBridge about an execution, as a record.
//!
//! | in the record | from the event |
//! | --- | --- |
//! | `agentName` | the last part of `stateMachineArn`: the state machine's name |
//! | `startDate`, `stopDate` | milliseconds since 1970, written as ISO-8601 |
//! | `durationSeconds` | the difference of the two |
//! | `indexedAt` | the event's own `time` |

use std::fmt;

use serde_json::{Map, Value, json};

/// Why something is not an event of this kind.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAnEvent(&'static str);

impl fmt::Display for NotAnEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an execution status change: {}", self.0)
    }
}

impl std::error::Error for NotAnEvent {}

/// The record of an "Execution Status Change" event.
pub fn execution_of(event: &Value) -> Result<Value, NotAnEvent> {
    if event["source"] != "aws.states" {
        return Err(NotAnEvent("the source is not aws.states"));
    }
    let detail = &event["detail"];
    let text = |name: &str, missing| detail[name].as_str().ok_or(NotAnEvent(missing));
    let machine = text("stateMachineArn", "detail.stateMachineArn is missing")?;
    let agent = machine.rsplit(':').next().filter(|name| !name.is_empty());
    let started = detail["startDate"].as_i64().ok_or(NotAnEvent("detail.startDate is missing"))?;
    let mut record = Map::new();
    let mut set = |name: &str, value: Value| drop(record.insert(name.to_owned(), value));
    set("executionArn", json!(text("executionArn", "detail.executionArn is missing")?));
    set("agentName", json!(agent.ok_or(NotAnEvent("the state machine has no name"))?));
    set("status", json!(text("status", "detail.status is missing")?));
    set("stateMachineArn", json!(machine));
    set("startDate", json!(iso(started)));
    if let Some(name) = detail["name"].as_str() {
        set("executionName", json!(name));
    }
    // While it runs there is no end, and EventBridge sends null.
    if let Some(stopped) = detail["stopDate"].as_i64() {
        set("stopDate", json!(iso(stopped)));
        let milliseconds = stopped.saturating_sub(started);
        set("durationSeconds", json!(milliseconds as f64 / 1000.0));
    }
    if let Some(time) = event["time"].as_str() {
        set("indexedAt", json!(time));
    }
    Ok(record.into())
}

/// `2019-02-26T23:52:26.847Z` of milliseconds since 1970.
fn iso(milliseconds: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (days, rest) = (milliseconds.div_euclid(DAY_MS), milliseconds.rem_euclid(DAY_MS));
    let (year, month, day) = date(days);
    let (seconds, millis) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970. Years begin in March here, so that the
/// day that some years have more is their last.
fn date(days_since_1970: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let days = days_since_1970 + 719_468; // since the first of March of the year 0
    let (age, day_of_age) =
        (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    let leaps = day_of_age / 1460 - day_of_age / 36_524 + day_of_age / 146_096;
    let year_of_age = (day_of_age - leaps) / 365;
    let day_of_year = day_of_age - (365 * year_of_age + year_of_age / 4 - year_of_age / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (400 * age + year_of_age + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn milliseconds_become_iso_dates() {
        for (milliseconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_551_225_146_847, "2019-02-26T23:52:26.847Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(milliseconds), expected);
        }
    }

    #[test]
    fn the_agent_and_the_duration_come_out_of_the_event() {
        let event = json!({
            "source": "aws.states",
            "detail-type": "Step Functions Execution Status Change",
            "time": "2019-02-26T19:42:21Z",
            "detail": {
                "executionArn": "arn:aws:states:us-east-1:123456789012:execution:planner:run-7",
                "stateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:planner",
                "name": "run-7", "status": "SUCCEEDED",
                "startDate": 1_551_225_146_847_i64, "stopDate": 1_551_225_151_881_i64,
            },
        });
        let record = execution_of(&event).unwrap();
        assert_eq!(record["agentName"], "planner");
        assert_eq!(record["durationSeconds"], 5.034);
        assert_eq!(record["startDate"], "2019-02-26T23:52:26.847Z");
        assert_eq!(record["stopDate"], "2019-02-26T23:52:31.881Z");
    }

    #[test]
    fn what_is_no_event_is_told_apart() {
        assert!(execution_of(&json!({})).is_err());
        assert!(execution_of(&json!({ "source": "aws.states", "detail": {} })).is_err());
    }
}
