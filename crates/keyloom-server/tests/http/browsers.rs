//! What browsers are let do, and pages of other sites through them.

use keyloom_server::Config;
use serde_json::json;

use crate::people::{Guarded, SCHEMA};
use crate::support::{Answer, TestServer};

const TICKET: &str = "/v1/collections/ticket/records/t1";

fn put(server: &TestServer, headers: &[(&str, &str)]) -> Answer {
    let mut headers = headers.to_vec();
    headers.push(("content-type", "application/json"));
    server.send("PUT", TICKET, &headers, json!({ "id": "t1", "state": "open" }).to_string())
}

fn get_from(server: &TestServer, host: &str) -> u16 {
    let head = format!("GET {TICKET} HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
    server.raw(head).status
}

#[test]
fn without_access_control_only_loopback_and_configured_names_are_answered() {
    let hosts = vec!["keys.example".to_owned()];
    let server = TestServer::with(SCHEMA, Config { hosts, ..Config::default() });
    for host in ["localhost", "127.0.0.1:7117", "[::1]:7117", "keys.example:7117", "KEYS.example"] {
        assert_eq!(get_from(&server, &format!("Host: {host}\r\n")), 404, "{host}");
    }
    for host in ["evil.example", "10.0.0.7", "localhost.evil.example", "x.keys.example", ""] {
        assert_eq!(get_from(&server, &format!("Host: {host}\r\n")), 421, "{host}");
    }
    assert_eq!(get_from(&server, ""), 400);
    assert_eq!(get_from(&server, "Host: localhost\r\nHost: evil.example\r\n"), 400);
    // The name in the first line counts before the header.
    let absolute = format!(
        "GET http://evil.example{TICKET} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(server.raw(absolute).status, 421);
    // Those who only ask whether it lives may use any name.
    let health = "GET /health HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n";
    assert_eq!(server.raw(health).status, 200);
}

#[test]
fn with_tokens_any_name_will_do_unless_some_are_configured() {
    let guarded = Guarded::start();
    assert_eq!(get_from(&guarded.server, "Host: keys.example\r\n"), 401);
    let guarded = Guarded::with(|config| Config { hosts: vec!["keys.example".into()], ..config });
    assert_eq!(get_from(&guarded.server, "Host: keys.example\r\n"), 401);
    assert_eq!(get_from(&guarded.server, "Host: evil.example\r\n"), 421);
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let server = TestServer::start(SCHEMA);
    let own = format!("http://{}", server.address);
    for foreign in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "http://127.0.0.1:1")],
        &[("origin", "")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site"), ("origin", &own)],
        &[("sec-fetch-site", "same-origin"), ("origin", "https://evil.example")],
    ] {
        let answer = put(&server, foreign);
        assert_eq!(answer.expect(403)["type"], "/problems/forbidden", "{foreign:?}");
    }
    server.get(TICKET).expect(404);
    let behind_tls = format!("https://{}", server.address);
    for friendly in [
        &[][..],
        &[("origin", own.as_str())],
        &[("origin", behind_tls.as_str()), ("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none")],
    ] {
        let answer = put(&server, friendly);
        assert!(matches!(answer.status, 200 | 201), "{friendly:?}: {answer:?}");
    }
    // A read changes nothing, and the page cannot see the answer.
    let read = server.send("GET", TICKET, &[("origin", "https://evil.example")], "");
    assert_eq!(read.status, 200);
    assert_eq!(read.header("access-control-allow-origin"), None);
}

#[test]
fn pages_of_other_origins_get_no_permission_unless_it_is_configured() {
    let ask = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "PUT"),
        ("access-control-request-headers", "content-type"),
        ("accept", "image/png"),
    ];
    let closed = TestServer::start(SCHEMA);
    for path in [TICKET, "/console", "/nothing"] {
        let answer = closed.send("OPTIONS", path, &ask, "");
        assert!(answer.status >= 400, "{path}: {answer:?}");
        let permits = |name: &&str| name.starts_with("access-control");
        let names: Vec<&str> = answer.headers.keys().map(|name| name.as_str()).collect();
        assert_eq!(names.iter().find(|name| permits(name)), None, "{path}");
    }

    let origins = vec!["https://app.example".to_owned()];
    let open = TestServer::with(SCHEMA, Config { origins, ..Config::default() });
    let answer = open.send("OPTIONS", TICKET, &ask, "");
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.header("access-control-allow-methods").unwrap().contains("PATCH"));
    assert!(answer.header("access-control-allow-headers").unwrap().contains("authorization"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    let answer = put(&open, &[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")]);
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(answer.headers.get_all("vary").iter().any(|value| value == "Origin"));
    for other in ["https://app.example.evil", "http://app.example", "https://app.example:8443"] {
        let answer = put(&open, &[("origin", other)]);
        assert_eq!(answer.status, 403, "{other}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{other}");
    }
    // The console is for its own pages only.
    let console = open.send("OPTIONS", "/console/login", &ask, "");
    assert_eq!(console.header("access-control-allow-origin"), None);
}

#[test]
fn every_answer_tells_browsers_to_be_careful() {
    let server = TestServer::start(SCHEMA);
    put(&server, &[]).expect(201);
    for (method, path) in [
        ("GET", TICKET),
        ("GET", "/v1/collections/ticket/records/none"),
        ("GET", "/nothing/here"),
        ("DELETE", "/health"),
        ("GET", "/health"),
        ("GET", "/metrics"),
        ("OPTIONS", TICKET),
        ("GET", "/console/login"),
        ("PUT", "/console/login"),
    ] {
        let answer = server.send(method, path, &[], "");
        let what = format!("{method} {path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{what}");
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{what}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{what}");
        assert!(answer.header("referrer-policy").is_some(), "{what}");
        assert!(answer.header("cache-control").is_some(), "{what}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{what}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{what}: {policy}");
        assert!(answer.header("x-request-id").is_some(), "{what}");
    }
    let record = server.get(TICKET);
    assert_eq!(record.header("cache-control"), Some("private, no-cache"));
    assert_eq!(record.header("content-type"), Some("application/json"));
}

/// A record is never taken for a page, whatever is in it and whatever the browser asks for.
#[test]
fn no_record_is_rendered_as_html() {
    let server = TestServer::start(SCHEMA);
    let script = json!({ "id": "t1", "state": "<script>alert(1)</script>" });
    server.json("PUT", TICKET, &script).expect(201);
    let html = [("accept", "text/html")];
    for path in [TICKET, "/v1/collections/ticket/records?scan=true", "/v1/kv/ticket%3At1"] {
        let answer = server.send("GET", path, &html, "");
        let media = answer.header("content-type").unwrap_or_default();
        assert!(!media.contains("html") && !media.contains("svg"), "{path}: {media}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    let answer = server.get("/v1/collections/%3Cscript%3E/records/%3Cscript%3E");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
}

#[test]
fn a_plain_request_id_is_taken_over_and_another_is_not() {
    let server = TestServer::start(SCHEMA);
    let id = |given: &str| {
        let answer = server.send("GET", "/health", &[("x-request-id", given)], "");
        answer.header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(id("order-7_a.b"), "order-7_a.b");
    for odd in ["a b", "a\"b", "<script>", &"x".repeat(65)] {
        assert_ne!(id(odd), odd);
    }
    assert_ne!(id("a b"), id("a b"));
}
