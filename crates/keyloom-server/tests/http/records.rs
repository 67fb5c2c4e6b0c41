//! Single records by their keys.

use serde_json::{Value, json};

use crate::schemas::{APPROVALS, FLOWS};
use crate::support::{Answer, TestServer};

const ITEMS: &str = r#"
    [collection.item]
    key = "item:{id}"
    fields = { id = "text", n = "integer", email = "text" }
    [collection.item.unique.email]
    key = "email:{email}"

    [collection.pair]
    key = "pair:{n}:{name}"
    fields = { n = "integer", name = "text" }

    [collection.settings]
    key = "settings"
"#;

const ONE: &str = "/v1/collections/item/records/a";
const ALL: &str = "/v1/collections/item/records";

/// A JSON request with further headers.
fn with(
    server: &TestServer,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let media = [("content-type", "application/json")];
    server.send(method, path, &[&media, headers].concat(), body.to_string())
}

#[test]
fn a_record_that_is_not_there_is_not_found() {
    let server = TestServer::start(ITEMS);
    for (method, path) in [
        ("GET", ONE.to_owned()),
        ("DELETE", ONE.to_owned()),
        ("GET", format!("{ONE}/entries")),
        ("GET", "/v1/collections/unknown/records/a".to_owned()),
    ] {
        let problem = server.send(method, &path, &[], "").expect(404);
        assert_eq!(problem["type"], "/problems/not-found", "{path}");
    }
    server.json("PATCH", ONE, &json!({ "n": 1 })).expect(404);
}

#[test]
fn an_insert_answers_with_the_record_its_place_and_its_version() {
    let server = TestServer::start(ITEMS);
    let inserted = server.json("POST", ALL, &json!({ "id": "a", "n": 1 }));
    assert_eq!(inserted.expect(201), json!({ "id": "a", "n": 1 }));
    assert_eq!(inserted.header("location"), Some(ONE));
    assert_eq!(inserted.header("content-type"), Some("application/json"));
    let read = server.get(ONE);
    assert_eq!(read.expect(200), json!({ "id": "a", "n": 1 }));
    assert_eq!(read.header("etag"), inserted.header("etag"));
    let again = server.json("POST", ALL, &json!({ "id": "a" })).expect(409);
    assert_eq!(again["type"], "/problems/already-exists");
    assert_eq!(again["outcome"], "did_not_happen");
}

#[test]
fn an_insert_with_a_condition_is_refused() {
    let server = TestServer::start(ITEMS);
    for (name, tag) in [("if-match", "\"x\""), ("if-match", "*"), ("if-none-match", "*")] {
        let problem = with(&server, "POST", ALL, &[(name, tag)], &json!({ "id": "a" })).expect(400);
        assert_eq!(problem["detail"], "an insert has no conditions; use PUT for those", "{name}");
        assert_eq!(problem["outcome"], "did_not_happen");
    }
    server.get(ONE).expect(404);
}

#[test]
fn what_is_generated_is_in_the_answer() {
    let server = TestServer::start(APPROVALS);
    let all = "/v1/collections/approval/records";
    let body = json!({ "requester_id": "ana", "approver_id": "bob", "created_at": 1, "status": "pending" });
    let inserted = server.json("POST", all, &body);
    let id = inserted.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(inserted.header("location"), Some(format!("{all}/{id}").as_str()));
    assert_eq!(server.get(&format!("{all}/{id}")).expect(200), inserted.value());
}

#[test]
fn a_taken_unique_value_names_the_index_the_value_and_the_holder() {
    let server = TestServer::start(ITEMS);
    server.json("POST", ALL, &json!({ "id": "a/1", "email": "x@y" })).expect(201);
    let problem = server.json("POST", ALL, &json!({ "id": "b", "email": "x@y" })).expect(409);
    assert_eq!(problem["type"], "/problems/unique-conflict");
    assert_eq!(problem["context"]["index"], "email");
    assert_eq!(problem["context"]["value"], "x@y");
    assert_eq!(problem["holder"], "a/1");
    let put = server.json("PUT", &format!("{ALL}/b"), &json!({ "email": "x@y" })).expect(409);
    assert_eq!(put["holder"], "a/1");
}

