//! Several operations, all or nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::support::{Answer, TestServer};

pub const SCHEMA: &str = r#"
    [log]

    [collection.account]
    key = "account:{id}"
    fields = { id = { type = "id", generate = true }, code = "text" }
    [collection.account.counters]
    "stats.moves" = {}
    [collection.account.unique.code]
    key = "account:code:{code}"

    [collection.note]
    key = "user:{userId}:notes:{noteId}"
    access = "owned"
    owner = "userId"
    fields = { userId = "text", noteId = "text" }
"#;

pub fn id(number: usize) -> String {
    format!("{number:026}")
}

pub fn account(number: usize, balance: i64) -> Value {
    json!({"id": id(number), "code": format!("c{number}"), "balance": balance})
}

fn transact(server: &TestServer, operations: Value) -> Answer {
    server.json("POST", "/v1/transaction", &json!({"operations": operations}))
}

fn seeded(count: usize) -> TestServer {
    let server = TestServer::start(SCHEMA);
    let inserts: Vec<Value> = (0..count)
        .map(|number| json!({"op": "insert", "collection": "account", "record": account(number, 100)}))
        .collect();
    transact(&server, inserts.into()).expect(200);
    server
}

fn get(server: &TestServer, number: usize) -> Value {
    let operation = json!([{"op": "get", "collection": "account", "key": id(number)}]);
    transact(server, operation).expect(200)["results"][0].clone()
}

#[test]
fn every_operation_answers_what_applies() {
    let server = seeded(2);
    let version = get(&server, 1)["version"].clone();
    let answer = transact(
        &server,
        json!([
            {"op": "insert", "collection": "account", "record": {"code": "x"}},
            {"op": "put", "collection": "account", "key": id(0), "record": {"code": "c0", "balance": 1}},
            {"op": "patch", "collection": "account", "key": id(1), "patch": {"balance": 7}, "if_match": version, "if": {"balance": 100}},
            {"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": 2}},
            {"op": "check", "collection": "account", "key": id(9), "exists": false},
            {"op": "get", "collection": "account", "key": id(1)},
            {"op": "get", "collection": "account", "key": id(9)},
        ]),
    )
    .expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 7);
    assert_eq!(results[0]["key"].as_str().unwrap().len(), 26);
    assert_eq!(results[0]["record"]["code"], "x");
    assert_eq!(results[1]["record"]["id"], id(0));
    assert_eq!(results[2]["record"]["balance"], 7);
    assert_eq!(results[5]["record"]["stats"]["moves"], 2);
    assert_eq!(results[6]["record"], Value::Null);
    assert_eq!(get(&server, 0)["record"]["balance"], 1);
    let deleted = json!([{"op": "delete", "collection": "account", "key": id(0), "if_match": get(&server, 0)["version"]}]);
    transact(&server, deleted).expect(200);
    assert_eq!(get(&server, 0)["record"], Value::Null);
}

