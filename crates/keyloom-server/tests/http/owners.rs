//! Owned, shared and hybrid records, as each user sees them.

use serde_json::{Value, json};

use crate::schemas::PATTERNS;
use crate::support::{Answer, TestServer};

/// A request on behalf of a user.
fn by(server: &TestServer, user: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
    let path = format!("/v1/collections{path}");
    let headers = [("keyloom-act-as", user), ("content-type", "application/json")];
    match body {
        Some(body) => server.send(method, &path, &headers, body.to_string()),
        None => server.send(method, &path, &headers[..1], ""),
    }
}

/// What an answer says, without which key was asked for.
fn told(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.value())
}

#[test]
fn the_owner_is_implied_and_others_see_nothing() {
    let server = TestServer::start(PATTERNS);
    let written =
        by(&server, "ana", "POST", "/note/records", Some(json!({ "noteId": "n1", "t": 1 })));
    assert_eq!(written.expect(201), json!({ "noteId": "n1", "t": 1, "userId": "ana" }));
    assert_eq!(written.header("location"), Some("/v1/collections/note/records/n1"));
    by(&server, "ana", "GET", "/note/records/n1", None).expect(200);
    let entries = by(&server, "ana", "GET", "/note/records/n1/entries", None).expect(200);
    assert_eq!(entries["keys"][0]["key"], "user:ana:notes:n1");
    let page = by(&server, "ana", "GET", "/note/records?scan=true", None).expect(200);
    assert_eq!(page["records"][0]["key"], "n1");
    assert_eq!(
        by(&server, "bob", "GET", "/note/records?scan=true", None).expect(200)["records"],
        json!([])
    );

    let ask =
        |method: &str, path: &str, body: Option<Value>| by(&server, "bob", method, path, body);
    let missing = told(&ask("GET", "/note/owners/ana/records/none", None));
    assert_eq!(missing.0, 404);
    assert_eq!(told(&ask("GET", "/note/owners/ana/records/n1", None)), missing);
    assert_eq!(told(&ask("GET", "/note/records/n1", None)), missing);
    assert_eq!(told(&ask("DELETE", "/note/records/n1", None)), missing);
    assert_eq!(told(&ask("PATCH", "/note/records/n1", Some(json!({ "t": 2 })))), missing);
    assert_eq!(told(&ask("GET", "/note/records/n1/entries", None)), missing);
    assert_eq!(
        ask("GET", "/note/records/n1/history", None).status,
        ask("GET", "/note/records/none/history", None).status
    );
    // Names that try to leave the user's own keys.
    for name in ["..%2Fana%2Fn1", "ana:notes:n1", "user:ana:notes:n1", "%3A..%3Aana"] {
        assert!(
            [400, 404].contains(&ask("GET", &format!("/note/records/{name}"), None).status),
            "{name}"
        );
    }
    ask("POST", "/note/records", Some(json!({ "noteId": "n1", "userId": "ana" }))).expect(403);
    ask("PUT", "/note/records/n1", Some(json!({ "userId": "ana" }))).expect(422);
    // The program sees every key in full.
    server.get("/v1/collections/note/records/ana:notes:n1").expect(200);
}

/// Nobody gets an answer that was given to another user, nor finds their key taken by one.
#[test]
fn equal_idempotency_keys_of_two_users_never_meet() {
    let server = TestServer::start(PATTERNS);
    let note = |id: &str| json!({"noteId": id, "t": 1});
    let insert = |id: &str| json!({"operations": [{"op": "insert", "collection": "note", "record": note(id)}]});
    for (path, body, other) in [
        ("/v1/collections/note/records", note("n1"), note("other")),
        ("/v1/transaction", insert("n2"), insert("other")),
        ("/v1/batch", insert("n3"), insert("other")),
    ] {
        let ask = |user: &str, body: &Value| {
            let json = ("content-type", "application/json");
            let headers = [("keyloom-act-as", user), json, ("idempotency-key", path)];
            String::from_utf8(server.send("POST", path, &headers, body.to_string()).body).unwrap()
        };
        let first = ask("ana", &body);
        assert!(first.contains("\"userId\":\"ana\""), "{path}: {first}");
        assert_eq!(ask("ana", &body), first, "{path}");
        let theirs = ask("bob", &body);
        assert!(theirs.contains("\"userId\":\"bob\"") && !theirs.contains("ana"), "{theirs}");
        assert!(ask("bob", &other).contains("idempotency-conflict"), "{path}");
    }
}

#[test]
fn the_only_record_of_a_user_is_a_hyphen() {
    let server = TestServer::start(PATTERNS);
    let put = by(&server, "ana", "PUT", "/preferences/records/-", Some(json!({ "dark": true })));
    put.expect(201);
    assert_eq!(put.header("location"), Some("/v1/collections/preferences/records/-"));
    assert_eq!(
        by(&server, "ana", "GET", "/preferences/records/-", None).expect(200)["userId"],
        "ana"
    );
    by(&server, "bob", "GET", "/preferences/records/-", None).expect(404);
    by(&server, "ana", "GET", "/preferences/records/ana", None).expect(400);
}