#[test]
fn a_put_creates_then_replaces() {
    let server = TestServer::start(ITEMS);
    let created = server.json("PUT", ONE, &json!({ "n": 1 }));
    assert_eq!(created.expect(201), json!({ "n": 1, "id": "a" }));
    assert_eq!(created.header("location"), Some(ONE));
    let replaced = server.json("PUT", ONE, &json!({ "id": "a", "n": 2 }));
    assert_eq!(replaced.expect(200), json!({ "id": "a", "n": 2 }));
    assert_eq!(replaced.header("location"), None);
    assert_ne!(replaced.header("etag"), created.header("etag"));
    let pair = "/v1/collections/pair/records/";
    let two = server.json("PUT", &format!("{pair}0000000000000000007:x"), &json!({}));
    if two.status == 201 {
        assert_eq!(two.value(), json!({ "n": 7, "name": "x" }));
    } else {
        let inserted =
            server.json("POST", "/v1/collections/pair/records", &json!({ "n": 7, "name": "x" }));
        let path = inserted.header("location").unwrap().to_owned();
        assert_eq!(server.json("PUT", &path, &json!({ "v": 1 })).expect(200)["n"], 7);
    }
}

#[test]
fn a_put_with_another_key_in_its_body_names_both() {
    let server = TestServer::start(ITEMS);
    let problem = server.json("PUT", ONE, &json!({ "id": "b" })).expect(422);
    assert_eq!(problem["type"], "/problems/invalid-record");
    assert_eq!((&problem["in_path"], &problem["in_body"]), (&json!("a"), &json!("b")));
    assert!(problem["detail"].as_str().unwrap().contains("\"b\""), "{problem}");
    server.json("PUT", ONE, &json!([])).expect(422);
    server.json("POST", ALL, &json!("text")).expect(422);
    server.get(ONE).expect(404);
}

#[test]
fn a_put_obeys_its_conditions() {
    let server = TestServer::start(ITEMS);
    let put =
        |headers: &[(&str, &str)], n: u64| with(&server, "PUT", ONE, headers, &json!({ "n": n }));
    assert_eq!(put(&[("if-match", "*")], 0).expect(412)["type"], "/problems/precondition-failed");
    let created = put(&[("if-none-match", "*")], 1);
    created.expect(201);
    put(&[("if-none-match", "*")], 2).expect(412);
    let first = created.header("etag").unwrap().to_owned();
    let second = put(&[("if-match", &first)], 3);
    second.expect(200);
    let conflict = put(&[("if-match", &first)], 4).expect(412);
    assert_eq!(conflict["type"], "/problems/version-conflict");
    assert_eq!(conflict["current"]["record"], json!({ "id": "a", "n": 3 }));
    let current = second.header("etag").unwrap().trim_matches('"').to_owned();
    assert_eq!(conflict["current"]["version"], current.as_str());
    let weak = format!("W/{}", second.header("etag").unwrap());
    put(&[("if-match", &weak)], 5).expect(412);
    let list = format!("{first}, \"other\", {}", second.header("etag").unwrap());
    put(&[("if-match", &list)], 6).expect(200);
    put(&[("if-match", "*")], 7).expect(200);
    put(&[("if-match", "unquoted")], 8).expect(400);
    put(&[("if-none-match", &first)], 8).expect(400);
    assert_eq!(server.get(ONE).expect(200)["n"], 7);
}