#[test]
fn a_refused_operation_is_named_and_nothing_is_written() {
    let server = seeded(2);
    let stale = "00000000000000000000000000000000-1";
    let key = id(0);
    let on = |op: &str, more: Value| {
        let mut operation = json!({"op": op, "collection": "account", "key": key});
        operation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        operation
    };
    let insert = |record: Value| json!({"op": "insert", "collection": "account", "record": record});
    for (operation, status, kind, has_current) in [
        (
            on("patch", json!({"patch": {"balance": 1}, "if_match": stale})),
            412,
            "version-conflict",
            true,
        ),
        (
            on("put", json!({"record": {"code": "c0"}, "if_match": stale})),
            412,
            "version-conflict",
            true,
        ),
        (
            on("put", json!({"record": {"code": "c0"}, "if_absent": true})),
            412,
            "precondition-failed",
            true,
        ),
        (on("delete", json!({"if_match": stale})), 412, "version-conflict", true),
        (on("check", json!({"if_match": stale})), 412, "precondition-failed", true),
        (on("check", json!({"if": {"balance": 99}})), 412, "precondition-failed", true),
        (on("check", json!({"exists": false})), 412, "precondition-failed", true),
        (
            on("patch", json!({"patch": {}, "if": {"balance": 99}})),
            412,
            "precondition-failed",
            true,
        ),
        (json!({"op": "delete", "collection": "account", "key": id(7)}), 404, "not-found", false),
        (
            json!({"op": "patch", "collection": "account", "key": id(7), "patch": {}}),
            404,
            "not-found",
            false,
        ),
        (
            json!({"op": "patch", "collection": "account", "key": id(7), "patch": {}, "if_match": stale}),
            404,
            "not-found",
            false,
        ),
        (json!({"op": "get", "collection": "nobody", "key": "1"}), 404, "not-found", false),
        (json!({"op": "get", "collection": "account", "key": "short"}), 400, "invalid-key", false),
        (insert(account(0, 5)), 409, "already-exists", false),
        (insert(json!({"code": "c0"})), 409, "unique-conflict", false),
        (on("put", json!({"record": {"id": id(1), "code": "c0"}})), 422, "invalid-record", false),
    ] {
        let first = insert(json!({"code": "never"}));
        let problem = transact(&server, json!([first, operation])).expect(status);
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{operation}: {problem}");
        assert_eq!(problem["operation"], 1, "{operation}: {problem}");
        assert_eq!(problem["current"]["record"].is_object(), has_current, "{operation}: {problem}");
        assert_eq!(problem["outcome"], "did_not_happen");
        let again = transact(
            &server,
            json!([insert(json!({"code": "never"})), {"op": "check", "collection": "account", "key": id(8), "exists": true}]),
        );
        // Had the first insert stayed, this one would be a conflict of its code.
        assert_eq!(again.expect(412)["operation"], 1);
    }
}

#[test]
fn what_cannot_be_understood_is_refused_before_anything_happens() {
    let server = TestServer::start(SCHEMA);
    for body in [
        json!({}),
        json!({"operations": []}),
        json!({"operations": {}}),
        json!({"operations": [], "x": 1}),
    ] {
        server.json("POST", "/v1/transaction", &body).expect(400);
    }
    let many: Vec<Value> = (0..1_001)
        .map(|number| json!({"op": "get", "collection": "account", "key": id(number)}))
        .collect();
    let problem = transact(&server, many.into()).expect(413);
    assert_eq!(problem["type"], "/problems/limit-exceeded");
    let twice =
        r#"{"operations": [{"op": "get", "op": "get", "collection": "account", "key": "1"}]}"#;
    let headers = [("content-type", "application/json")];
    server.send("POST", "/v1/transaction", &headers, twice).expect(400);
}

#[test]
fn users_reach_their_own_records_only() {
    let server = TestServer::start(SCHEMA);
    let headers = |user| [("content-type", "application/json"), ("keyloom-act-as", user)];
    let put = json!({"operations": [{"op": "put", "collection": "note", "key": "n1", "record": {"text": "hers"}}]});
    let as_user = |user, body: &Value| {
        server.send("POST", "/v1/transaction", &headers(user), body.to_string())
    };
    let result = as_user("ana", &put).expect(200)["results"][0].clone();
    assert_eq!(result["record"]["userId"], "ana");
    assert_eq!(result["key"], "n1");
    let read = json!({"operations": [{"op": "get", "collection": "note", "key": "n1"}]});
    assert_eq!(as_user("ben", &read).expect(200)["results"][0]["record"], Value::Null);
    assert_eq!(as_user("ana", &read).expect(200)["results"][0]["record"]["text"], "hers");
}

