//! Paths and names that try to be something else.

use proptest::prelude::*;
use serde_json::json;

use crate::people::{Guarded, SCHEMA, jwt};
use crate::support::TestServer;

fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn path(key: &str) -> String {
    format!("/v1/collections/ticket/records/{key}")
}

#[test]
fn an_encoded_slash_is_a_part_of_the_key() {
    let server = TestServer::start(SCHEMA);
    for (key, id) in [
        ("a%2Fb", "a/b"),
        ("a%2fb", "a/b"),
        ("..%2F..%2Fadmin", "../../admin"),
        ("%2e%2e", ".."),
        ("..", ".."),
        (".", "."),
        ("a%20b+c", "a b+c"),
        ("%3Cscript%3E", "<script>"),
        ("%E2%80%AE", "\u{202e}"),
        // The key in the store has `%` and control bytes in escaped form already.
        ("%25252F", "%2F"),
        ("a%250D%250AX=%201", "a\r\nX= 1"),
        ("t%2500", "t\u{0}"),
    ] {
        let record = json!({ "id": id, "state": "open" });
        let put = server.raw(format!(
            "PUT {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{record}",
            path(key),
            record.to_string().len(),
        ));
        assert!(matches!(put.status, 200 | 201), "{key}: {put:?}");
        let got = server.raw_get(&path(key));
        assert_eq!(got.status, 200, "{key}: {got:?}");
        let body: serde_json::Value = serde_json::from_str(&got.body).unwrap();
        assert_eq!(body["id"], id, "{key}");
    }
}

/// A client that tidies paths would take a name of dots for a step.
#[test]
fn the_location_of_a_record_whose_name_is_dots_leads_back_to_it() {
    let server = TestServer::start(SCHEMA);
    for (id, part) in [(".", "%2E"), ("..", "%2E%2E"), ("...", "..."), ("a..b", "a..b")] {
        let record = json!({ "id": id, "state": "open" });
        let made = server.json("POST", "/v1/collections/ticket/records", &record);
        made.expect(201);
        let location = made.header("location").unwrap();
        assert_eq!(location, path(part));
        assert_eq!(server.raw_get(location).status, 200, "{location}");
        // Clients that tidy this as well name the record in a body.
        let body = json!({"operations": [{"op": "get", "collection": "ticket", "key": id}]});
        let got = server.json("POST", "/v1/batch", &body).expect(200);
        assert_eq!(got["results"][0]["body"]["record"]["id"], id);
    }
}

/// `%2F` never divides a path, and dots never climb in it.
#[test]
fn no_spelling_of_a_path_reaches_another_route() {
    let server = TestServer::start(SCHEMA);
    let health = server.raw_get("/health");
    assert_eq!(health.status, 200);
    for path in [
        "/v1/../health",
        "/v1/..%2fhealth",
        "/v1/%2e%2e/health",
        "/./health",
        "//health",
        "/health/",
        "/%68ealth",
        "/health%00",
        "/v1%2Fcollections/ticket/records/t1",
        "/v1/collections%2Fticket/records/t1",
        "/v1/collections/ticket%2Frecords/t1",
        "/v1/collections/ticket/records/../../../../health",
        "/health;x=1",
        "/HEALTH",
        "/v1/collections/ticket\\records\\t1",
    ] {
        let answer = server.raw_get(path);
        assert!(answer.status >= 400, "{path}: {answer:?}");
        assert_ne!(answer.body, health.body, "{path}");
    }
}

#[test]
fn what_is_no_text_is_refused() {
    let server = TestServer::start(SCHEMA);
    for key in ["%", "%2", "%zz", "%ff", "%C0%AF", "%ED%A0%80", "a%"] {
        let answer = server.raw_get(&path(key));
        assert_eq!(answer.status, 400, "{key}: {answer:?}");
        assert!(answer.body.contains("/problems/invalid-request"), "{key}: {answer:?}");
    }
    assert_eq!(server.raw_get("/v1/collections/%ff/records/t1").status, 400);
    assert_eq!(server.raw_get("/s/%ff/v1/collections/ticket/records/t1").status, 400);
    // No key in the store has a bare null byte or line end.
    for key in ["t1%00", "%00", "t1%0A", "t1%0D%0AX:%201"] {
        let answer = server.raw_get(&path(key));
        assert_eq!(answer.status, 400, "{key}: {answer:?}");
    }
}

