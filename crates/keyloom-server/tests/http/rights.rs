//! What tokens for some collections see of what reaches across collections.

use keyloom_server::{Authority, Config, new_token};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};
use crate::transaction::{SCHEMA, account, id};

/// A server with an administrator and services, each with its token.
struct Shop {
    server: TestServer,
    admin: String,
    /// Reads and writes accounts.
    clerk: String,
    /// Writes accounts, and reads nothing.
    till: String,
    /// Reads notes.
    archive: String,
}

impl Shop {
    fn open() -> Self {
        let tokens = [(); 4].map(|()| new_token());
        let told = ["admin", "clerk", "till", "archive"];
        let rights = [
            "role = \"admin\"",
            "role = \"service\"\ncollections = [\"account\"]\nverbs = [\"read\", \"write\"]",
            "role = \"service\"\ncollections = [\"account\"]\nverbs = [\"write\"]",
            "role = \"service\"\ncollections = [\"note\"]\nverbs = [\"read\"]",
        ];
        let file: String = told
            .iter()
            .zip(&tokens)
            .zip(rights)
            .map(|((name, token), rights)| {
                format!("[[token]]\nname = \"{name}\"\nsha256 = \"{}\"\n{rights}\n", token.1)
            })
            .collect();
        let authority = Authority::from_toml(&file).unwrap();
        let server = TestServer::with(SCHEMA, Config { authority, ..Config::default() });
        let [admin, clerk, till, archive] = tokens.map(|(token, _)| token);
        Shop { server, admin, clerk, till, archive }
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.send(method, path, &headers, body)
    }

    fn operations(&self, token: &str, path: &str, operations: Value) -> Answer {
        self.ask(token, "POST", path, &json!({"operations": operations}))
    }
}

#[test]
fn operations_need_their_rights_and_hidden_collections_are_unknown_ones() {
    let shop = Shop::open();
    let insert = json!({"op": "insert", "collection": "account", "record": account(1, 5)});
    let done = shop.operations(&shop.clerk, "/v1/transaction", json!([insert])).expect(200);
    assert_eq!(done["results"][0]["record"]["balance"], 5);
    let hidden = |collection: &str| {
        let get = json!([{"op": "get", "collection": collection, "key": "x"}]);
        shop.operations(&shop.clerk, "/v1/transaction", get).expect(404)
    };
    assert_eq!(hidden("note"), hidden("nobody"));
    let delete = json!([{"op": "delete", "collection": "account", "key": id(1)}]);
    let refused = shop.operations(&shop.clerk, "/v1/transaction", delete.clone()).expect(403);
    assert_eq!(refused["operation"], 0);
    let batch = shop.operations(&shop.clerk, "/v1/batch", delete).expect(200);
    assert_eq!(batch["results"][0]["status"], 403);
}

#[test]
fn whoever_may_only_write_is_shown_nothing() {
    let shop = Shop::open();
    let insert = json!({"op": "insert", "collection": "account", "record": account(1, 5)});
    shop.operations(&shop.admin, "/v1/transaction", json!([insert])).expect(200);
    let stale = "00000000000000000000000000000000-1";
    let patch = |more: Value| {
        let mut patch =
            json!({"op": "patch", "collection": "account", "key": id(1), "patch": {"x": 1}});
        patch.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([patch])
    };
    let written = shop.operations(&shop.till, "/v1/transaction", patch(json!({}))).expect(200);
    assert!(written["results"][0].get("record").is_none(), "{written}");
    for condition in [json!({"if_match": stale}), json!({"if": {"balance": 6}})] {
        let problem = shop.operations(&shop.till, "/v1/transaction", patch(condition)).expect(412);
        assert!(problem.get("current").is_none(), "{problem}");
        assert!(!problem.to_string().contains("c1"), "{problem}");
    }
    let taken = json!([{"op": "insert", "collection": "account", "record": account(1, 5)}, {"op": "insert", "collection": "account", "record": {"code": "c1"}}]);
    let batch = shop.operations(&shop.till, "/v1/batch", taken).expect(200);
    assert_eq!(batch["results"][1]["status"], 409);
    assert!(!batch["results"][1].to_string().contains(&id(1)), "{batch}");
}

#[test]
fn the_log_tells_of_the_collections_of_the_token() {
    let shop = Shop::open();
    let operations = json!([
        {"op": "insert", "collection": "account", "record": account(1, 5)},
        {"op": "put", "collection": "note", "key": "ana:notes:n1", "record": {}},
    ]);
    shop.operations(&shop.admin, "/v1/transaction", operations).expect(200);
    let seen = |token: &str| {
        let page = shop.ask(token, "GET", "/v1/changes", &Value::Null).expect(200);
        let commits = page["commits"].as_array().unwrap().clone();
        let changes = commits.iter().flat_map(|commit| commit["changes"].as_array().unwrap());
        let names: Vec<String> =
            changes.map(|change| change["collection"].as_str().unwrap().to_owned()).collect();
        (names, commits.iter().any(|commit| commit["is_schema_change"] == true))
    };
    assert_eq!(seen(&shop.admin), (vec!["account".to_owned(), "note".to_owned()], true));
    assert_eq!(seen(&shop.clerk), (vec!["account".to_owned()], false));
    assert_eq!(seen(&shop.archive), (vec!["note".to_owned()], false));
    shop.ask(&shop.till, "GET", "/v1/changes", &Value::Null).expect(403);
    shop.ask(&shop.clerk, "GET", "/v1/changes?collection=note", &Value::Null).expect(404);
}

#[test]
fn plain_keys_and_administration_are_closed_to_tokens_for_some_collections() {
    let shop = Shop::open();
    for path in ["/v1/kv", "/v1/kv/x", "/v1/admin/keys", "/v1/admin/export", "/v1/admin/jobs"] {
        for token in [&shop.clerk, &shop.till, &shop.archive] {
            shop.ask(token, "GET", path, &Value::Null).expect(403);
        }
    }
    shop.ask(&shop.clerk, "PUT", "/v1/kv/x", &json!({})).expect(403);
    assert_eq!(shop.ask(&shop.admin, "PUT", "/v1/kv/x", &json!({})).status, 204);
    shop.ask(&shop.clerk, "POST", "/v1/admin/verify", &Value::Null).expect(403);
}

#[test]
fn metrics_need_a_token_and_tell_of_its_collections() {
    let shop = Shop::open();
    let get = json!([
        {"op": "get", "collection": "account", "key": id(1)},
        {"op": "get", "collection": "note", "key": "ana:notes:n1"},
    ]);
    shop.operations(&shop.admin, "/v1/transaction", get).expect(200);
    assert_eq!(shop.server.get("/metrics").status, 401);
    for path in ["/health", "/ready"] {
        assert_eq!(shop.server.get(path).status, 200);
    }
    let told = |token: &str| {
        let answer = shop.ask(token, "GET", "/metrics", &Value::Null);
        assert_eq!(answer.status, 200);
        let text = String::from_utf8(answer.body).unwrap();
        ["account", "note"].map(|name| text.contains(&format!("collection=\"{name}\"")))
    };
    assert_eq!(told(&shop.admin), [true, true]);
    assert_eq!(told(&shop.clerk), [true, false]);
    assert_eq!(told(&shop.archive), [false, true]);
}
