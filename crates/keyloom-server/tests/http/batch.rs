//! Many independent operations in one round trip.

use keyloom_server::Config;
use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

fn batch(server: &TestServer, operations: Value) -> Vec<Value> {
    let body = json!({"operations": operations});
    let answer = server.json("POST", "/v1/batch", &body).expect(200);
    answer["results"].as_array().unwrap().clone()
}

#[test]
fn each_operation_has_its_own_answer() {
    let server = TestServer::start(SCHEMA);
    let results = batch(
        &server,
        json!([
            {"op": "insert", "collection": "account", "record": account(1, 5)},
            {"op": "insert", "collection": "account", "record": {"code": "c1"}},
            {"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": 3}},
            {"op": "get", "collection": "account", "key": id(9)},
            {"op": "get", "collection": "nobody", "key": "1"},
            {"op": "get", "collection": "account", "key": "short"},
            {"op": "put", "collection": "account", "key": id(2), "record": {"code": "c2"}},
            {"op": "put", "collection": "account", "key": id(2), "record": {"code": "c2", "x": 1}},
            {"op": "delete", "collection": "account", "key": id(2)},
            {"op": "check", "collection": "account", "key": id(2), "exists": true},
        ]),
    );
    let statuses: Vec<u64> =
        results.iter().map(|result| result["status"].as_u64().unwrap()).collect();
    // The second insert and the first race for the code; exactly one wins.
    assert!(statuses[..2] == [201, 409] || statuses[..2] == [409, 201], "{statuses:?}");
    if statuses[0] == 201 {
        assert_eq!(statuses[2..], [200, 404, 404, 400, 201, 200, 204, 412], "{results:#?}");
        assert_eq!(results[2]["body"]["values"], json!({"stats.moves": 3}));
    }
    assert_eq!(results[4]["body"]["type"], "/problems/not-found");
    assert_eq!(results[4]["body"]["operation"], 4);
    let etag = results[7]["etag"].as_str().unwrap();
    assert_eq!(etag, format!("\"{}\"", results[7]["body"]["version"].as_str().unwrap()));
    assert!(results[8]["etag"].is_null());
}

#[test]
fn writes_to_one_record_happen_in_the_order_of_the_list() {
    // In a folder commits take their time, so that operations do run side by side.
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().display());
    let server = TestServer::on(&address, SCHEMA, Config::default());
    let mut operations = Vec::new();
    for step in 0..50 {
        for record in 0..4 {
            let put = json!({"id": id(record), "code": format!("c{record}"), "step": step});
            operations.push(
                json!({"op": "put", "collection": "account", "key": id(record), "record": put}),
            );
        }
    }
    let results = batch(&server, operations.into());
    assert!(results.iter().all(|result| [200, 201].contains(&result["status"].as_u64().unwrap())));
    for (place, result) in results.iter().enumerate() {
        assert_eq!(result["body"]["record"]["step"], place / 4);
        let version = result["body"]["version"].as_str().unwrap();
        assert!(version.ends_with(&format!("-{}", place / 4 + 1)), "{version}");
    }
}

#[test]
fn a_batch_with_a_key_happens_once() {
    let server = TestServer::start(SCHEMA);
    let key = "k".repeat(255);
    let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
    let body = json!({"operations": [
        {"op": "put", "collection": "account", "key": id(1), "record": {"code": "c1"}},
        {"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": 1}},
        {"op": "insert", "collection": "account", "record": {"code": "fresh"}},
        {"op": "delete", "collection": "account", "key": id(3)},
    ]})
    .to_string();
    let first = server.send("POST", "/v1/batch", &headers, body.clone()).expect(200);
    assert_eq!(first["results"][2]["status"], 201);
    for _ in 0..3 {
        let again = server.send("POST", "/v1/batch", &headers, body.clone()).expect(200);
        assert_eq!(again["results"][2], first["results"][2]);
        assert_eq!(again["results"][0], first["results"][0]);
    }
    let read = batch(&server, json!([{"op": "get", "collection": "account", "key": id(1)}]));
    assert_eq!(read[0]["body"]["record"]["stats"]["moves"], 1);
    let other = body.replace("fresh", "other");
    let answer = server.send("POST", "/v1/batch", &headers, other).expect(200);
    assert_eq!(answer["results"][2]["status"], 422);
    assert_eq!(answer["results"][2]["body"]["type"], "/problems/idempotency-conflict");
}
