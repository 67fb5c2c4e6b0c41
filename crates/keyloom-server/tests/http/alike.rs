//! One operation answers alike as a request by itself, in a batch and in a transaction.

use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

const JSON: (&str, &str) = ("content-type", "application/json");
const STALE: &str = "00000000000000000000000000000000-1";

/// What an operation came to: its status, and of a refusal its kind, what is said, and whether the
/// record in the way is shown.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: u64,
    kind: Value,
    detail: Value,
    shows_current: bool,
}

impl Outcome {
    fn of(status: u64, body: &Value) -> Self {
        let is_refused = status >= 400;
        let of_refusal = |name: &str| if is_refused { body[name].clone() } else { Value::Null };
        Outcome {
            status,
            kind: of_refusal("type"),
            detail: of_refusal("detail"),
            shows_current: is_refused && body["current"]["record"].is_object(),
        }
    }

    /// The same without the version that the record has by chance.
    fn of_any(self, version: &str) -> Self {
        let detail = self.detail.as_str().map(|detail| detail.replace(version, "VERSION").into());
        Outcome { detail: detail.unwrap_or_default(), ..self }
    }
}

/// A server with one account, and the version of that.
fn seeded() -> (TestServer, String) {
    let server = TestServer::start(SCHEMA);
    let made = server.json("POST", "/v1/collections/account/records", &account(0, 5));
    made.expect(201);
    let version = made.header("etag").unwrap().trim_matches('"').to_owned();
    server.json("POST", "/v1/collections/account/records", &account(1, 5)).expect(201);
    (server, version)
}