#[test]
fn reads_are_conditional() {
    let server = TestServer::start(ITEMS);
    let etag = server.json("PUT", ONE, &json!({})).header("etag").unwrap().to_owned();
    let read = |name: &str, value: &str| server.send("GET", ONE, &[(name, value)], "");
    for tags in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let answer = read("if-none-match", &tags);
        assert_eq!((answer.status, answer.body.len()), (304, 0), "{tags}");
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
    }
    read("if-none-match", "\"x\"").expect(200);
    read("if-match", &etag).expect(200);
    read("if-match", "\"x\"").expect(412);
    let head = server.send("HEAD", ONE, &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), Some(etag.as_str()));
}

#[test]
fn a_deletion_obeys_its_conditions() {
    let server = TestServer::start(ITEMS);
    let etag = server.json("PUT", ONE, &json!({})).header("etag").unwrap().to_owned();
    let newer = server.json("PUT", ONE, &json!({ "n": 1 })).header("etag").unwrap().to_owned();
    let delete = |headers: &[(&str, &str)]| server.send("DELETE", ONE, headers, "");
    let conflict = delete(&[("if-match", &etag)]).expect(412);
    assert_eq!(conflict["type"], "/problems/version-conflict");
    assert_eq!(conflict["retry"], false);
    assert_eq!(conflict["current"]["record"], json!({ "id": "a", "n": 1 }));
    delete(&[("if-match", &format!("W/{newer}"))]).expect(412);
    delete(&[("if-none-match", "*")]).expect(400);
    delete(&[("if-match", &newer)]).expect(204);
    delete(&[("if-match", &newer)]).expect(404);
    delete(&[]).expect(404);
    server.json("PUT", ONE, &json!({})).expect(201);
    delete(&[("if-match", "*")]).expect(204);
}

/// A tag that is no version, or a weak one, is met by no record: the answer is that of any other
/// version, with the record as it is, and a record that is not there is missing.
#[test]
fn a_tag_that_is_no_version_is_a_condition_that_does_not_hold() {
    let server = TestServer::start(ITEMS);
    for tag in ["\"x\"", "W/\"x\"", "\"x\", \"y\""] {
        let matching = [("if-match", tag)];
        with(&server, "PATCH", ONE, &matching, &json!({ "n": 2 })).expect(404);
        server.send("DELETE", ONE, &matching, "").expect(404);
        with(&server, "PUT", ONE, &matching, &json!({ "n": 2 })).expect(412);
        let put = server.json("PUT", ONE, &json!({ "n": 1 }));
        let version = put.header("etag").unwrap().trim_matches('"').to_owned();
        for refused in [
            with(&server, "PATCH", ONE, &matching, &json!({ "n": 2 })),
            with(&server, "PUT", ONE, &matching, &json!({ "n": 2 })),
            server.send("DELETE", ONE, &matching, ""),
        ] {
            let current = json!({ "version": version, "record": { "id": "a", "n": 1 } });
            assert_eq!(refused.expect(412)["current"], current);
        }
        server.send("DELETE", ONE, &[], "").expect(204);
    }
}

#[test]
fn patches_merge() {
    let server = TestServer::start(ITEMS);
    server.json("PUT", ONE, &json!({ "n": 1, "x": { "a": 1, "b": 2 } })).expect(201);
    let patch = |headers: &[(&str, &str)], path: &str, body: Value| {
        let media = [("content-type", "application/merge-patch+json")];
        server.send("PATCH", path, &[&media, headers].concat(), body.to_string())
    };
    let patched = patch(&[], ONE, json!({ "x": { "a": null, "c": 3 } }));
    assert_eq!(
        patched.expect(200),
        json!({ "id": "a", "n": 1, "x": { "b": 2, "c": 3 } }).to_owned()
    );
    let etag = patched.header("etag").unwrap().to_owned();
    patch(&[("if-match", &etag)], ONE, json!({ "n": 2 })).expect(200);
    let conflict = patch(&[("if-match", &etag)], ONE, json!({ "n": 3 })).expect(412);
    assert_eq!(conflict["current"]["record"]["n"], 2);
    patch(&[("if-match", "*")], ONE, json!({ "n": 4 })).expect(200);
    patch(&[("if-none-match", "*")], ONE, json!({ "n": 5 })).expect(400);
    let refused = server.send("PATCH", ONE, &[("content-type", "text/plain")], "{}");
    assert_eq!(refused.expect(415)["type"], "/problems/unsupported-media-type");
    assert_eq!(refused.header("accept-patch"), Some("application/merge-patch+json"));
    let merge = [("content-type", "application/merge-patch+json")];
    server.send("POST", ALL, &merge, "{}").expect(415);
}

