//! Headers that a write rests on: conditions that cannot hold, and keys that cannot be kept.

use serde_json::json;

use crate::people::SCHEMA;
use crate::support::TestServer;

const TICKET: &str = "/v1/collections/ticket/records/t1";
const JSON: (&str, &str) = ("content-type", "application/json");

/// There is a record, or there is none: whoever asks for both asks for what never is.
#[test]
fn a_put_of_what_is_there_and_absent_never_happens() {
    let server = TestServer::start(SCHEMA);
    let put = |more: &[(&str, &str)]| {
        let headers = [&[JSON], more].concat();
        server.send("PUT", TICKET, &headers, json!({ "state": "open" }).to_string())
    };
    let version = "\"00000000000000000000000000000000-1\"";
    for tags in ["*", version] {
        let problem = put(&[("if-match", tags), ("if-none-match", "*")]).expect(412);
        assert_eq!(problem["type"], "/problems/precondition-failed");
        server.get(TICKET).expect(404);
    }
    put(&[]).expect(201);
    put(&[("if-match", "*"), ("if-none-match", "*")]).expect(412);
    // What is asked for has a form, whatever else is asked for.
    put(&[("if-none-match", version)]).expect(400);
    put(&[("if-match", "*"), ("if-none-match", version)]).expect(400);
}

#[test]
fn an_idempotency_key_that_cannot_be_kept_is_refused_before_anything_else() {
    let server = TestServer::start(SCHEMA);
    let unknown = json!({ "operations": [{ "op": "get", "collection": "nobody", "key": "x" }] });
    let (longest, longer) = ("k".repeat(255), "k".repeat(256));
    let batch = |key: &str| {
        let headers = [JSON, ("idempotency-key", key)];
        server.send("POST", "/v1/batch", &headers, unknown.to_string())
    };
    batch(&longest).expect(200);
    for key in ["", &longer] {
        let problem = batch(key).expect(400);
        assert!(problem["detail"].as_str().unwrap().contains("1 to 255 bytes"), "{problem}");
    }
}
