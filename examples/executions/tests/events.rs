//! System 3 fed by events, through a Keyloom server.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use executions::{Executions, Of, Server};
use keyloom::{Order, Store};
use keyloom_server::{App, Config, serve};
use serde_json::{Value, json};

const START_MS: i64 = 1_767_323_045_000;
const ALWAYS: (&str, &str) = ("0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z");

fn event(status: &str, run: i64) -> Value {
    let started = START_MS + run * 1000;
    json!({
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "123456789012",
        "time": "2026-01-02T03:04:05Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": {
            "executionArn": format!("arn:aws:states:eu-west-1:123456789012:execution:planner:run-{run}"),
            "stateMachineArn": "arn:aws:states:eu-west-1:123456789012:stateMachine:planner",
            "name": format!("run-{run}"),
            "status": status,
            "startDate": started,
            "stopDate": (status != "RUNNING").then(|| started + 2500),
            "input": "{}",
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_twice_and_late_and_the_index_is_right() {
    let store = Store::open("memory:").await.unwrap();
    let executions = Executions::open(&store).await.unwrap();
    let keyloom =
        serve(App::new(store, Config::default()), ([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}", keyloom.address().unwrap());
    tokio::spawn(keyloom.run(std::future::pending()));

    tokio::task::spawn_blocking(move || {
        let server = Server::new(&url);
        for run in 0..30 {
            server.observe(&event("RUNNING", run)).unwrap();
            let ended = server.observe(&event("SUCCEEDED", run)).unwrap();
            assert_eq!(ended["durationSeconds"], 2.5);
            server.observe(&event("SUCCEEDED", run)).unwrap();
            let late = server.observe(&event("RUNNING", run)).unwrap();
            assert_eq!(late["status"], "SUCCEEDED", "a late event never overwrites the end");
        }
        assert!(server.observe(&json!({ "source": "aws.ec2" })).is_err());
        assert!(server.observe(&event("DANCING", 1)).is_err());
    })
    .await
    .unwrap();

    let all = async |of| executions.list(of, ALWAYS, Order::Descending, None).await.unwrap();
    assert_eq!(all(Of::Status("RUNNING")).await.records.len(), 0);
    assert_eq!(all(Of::Agent("planner")).await.records.len(), 25);
    let newest = &all(Of::Status("SUCCEEDED")).await.records[0];
    assert_eq!(newest.value["executionName"], "run-29");
}