/// The operation as a request of its own.
fn alone(server: &TestServer, operation: &Value) -> Outcome {
    let text = |name: &str| operation[name].as_str().map(str::to_owned);
    let one = format!("/v1/collections/account/records/{}", text("key").unwrap_or_default());
    let tag = text("if_match").map(|version| format!("\"{version}\""));
    let mut headers = vec![JSON];
    headers.extend(tag.as_deref().map(|tag| ("if-match", tag)));
    if operation["if_absent"] == true {
        headers.push(("if-none-match", "*"));
    }
    let guards = operation["if"].as_object().into_iter().flatten();
    let guards: Vec<String> = guards.map(|(path, value)| format!("if.{path}={value}")).collect();
    let (method, path, body) = match operation["op"].as_str().unwrap() {
        "insert" => ("POST", "/v1/collections/account/records".to_owned(), &operation["record"]),
        "put" => ("PUT", one, &operation["record"]),
        "patch" => ("PATCH", format!("{one}?{}", guards.join("&")), &operation["patch"]),
        "delete" => ("DELETE", one, &Value::Null),
        "increment" => ("POST", format!("{one}/increment"), &operation["add"]),
        "get" => ("GET", one, &Value::Null),
        other => panic!("no request is {other}"),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.send(method, &path, &headers, body);
    let told = if answer.status >= 400 { answer.value() } else { Value::Null };
    Outcome::of(answer.status.into(), &told)
}

fn in_batch(server: &TestServer, operation: &Value) -> Outcome {
    let answer = server.json("POST", "/v1/batch", &json!({ "operations": [operation] }));
    let result = answer.expect(200)["results"][0].clone();
    Outcome::of(result["status"].as_u64().unwrap(), &result["body"])
}

/// The outcome of a refused transaction; of others the status is not told.
fn in_transaction(server: &TestServer, operation: &Value) -> Option<Outcome> {
    let answer = server.json("POST", "/v1/transaction", &json!({ "operations": [operation] }));
    let is_refused = answer.status >= 400;
    is_refused.then(|| Outcome::of(answer.status.into(), &answer.value()))
}

#[test]
fn an_operation_answers_alike_alone_in_a_batch_and_in_a_transaction() {
    let conditions = |version: &str| {
        [
            json!({}),
            json!({ "if_match": version }),
            json!({ "if_match": STALE }),
            json!({ "if": { "balance": 5 } }),
            json!({ "if": { "balance": 6 } }),
            json!({ "if_match": version, "if": { "balance": 5 } }),
            json!({ "if_match": STALE, "if": { "balance": 5 } }),
            json!({ "if_absent": true }),
        ]
    };
    let takes = |op: &str, condition: &Value| {
        let known: &[&str] = match op {
            "put" => &["if_match", "if_absent"],
            "patch" => &["if_match", "if"],
            "delete" => &["if_match"],
            _ => &[],
        };
        condition.as_object().unwrap().keys().all(|name| known.contains(&name.as_str()))
    };
    let actions = [
        json!({ "op": "insert", "record": { "code": "new" } }),
        json!({ "op": "insert", "record": { "code": "c1" } }),
        json!({ "op": "insert", "record": { "id": id(0), "code": "again" } }),
        json!({ "op": "insert", "record": { "code": 1 } }),
        json!({ "op": "put", "record": { "code": "other" } }),
        json!({ "op": "put", "record": { "code": "c1" } }),
        json!({ "op": "put", "record": { "id": id(5), "code": "c5" } }),
        json!({ "op": "patch", "patch": { "balance": 7 } }),
        json!({ "op": "patch", "patch": { "code": "c1" } }),
        json!({ "op": "patch", "patch": { "code": 1 } }),
        json!({ "op": "delete" }),
        json!({ "op": "increment", "add": { "stats.moves": 1 } }),
        json!({ "op": "increment", "add": { "unknown": 1 } }),
        json!({ "op": "get" }),
    ];
    let mut compared = 0;
    for action in &actions {
        for number in 0..conditions("").len() {
            // The record that is there, one that is not, and what is no key.
            for key in [id(0), id(8), "short".to_owned()] {
                let asked = |version: &str| {
                    let condition = conditions(version)[number].clone();
                    let op = action["op"].as_str().unwrap();
                    takes(op, &condition).then(|| {
                        let mut operation = action.clone();
                        let members = operation.as_object_mut().unwrap();
                        members.extend(condition.as_object().unwrap().clone());
                        members.insert("collection".to_owned(), "account".into());
                        if op != "insert" {
                            members.insert("key".to_owned(), key.clone().into());
                        }
                        operation
                    })
                };
                let (server, version) = seeded();
                let Some(operation) = asked(&version) else { continue };
                let alone = alone(&server, &operation).of_any(&version);
                let (server, version) = seeded();
                let batched = in_batch(&server, &asked(&version).unwrap()).of_any(&version);
                assert_eq!(alone, batched, "{operation}: alone and in a batch");
                let (server, version) = seeded();
                let within = in_transaction(&server, &asked(&version).unwrap());
                let within = within.map(|outcome| outcome.of_any(&version));
                // A read that finds nothing ends no transaction.
                if action["op"] != "get" {
                    assert_eq!(
                        (alone.status >= 400).then_some(&alone),
                        within.as_ref(),
                        "{operation}: alone and in a transaction"
                    );
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "only {compared} were compared");
}

/// What the contract says of a record that is missing.
#[test]
fn a_missing_record_answers_alike_with_and_without_conditions() {
    let (server, _) = seeded();
    let missing = id(8);
    let on = |op: &str, more: Value| {
        let mut operation = json!({ "op": op, "collection": "account", "key": missing });
        operation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        operation
    };
    for (operation, status) in [
        (on("patch", json!({ "patch": {} })), 404),
        (on("patch", json!({ "patch": {}, "if_match": STALE })), 404),
        (on("patch", json!({ "patch": {}, "if": { "balance": 5 } })), 404),
        (on("patch", json!({ "patch": {}, "if_match": STALE, "if": { "balance": 5 } })), 404),
        (on("delete", json!({})), 404),
        (on("delete", json!({ "if_match": STALE })), 404),
        (on("increment", json!({ "add": { "stats.moves": 1 } })), 404),
        (on("put", json!({ "record": { "code": "x" }, "if_match": STALE })), 412),
    ] {
        assert_eq!(alone(&server, &operation).status, status, "{operation}: alone");
        assert_eq!(in_batch(&server, &operation).status, status, "{operation}: in a batch");
        let within = in_transaction(&server, &operation).map(|outcome| outcome.status);
        assert_eq!(within, Some(status), "{operation}: in a transaction");
    }
    // Headers can say more than members: any version, none at all, and several.
    for (method, status) in [("PATCH", 404), ("DELETE", 404), ("PUT", 412)] {
        for tags in ["*", "\"none\"", &format!("\"{STALE}\", W/\"{STALE}\"")] {
            let path = format!("/v1/collections/account/records/{missing}");
            let body = if method == "DELETE" { "" } else { "{\"code\":\"x\"}" };
            let answer = server.send(method, &path, &[JSON, ("if-match", tags)], body);
            assert_eq!(u64::from(answer.status), status, "{method} {tags}: {}", answer.value());
        }
    }
}