#[test]
fn no_name_of_a_space_reaches_another_one() {
    let server = TestServer::start(SCHEMA);
    server.json("PUT", &path("t1"), &json!({ "id": "t1", "state": "open" })).expect(201);
    for space in [
        "Main",
        "main%00",
        "main%2F",
        "%2Fmain",
        "main:",
        "~",
        "..",
        ".",
        "%20main",
        "",
        "main%2F..%2Fmain",
        "*",
    ] {
        let answer = server.raw_get(&format!("/s/{space}/v1/collections/ticket/records/t1"));
        assert!(matches!(answer.status, 400 | 404), "{space}: {answer:?}");
    }
    assert_eq!(server.raw_get("/s/main/v1/collections/ticket/records/t1").status, 200);
}

/// Separators in keys and names stay inside them: what one user writes is never another's.
#[test]
fn no_key_or_user_escapes_its_place() {
    let guarded = Guarded::start();
    let (ana, eve) = (jwt("ana"), jwt("eve"));
    let notes = "/v1/collections/note/records";
    guarded.put(&ana, &format!("{notes}/n1"), json!({ "title": "mine" }));
    for key in [
        "n1",
        ":n1",
        "ana:notes:n1",
        "user:ana:notes:n1",
        "../ana/n1",
        "..:..:ana:notes:n1",
        "%3An1",
        "\u{0}n1",
        "-",
        "notes:n1",
        "eve:notes:../../ana:notes:n1",
    ] {
        let answer = guarded.get(&eve, &format!("{notes}/{}", encode(key)));
        assert!(matches!(answer.status, 400 | 404), "{key}: {answer:?}");
        let body = String::from_utf8_lossy(&answer.body);
        assert!(!body.contains("mine"), "{key}: {body}");
    }
    for user in ["ana:notes", "ana%3Anotes", "user:ana", "ana:", ":ana", "ana\u{0}", "ANA", "ana "]
    {
        let answer = guarded.get(&jwt(user), &format!("{notes}/n1"));
        assert!(matches!(answer.status, 400 | 404), "{user}: {answer:?}");
        let page = guarded.get(&jwt(user), notes);
        assert!(!String::from_utf8_lossy(&page.body).contains("mine"), "{user}");
    }
}

#[test]
fn every_text_is_an_id_whose_url_leads_back_to_it_and_to_its_owner_alone() {
    let guarded = Guarded::start();
    let config = ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() };
    let odd = "[:%/?#&.~\u{0}\u{1}\u{7f}a-c é]{1,12}";
    let texts = (odd, odd, "\\PC{1,40}");
    proptest!(config, |((id, user, other) in texts)| {
        prop_assume!(user != other);
        let ask = |user: &str, method, path: &str, body| {
            guarded.ask_as(&guarded.bot, Some(&encode(user)), method, path, &body)
        };
        let note = json!({ "noteId": id, "title": user });
        let inserted = ask(&user, "POST", "/v1/collections/note/records", note);
        // Two cases may make up the same note.
        prop_assume!(inserted.status != 409);
        prop_assert_eq!(inserted.status, 201, "{:?}", inserted);
        let place = inserted.header("location").unwrap().to_owned();
        let found = ask(&user, "GET", &place, json!(null)).expect(200);
        prop_assert_eq!(found["noteId"].as_str(), Some(id.as_str()));
        prop_assert_eq!(found["userId"].as_str(), Some(user.as_str()));
        let elsewhere = ask(&other, "GET", &place, json!(null));
        let is_hidden = elsewhere.status != 200 || elsewhere.value()["userId"] == other.as_str();
        prop_assert!(is_hidden, "{:?}", elsewhere);
    });
}
