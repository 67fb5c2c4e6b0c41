//! System 3, point by point.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use executions::{Executions, Of};
use keyloom::{Effect, Order, Store};
use serde_json::{Value, json};

async fn stores() -> (Vec<Store>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().display());
    (vec![Store::open("memory:").await.unwrap(), Store::open(&address).await.unwrap()], folder)
}

fn event(run: u32, agent: &str, status: &str) -> Value {
    json!({
        "executionArn": format!("arn:aws:states:eu-west-1:123456789012:execution:{agent}:run-{run}"),
        "agentName": agent,
        "status": status,
        "startDate": format!("2026-01-02T03:{:02}:{:02}.{:03}Z", run / 60, run % 60, run % 7),
        "stateMachineArn": format!("arn:aws:states:eu-west-1:123456789012:stateMachine:{agent}"),
        "executionName": format!("run-{run}"),
        "indexedAt": "2026-01-02T04:00:00.000Z",
    })
}

const ALWAYS: (&str, &str) = ("0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z");

#[tokio::test]
async fn the_record_key_is_the_arn_itself() {
    for store in stores().await.0 {
        let executions = Executions::open(&store).await.unwrap();
        executions.observe(&event(1, "planner", "RUNNING")).await.unwrap();
        let arn = "arn:aws:states:eu-west-1:123456789012:execution:planner:run-1";
        assert_eq!(executions.get(arn).await.unwrap().unwrap().key, arn);
        assert!(executions.get("arn:aws:states").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_update_by_arn_moves_the_status_entry_and_nothing_else() {
    for store in stores().await.0 {
        let executions = Executions::open(&store).await.unwrap();
        executions.observe(&event(1, "planner", "RUNNING")).await.unwrap();
        let ended = executions.observe(&event(1, "planner", "SUCCEEDED")).await.unwrap();
        assert_eq!(ended.effect, Effect::Replaced);
        let count = async |of| {
            executions.list(of, ALWAYS, Order::Ascending, None).await.unwrap().records.len()
        };
        assert_eq!(count(Of::Status("RUNNING")).await, 0);
        assert_eq!(count(Of::Status("SUCCEEDED")).await, 1);
        assert_eq!(count(Of::Agent("planner")).await, 1);
    }
}

#[tokio::test]
async fn events_that_come_twice_or_late_change_nothing() {
    for store in stores().await.0 {
        let executions = Executions::open(&store).await.unwrap();
        executions.observe(&event(1, "planner", "RUNNING")).await.unwrap();
        let ended = executions.observe(&event(1, "planner", "SUCCEEDED")).await.unwrap();
        for (status, effect) in [
            ("SUCCEEDED", Effect::Unchanged),
            ("RUNNING", Effect::Ignored),
            ("FAILED", Effect::Ignored),
        ] {
            let again = executions.observe(&event(1, "planner", status)).await.unwrap();
            assert_eq!((again.effect, again.version), (effect, ended.version));
        }
    }
}

#[tokio::test]
async fn both_indexes_answer_between_two_instants_in_both_orders_paged() {
    for store in stores().await.0 {
        let executions = Executions::open(&store).await.unwrap();
        for run in 0..120 {
            let agent = if run % 2 == 0 { "planner" } else { "writer" };
            let status = if run % 3 == 0 { "FAILED" } else { "RUNNING" };
            executions.observe(&event(run, agent, status)).await.unwrap();
        }
        let between = ("2026-01-02T03:00:10.000Z", "2026-01-02T03:01:40.000Z");
        for (of, every, offset) in [
            (Of::Agent("planner"), 2, 0),
            (Of::Agent("writer"), 2, 1),
            (Of::Status("FAILED"), 3, 0),
        ] {
            let wanted: Vec<String> = (10..100)
                .filter(|run| run % every == offset)
                .map(|run| format!("run-{run}"))
                .collect();
            for order in [Order::Ascending, Order::Descending] {
                let mut found: Vec<String> = Vec::new();
                let mut cursor: Option<String> = None;
                loop {
                    let page =
                        executions.list(of, between, order, cursor.as_deref()).await.unwrap();
                    found.extend(page.records.iter().map(|execution| {
                        execution.value["executionName"].as_str().unwrap().to_owned()
                    }));
                    match page.next {
                        Some(next) => cursor = Some(next.to_string()),
                        None => break,
                    }
                }
                if order == Order::Descending {
                    found.reverse();
                }
                assert_eq!(found, wanted, "{of:?} {order:?}");
            }
        }
    }
}
