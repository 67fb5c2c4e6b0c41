//! Health, readiness and metrics.

use std::net::TcpStream;

use keyloom_server::{Authority, Config, new_token};
use serde_json::json;

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

fn metrics(server: &TestServer) -> String {
    let answer = server.get("/metrics");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    String::from_utf8(answer.body).unwrap()
}

/// The value of a sample.
fn sample(text: &str, name: &str) -> f64 {
    let line =
        text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn requests_are_counted_by_route_and_not_by_path() {
    let server = TestServer::start(SCHEMA);
    server.json("POST", "/v1/collections/account/records", &account(1, 1)).expect(201);
    for n in 0..20 {
        server.get(&format!("/v1/collections/account/records/{}", id(n)));
        server.get(&format!("/v1/collections/nobody{n}/records/{}", id(n)));
        server.get(&format!("/nowhere/{n}"));
        server.send("PROPFIND", &format!("/v1/kv/{n}"), &[], "");
    }
    let get = json!({"op": "get", "collection": "account", "key": id(1)});
    server
        .json(
            "POST",
            "/v1/batch",
            &json!({"operations": [get, get, {"op": "get", "collection": "nobody", "key": "x"}]}),
        )
        .expect(200);
    let text = metrics(&server);
    let route = r#"route="/v1/collections/{collection}/records/{key}",method="GET""#;
    assert_eq!(sample(&text, &format!("keyloom_requests_total{{{route},status=\"2xx\"}}")), 1.0);
    assert_eq!(sample(&text, &format!("keyloom_requests_total{{{route},status=\"4xx\"}}")), 39.0);
    assert_eq!(sample(&text, &format!("keyloom_request_duration_seconds_count{{{route}}}")), 40.0);
    assert_eq!(
        sample(&text, &format!("keyloom_request_duration_seconds_bucket{{{route},le=\"+Inf\"}}")),
        40.0
    );
    assert_eq!(
        sample(
            &text,
            r#"keyloom_requests_total{route="/v1/kv/{key}",method="other",status="4xx"}"#
        ),
        20.0
    );
    assert_eq!(
        sample(&text, r#"keyloom_collection_operations_total{collection="account",verb="read"}"#),
        3.0
    );
    assert_eq!(
        sample(&text, r#"keyloom_collection_operations_total{collection="account",verb="write"}"#),
        1.0
    );
    assert!(!text.contains("nobody") && !text.contains("nowhere/") && !text.contains("PROPFIND"));
    assert!(sample(&text, "keyloom_sent_bytes_total") > 0.0);
    assert!(sample(&text, "keyloom_received_bytes_total") > 0.0);
    // This very request.
    assert_eq!(sample(&text, "keyloom_requests_in_flight"), 1.0);
}

#[test]
fn every_line_is_of_the_format() {
    let server = TestServer::start(SCHEMA);
    server.get("/health");
    for line in metrics(&server).lines() {
        let is_comment = line.starts_with("# HELP keyloom_") || line.starts_with("# TYPE keyloom_");
        let (name, value) = line.rsplit_once(' ').unwrap();
        let is_sample = name.starts_with("keyloom_") && value.parse::<f64>().is_ok();
        assert!(is_comment || is_sample, "{line}");
    }
}

#[test]
fn connections_are_counted_while_they_are_open() {
    let server = TestServer::start(SCHEMA);
    let open = |text: &str| sample(text, "keyloom_connections_open");
    let before = open(&metrics(&server));
    let socket = TcpStream::connect(server.address).unwrap();
    while open(&metrics(&server)) < before + 1.0 {}
    drop(socket);
    while open(&metrics(&server)) > before {}
}

#[test]
fn the_last_minutes_are_there_for_plots() {
    let server = TestServer::start(SCHEMA);
    server.get("/health");
    let rates = server.get("/v1/admin/rates").expect(200);
    let moments = rates["moments"].as_array().unwrap();
    assert_eq!((moments.len(), &rates["step_s"]), (60, &json!(5)));
    // Between the two requests a step may have ended.
    let last: Vec<_> = moments.iter().rev().take(2).collect();
    assert!(last.iter().any(|moment| moment["requests_per_s"] == 0.2), "{last:?}");
    assert!(last.iter().any(|moment| moment["p99_us"].is_u64()));
}

#[test]
fn metrics_are_for_services_of_any_space() {
    let (token, sha256) = new_token();
    let rights = "role = \"service\"\ncollections = []\nverbs = []\nspaces = [\"other\"]";
    let file = format!("[[token]]\nname = \"watch\"\nsha256 = \"{sha256}\"\n{rights}\n");
    let authority = Authority::from_toml(&file).unwrap();
    let server = TestServer::with(SCHEMA, Config { authority, ..Config::default() });
    let bearer = format!("Bearer {token}");
    let answer = server.send("GET", "/metrics", &[("authorization", &bearer)], "");
    assert_eq!(answer.status, 200);
    assert_eq!(server.get("/metrics").status, 401);
}

#[test]
fn health_and_readiness_answer_and_users_see_no_metrics() {
    let server = TestServer::start(SCHEMA);
    assert_eq!(server.get("/health").body, b"ok\n");
    assert_eq!(server.get("/ready").body, b"ready\n");
    // By HTTP/1.0, and without a name, as balancers ask.
    assert_eq!(server.raw("GET /health HTTP/1.0\r\n\r\n").body, "ok\n");
    assert_eq!(server.raw("GET /metrics HTTP/1.0\r\n\r\n").status, 400);
    server.send("GET", "/metrics", &[("keyloom-act-as", "ana")], "").expect(403);
    server.get("/metrics?x=1").expect(400);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.close()).unwrap();
    let problem = server.get("/ready").expect(503);
    assert_eq!(problem["type"], "/problems/closed");
    assert_eq!(server.get("/health").status, 200);
}