#[test]
fn guards_hold_a_patch_back() {
    let server = TestServer::start(APPROVALS);
    let all = "/v1/collections/approval/records";
    let body = json!({ "requester_id": "ana", "approver_id": "bob", "created_at": 1, "status": "pending" });
    let inserted = server.json("POST", all, &body);
    let one = inserted.header("location").unwrap().to_owned();
    let etag = inserted.header("etag").unwrap().to_owned();
    let approve = json!({ "status": "approved" });
    server.json("PATCH", &format!("{one}?if.status=denied"), &approve).expect(412);
    server.json("PATCH", &format!("{one}?if.created_at=soon"), &approve).expect(400);
    server.json("PATCH", &format!("{one}?of.status=pending"), &approve).expect(400);
    with(&server, "PATCH", &format!("{one}?if.status=pending"), &[("if-match", "\"x\"")], &approve)
        .expect(412);
    let guarded = format!("{one}?if.status=pending&if.created_at=1&if.note=null");
    let key = [("idempotency-key", "k1"), ("if-match", etag.as_str())];
    let first = with(&server, "PATCH", &guarded, &key, &approve);
    assert_eq!(first.expect(200)["status"], "approved");
    let again = with(&server, "PATCH", &guarded, &key, &approve);
    assert_eq!(again.expect(200), first.value());
    assert_eq!(again.header("etag"), first.header("etag"));
    assert_eq!(server.get(&one).header("etag"), first.header("etag"));
    let other = with(&server, "PATCH", &guarded, &key, &json!({ "status": "denied" })).expect(422);
    assert_eq!(other["type"], "/problems/idempotency-conflict");
    let late = server.json("PATCH", &format!("{one}?if.status=pending"), &approve).expect(412);
    assert_eq!(late["type"], "/problems/precondition-failed");
    assert_eq!(late["current"]["record"]["status"], "approved");
    server
        .json("PATCH", &format!("{all}/{}?if.status=pending", "0".repeat(26)), &approve)
        .expect(404);
    let illegal = server.json("PATCH", &one, &json!({ "status": "denied" })).expect(409);
    assert_eq!(illegal["type"], "/problems/illegal-transition");
}

#[test]
fn counters_are_added_to() {
    let server = TestServer::start(FLOWS);
    let flow = "/v1/collections/flow/records/nightly";
    server.json("PUT", flow, &json!({})).expect(201);
    let add = |body: Value| server.json("POST", &format!("{flow}/increment"), &body);
    assert_eq!(add(json!({ "stats.running": 7, "stats.done": 1 })).expect(200)["stats.running"], 7);
    assert_eq!(add(json!({ "stats.running": -2 })).expect(200), json!({ "stats.running": 5 }));
    let refused = add(json!({ "stats.running": -6 })).expect(409);
    assert_eq!(refused["type"], "/problems/out-of-bounds");
    for wrong in
        [json!({}), json!([]), json!({ "stats.running": 1.5 }), json!({ "stats.running": "1" })]
    {
        add(wrong).expect(400);
    }
    // A condition that would not be looked at is refused.
    for (name, tag) in [("if-match", "\"x\""), ("if-match", "*"), ("if-none-match", "*")] {
        let path = format!("{flow}/increment");
        with(&server, "POST", &path, &[(name, tag)], &json!({ "stats.done": 1 })).expect(400);
    }
    let read = server.get(flow).expect(200);
    assert_eq!(read["stats"], json!({ "running": 5, "done": 1 }));
    server
        .json("POST", "/v1/collections/flow/records/none/increment", &json!({ "stats.x": 1 }))
        .expect(404);
}