#[test]
fn a_transaction_with_a_key_happens_once_and_no_other_takes_its_key() {
    let server = seeded(1);
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let add = |by: i64| {
        json!({"operations": [
            {"op": "increment", "collection": "account", "key": id(0), "add": {"stats.moves": by}},
            {"op": "insert", "collection": "account", "record": {"code": "fresh"}},
        ]})
        .to_string()
    };
    let first = server.send("POST", "/v1/transaction", &headers, add(1)).expect(200);
    for _ in 0..5 {
        assert_eq!(server.send("POST", "/v1/transaction", &headers, add(1)).expect(200), first);
    }
    let problem = server.send("POST", "/v1/transaction", &headers, add(2)).expect(422);
    assert_eq!(problem["type"], "/problems/idempotency-conflict");
    assert_eq!(get(&server, 0)["record"]["stats"]["moves"], 1);
}

/// Money moves between accounts from several connections at once, each move repeated; the sum
/// stays, and each move happens once.
#[test]
fn concurrent_transactions_are_atomic_and_happen_once() {
    const ACCOUNTS: usize = 4;
    const MOVERS: usize = 4;
    const MOVES: usize = 25;
    let server = Arc::new(seeded(ACCOUNTS));
    let movers: Vec<_> = (0..MOVERS)
        .map(|mover| {
            let server = server.clone();
            std::thread::spawn(move || {
                for step in 0..MOVES {
                    let (from, to) = ((mover + step) % ACCOUNTS, (mover + step * 3 + 1) % ACCOUNTS);
                    if from != to {
                        transfer(&server, from, to, &format!("m{mover}-{step}"));
                    }
                }
            })
        })
        .collect();
    let mut reads = 0;
    while movers.iter().any(|mover| !mover.is_finished()) || reads == 0 {
        assert_eq!(sum(&server, ACCOUNTS), 100 * ACCOUNTS as i64);
        reads += 1;
    }
    movers.into_iter().for_each(|mover| mover.join().unwrap());
    assert_eq!(sum(&server, ACCOUNTS), 100 * ACCOUNTS as i64);
    let moves: i64 = (0..ACCOUNTS)
        .map(|n| get(&server, n)["record"]["stats"]["moves"].as_i64().unwrap_or(0))
        .sum();
    let wanted = (0..MOVERS)
        .flat_map(|m| (0..MOVES).map(move |s| (m, s)))
        .filter(|(m, s)| (m + s) % ACCOUNTS != (m + s * 3 + 1) % ACCOUNTS)
        .count();
    assert_eq!(moves, wanted as i64);
}

fn sum(server: &TestServer, accounts: usize) -> i64 {
    let reads: Vec<Value> = (0..accounts)
        .map(|n| json!({"op": "get", "collection": "account", "key": id(n)}))
        .collect();
    let answer = transact(server, reads.into()).expect(200);
    let results = answer["results"].as_array().unwrap();
    results.iter().map(|result| result["record"]["balance"].as_i64().unwrap()).sum()
}

/// Reads both, and writes both if nobody wrote either; sends what it wrote twice.
fn transfer(server: &TestServer, from: usize, to: usize, key: &str) {
    for attempt in 0.. {
        let (one, other) = (get(server, from), get(server, to));
        let moved = |seen: &Value, by: i64| seen["record"]["balance"].as_i64().unwrap() + by;
        let body = json!({"operations": [
            {"op": "patch", "collection": "account", "key": id(from), "patch": {"balance": moved(&one, -1)}, "if_match": one["version"]},
            {"op": "patch", "collection": "account", "key": id(to), "patch": {"balance": moved(&other, 1)}, "if_match": other["version"]},
            {"op": "increment", "collection": "account", "key": id(from), "add": {"stats.moves": 1}},
        ]})
        .to_string();
        let key = format!("{key}-{attempt}");
        let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
        let first = server.send("POST", "/v1/transaction", &headers, body.clone());
        match first.status {
            200 => {
                let again = server.send("POST", "/v1/transaction", &headers, body);
                assert_eq!(again.expect(200), first.value());
                return;
            }
            412 | 503 => {}
            _ => panic!("{first:?}"),
        }
    }
}