#[test]
fn hybrid_records_are_read_by_all_and_written_by_their_owner() {
    let server = TestServer::start(PATTERNS);
    let post = json!({ "postId": "p/1", "timestamp": 1, "tags": ["x"] });
    by(&server, "ana", "POST", "/post/records", Some(post)).expect(201);
    by(
        &server,
        "bob",
        "POST",
        "/post/records",
        Some(json!({ "postId": "p2", "timestamp": 2, "tags": ["x"] })),
    )
    .expect(201);
    let theirs = "/post/owners/ana/records/p%2F1";
    assert_eq!(by(&server, "bob", "GET", theirs, None).expect(200)["userId"], "ana");
    by(&server, "bob", "GET", "/post/records/p%2F1", None).expect(404);
    by(&server, "bob", "PUT", theirs, Some(json!({}))).expect(405);
    let page = by(&server, "bob", "GET", "/post/records?where.tags.*=x", None).expect(200);
    let shown: Vec<Value> = page["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| json!([item["key"], item["owner"]]))
        .collect();
    assert_eq!(shown, [json!(["p/1", "ana"]), json!(["p2", null])]);
    // Two posts with one id clash, and the holder is named with its owner.
    let clash = by(
        &server,
        "bob",
        "POST",
        "/post/records",
        Some(json!({ "postId": "p/1", "timestamp": 9, "tags": ["x"] })),
    );
    let clash = clash.expect(409);
    assert_eq!((&clash["holder"], &clash["holder_owner"]), (&json!("p/1"), &json!("ana")));
    assert_eq!(clash["context"]["index"], "by_tag");
    by(&server, "bob", "GET", "/template/owners/ana/records/x", None).expect(400);
}

#[test]
fn unique_values_lead_to_others_by_their_own_path() {
    let server = TestServer::start(PATTERNS);
    by(&server, "ana", "PUT", "/user/records/-", Some(json!({ "email": "a@x" }))).expect(201);
    let found = by(&server, "bob", "GET", "/user/unique/email/a%40x", None);
    assert_eq!(found.expect(200)["userId"], "ana");
    let own = found.header("content-location").unwrap();
    assert_eq!(own, "/v1/collections/user/owners/ana/records/-");
    let read = server.send("GET", own, &[("keyloom-act-as", "bob")], "");
    assert_eq!(read.expect(200), found.value());
    let taken =
        by(&server, "bob", "PUT", "/user/records/-", Some(json!({ "email": "a@x" }))).expect(409);
    assert_eq!(taken["holder_owner"], "ana");
}

#[test]
fn what_only_the_program_writes_is_forbidden_to_users() {
    let server = TestServer::start(PATTERNS);
    server.json("PUT", "/v1/collections/config/records/c", &json!({})).expect(201);
    by(&server, "ana", "GET", "/config/records/c", None).expect(200);
    by(&server, "ana", "PUT", "/config/records/c", Some(json!({ "x": 1 }))).expect(403);
    by(&server, "ana", "PUT", "/template/records/t", Some(json!({ "x": 1 }))).expect(201);
    by(&server, "bob", "PATCH", "/template/records/t", Some(json!({ "x": 2 }))).expect(200);
}

#[test]
fn a_unique_value_that_somebody_hides_is_not_told() {
    let server = TestServer::start(
        r#"
        [collection.account]
        key = "user:{owner}:account:{id}"
        access = "owned"
        owner = "owner"
        fields = { owner = "text", id = "text", email = "text" }
        [collection.account.unique.email]
        key = "email:{email}"
        "#,
    );
    let account = |id: &str| Some(json!({ "id": id, "email": "x@y" }));
    by(&server, "ana", "POST", "/account/records", account("secret")).expect(201);
    let problem = by(&server, "bob", "POST", "/account/records", account("b")).expect(409);
    assert_eq!(problem.get("holder"), None);
    assert!(
        !problem.to_string().contains("secret") && !problem.to_string().contains("ana"),
        "{problem}"
    );
    assert_eq!(problem["context"]["value"], "x@y");
    by(&server, "bob", "GET", "/account/unique/email/x%40y", None).expect(404);
}

#[test]
fn unique_values_counts_and_groups_imply_the_owner() {
    let server = TestServer::start(
        r#"
        [collection.task]
        key = "user:{owner}:task:{n}"
        access = "owned"
        owner = "owner"
        fields = { owner = "text", n = "integer", rank = "integer", state = "text" }
        [collection.task.unique.rank]
        key = "user:{owner}:rank:{rank}"
        [collection.task.index.state]
        key = "user:{owner}:state:{state}:{n}"
        [collection.task.count.states]
        group = ["owner", "state"]
        "#,
    );
    for (user, n, state) in
        [("ana", 1, "open"), ("ana", 2, "open"), ("ana", 3, "done"), ("bob", 4, "open")]
    {
        let task = json!({ "n": n, "rank": n * 10, "state": state });
        by(&server, user, "POST", "/task/records", Some(task)).expect(201);
    }
    assert_eq!(by(&server, "ana", "GET", "/task/unique/rank/20", None).expect(200)["n"], 2);
    by(&server, "ana", "GET", "/task/unique/rank/40", None).expect(404);
    by(&server, "ana", "GET", "/task/unique/rank/x", None).expect(400);
    assert_eq!(server.get("/v1/collections/task/unique/rank/bob/40").expect(200)["n"], 4);
    assert_eq!(
        by(&server, "ana", "GET", "/task/count?where.state=open", None).expect(200)["count"],
        2
    );
    assert_eq!(by(&server, "bob", "GET", "/task/count?scan=true", None).expect(200)["count"], 1);
    let groups = by(&server, "ana", "GET", "/task/groups/states?top=1", None).expect(200);
    assert_eq!(groups["groups"], json!([{ "values": ["ana", "open"], "count": 2 }]));
    by(&server, "ana", "GET", "/task/groups/states?within.owner=bob", None).expect(403);
    let page =
        by(&server, "ana", "GET", "/task/records?where.state=open&limit=1", None).expect(200);
    let stolen =
        format!("/task/records?where.state=open&limit=1&cursor={}", page["next"].as_str().unwrap());
    by(&server, "bob", "GET", &stolen, None).expect(409);
    assert_eq!(
        by(&server, "ana", "GET", &stolen, None).expect(200)["records"][0]["record"]["n"],
        2
    );
}