#[test]
fn counters_are_read_although_the_version_is_the_same() {
    let server = TestServer::start(FLOWS);
    let flow = "/v1/collections/flow/records/nightly";
    let etag = server.json("PUT", flow, &json!({})).header("etag").unwrap().to_owned();
    server.json("POST", &format!("{flow}/increment"), &json!({ "stats.running": 1 })).expect(200);
    let read = server.send("GET", flow, &[("if-none-match", &etag)], "");
    assert_eq!(read.expect(200)["stats"]["running"], 1);
    assert_eq!(read.header("etag"), Some(etag.as_str()));
}

#[test]
fn an_idempotency_key_works_on_every_write() {
    let server = TestServer::start(ITEMS);
    let key = |key: &'static str| [("idempotency-key", key)];
    let twice = |method: &str, path: &str, name: &'static str, body: Value| {
        let first = with(&server, method, path, &key(name), &body);
        let again = with(&server, method, path, &key(name), &body);
        assert!(first.status < 300, "{method}: {first:?}");
        assert_eq!((first.status, &first.body), (again.status, &again.body), "{method}");
        assert_eq!(first.header("etag"), again.header("etag"), "{method}");
        assert_eq!(first.header("location"), again.header("location"), "{method}");
        first
    };
    twice("POST", ALL, "k1", json!({ "id": "a", "n": 1 }));
    let put = twice("PUT", ONE, "k2", json!({ "n": 2 }));
    twice("PATCH", ONE, "k3", json!({ "n": 3 }));
    let problem = with(&server, "PATCH", ONE, &key("k3"), &json!({ "n": 4 })).expect(422);
    assert_eq!(problem["type"], "/problems/idempotency-conflict");
    twice("DELETE", ONE, "k4", json!({}));
    assert_eq!(
        with(&server, "PUT", ONE, &key("k2"), &json!({ "n": 2 })).header("etag"),
        put.header("etag")
    );
    server.get(ONE).expect(404);
    // Also where one of several versions was met.
    let created = server.json("PUT", ONE, &json!({ "n": 1 }));
    let tags = format!("{}, {}", put.header("etag").unwrap(), created.header("etag").unwrap());
    let listed = [("idempotency-key", "k5"), ("if-match", tags.as_str())];
    let first = with(&server, "PUT", ONE, &listed, &json!({ "n": 5 }));
    let again = with(&server, "PUT", ONE, &listed, &json!({ "n": 5 }));
    assert_eq!(first.expect(200), again.expect(200));
    assert_eq!(first.header("etag"), again.header("etag"));
}

#[test]
fn updates_are_not_lost() {
    let server = TestServer::start(ITEMS);
    server.json("PUT", ONE, &json!({ "n": 0 })).expect(201);
    const WRITERS: usize = 4;
    const ROUNDS: usize = 10;
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    loop {
                        let read = server.get(ONE);
                        let next = json!({ "n": read.value()["n"].as_u64().unwrap() + 1 });
                        let etag = read.header("etag").unwrap();
                        match with(&server, "PUT", ONE, &[("if-match", etag)], &next).status {
                            200 => break,
                            status => assert_eq!(status, 412),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(server.get(ONE).expect(200)["n"], WRITERS * ROUNDS);
}

#[test]
fn the_only_record_of_its_kind_is_a_hyphen() {
    let server = TestServer::start(ITEMS);
    let only = "/v1/collections/settings/records/-";
    let put = server.json("PUT", only, &json!({ "dark": true }));
    put.expect(201);
    assert_eq!(put.header("location"), Some(only));
    assert_eq!(server.get(only).expect(200), json!({ "dark": true }));
    let page = server.get("/v1/collections/settings/records?scan=true").expect(200);
    assert_eq!(page["records"][0]["key"], "-");
    assert_eq!(page["records"][0]["stored_at"], "settings");
}

#[test]
fn the_past_is_read_by_version_and_by_time() {
    let server = TestServer::start(APPROVALS);
    let body = json!({ "requester_id": "ana", "approver_id": "bob", "created_at": 1, "status": "pending" });
    let inserted = server.json("POST", "/v1/collections/approval/records", &body);
    let one = inserted.header("location").unwrap().to_owned();
    let version = inserted.header("etag").unwrap().trim_matches('"').to_owned();
    server.json("PATCH", &one, &json!({ "status": "approved" })).expect(200);
    let past = server.get(&format!("{one}?version={version}"));
    assert_eq!(past.expect(200)["status"], "pending");
    assert_eq!(past.header("etag"), inserted.header("etag"));
    assert_eq!(server.get(&format!("{one}?at=9999999999999")).expect(200)["status"], "approved");
    assert_eq!(
        server.get(&format!("{one}?at=2200-01-01T00:00:00Z")).expect(200)["status"],
        "approved"
    );
    server.get(&format!("{one}?version=1")).expect(400);
    server.get(&format!("{one}?at=soon")).expect(400);
    server.get(&format!("{one}?at=1&version={version}")).expect(400);
    server.get(&format!("{one}?version={}", version.replace("-1", "-9"))).expect(404);

    let history = server.get(&format!("{one}/history?limit=1")).expect(200);
    let newest = &history["versions"][0];
    assert_eq!(
        (&newest["kind"], &newest["key"]),
        (&json!("updated"), &json!(one.rsplit('/').next()))
    );
    assert_eq!(
        newest["changes"],
        json!([{ "path": ["status"], "before": "pending", "after": "approved" }])
    );
    let next = history["next"].as_str().unwrap();
    let rest = server.get(&format!("{one}/history?limit=5&cursor={next}")).expect(200);
    assert_eq!(rest["versions"][0]["kind"], "created");
    assert_eq!(rest["versions"][0]["record"]["status"], "pending");
    assert_eq!(rest["next"], Value::Null);

    let entries = server.get(&format!("{one}/entries")).expect(200);
    let kinds: Vec<&str> = entries["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "entry").count(), 3, "{entries}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "history").count(), 2, "{entries}");
    assert!(entries["keys"].as_array().unwrap().iter().all(|key| key["is_present"] == true));
}

#[test]
fn bodies_are_strict_json_of_the_right_type() {
    let server = TestServer::start(ITEMS);
    let send = |body: &str| {
        server.send("POST", ALL, &[("content-type", "application/json")], body.to_owned())
    };
    for body in [
        "",
        "{",
        r#"{"id":"a","id":"b"}"#,
        r#"{"id":"a","n":100000000000000000000000000000}"#,
        r#"{"id":"a","n":-0}"#,
        r#"{"id":"a","x":"\ud800"}"#,
    ] {
        send(body).expect(400);
    }
    send(&format!("{}{}", "[".repeat(101), "]".repeat(101))).expect(400);
    server.send("POST", ALL, &[], "{}").expect(415);
    server.get(ONE).expect(404);
}

#[test]
fn whole_numbers_are_the_same_in_every_form() {
    let server = TestServer::start(crate::schemas::FLOWS);
    let run = "/v1/collections/run/records/f:r";
    let stored = server.json("PUT", run, &json!({ "startedAt": 5.0, "free": 5.0 })).expect(201);
    assert_eq!((&stored["startedAt"], &stored["free"]), (&json!(5), &json!(5.0)));
    server.json("PUT", run, &json!({ "startedAt": 5.5 })).expect(422);
    let flow = "/v1/collections/flow/records/f";
    server.json("PUT", flow, &json!({})).expect(201);
    let added = server.json("POST", &format!("{flow}/increment"), &json!({ "stats.a": 2.0 }));
    assert_eq!(added.expect(200), json!({ "stats.a": 2 }));
    server.json("POST", &format!("{flow}/increment"), &json!({ "stats.a": 2.5 })).expect(400);
}
