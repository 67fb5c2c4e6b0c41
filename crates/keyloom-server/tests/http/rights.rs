//! What tokens for some collections see of what reaches across collections.

use keyloom::Schema;
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

/// The same of single requests: no answer to a write shows more than the version, and no refusal
/// more than the names of what is in the way.
#[test]
fn whoever_may_only_write_is_shown_nothing_by_single_writes() {
    let shop = Shop::open();
    let records = "/v1/collections/account/records";
    let one = format!("{records}/{}", id(1));
    let ask = |method: &str, path: &str, more: &[(&str, &str)], body: Value| {
        let bearer = format!("Bearer {}", shop.till);
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.push(("content-type", "application/json"));
        headers.extend(more);
        shop.server.send(method, path, &headers, body.to_string())
    };
    let is_silent = |answer: &Answer, status: u16| {
        assert_eq!((answer.status, answer.body.len()), (status, 0), "{answer:?}");
    };
    let hidden = |answer: Answer, status: u16| {
        let problem = answer.expect(status).to_string();
        for told in ["current", "hidden", "\"version\"", "7777", "expected"] {
            assert!(!problem.contains(told), "{told}: {problem}");
        }
        problem
    };

    let inserted = ask("POST", records, &[], json!({"id": id(1), "code": "hidden"}));
    is_silent(&inserted, 201);
    assert_eq!(inserted.header("location"), Some(one.as_str()));
    let created = ask("PUT", &format!("{records}/{}", id(2)), &[], json!({"code": "c2"}));
    is_silent(&created, 201);
    let put = ask("PUT", &one, &[], json!({"code": "hidden", "balance": 7777}));
    is_silent(&put, 204);
    let version = put.header("etag").unwrap().to_owned();
    let patched = ask("PATCH", &one, &[("if-match", &version)], json!({"x": 1}));
    is_silent(&patched, 204);
    assert!(patched.header("etag").is_some_and(|etag| etag != version), "{patched:?}");
    is_silent(&ask("PATCH", &format!("{one}?if.balance=7777"), &[], json!({"x": 2})), 204);
    is_silent(&ask("POST", &format!("{one}/increment"), &[], json!({"stats.moves": 7777})), 204);

    let stale = [("if-match", version.as_str())];
    hidden(ask("PUT", &one, &stale, json!({"code": "c1"})), 412);
    hidden(ask("PATCH", &one, &stale, json!({"x": 3})), 412);
    hidden(ask("PATCH", &format!("{one}?if.balance=1"), &stale, json!({"x": 3})), 412);
    hidden(ask("PATCH", &format!("{one}?if.balance=1"), &[], json!({"x": 3})), 412);
    for (method, path) in [("POST", records), ("PUT", &format!("{records}/{}", id(3)))] {
        let taken = ask(method, path, &[], json!({"id": id(3), "code": "hidden"}));
        let problem = hidden(taken, 409);
        assert!(problem.contains("\"index\":\"code\"") && !problem.contains(&id(1)), "{problem}");
    }
    let overflow = json!({"stats.moves": i64::MAX});
    hidden(ask("POST", &format!("{one}/increment"), &[], overflow), 409);

    let operations = json!([
        {"op": "patch", "collection": "account", "key": id(1), "patch": {"x": 4}},
        {"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": 1}},
        {"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": i64::MAX}},
    ]);
    let results =
        shop.operations(&shop.till, "/v1/batch", operations).expect(200)["results"].clone();
    assert_eq!((&results[0]["status"], &results[1]["status"]), (&json!(204), &json!(204)));
    assert!(results[1]["body"].get("values").is_none(), "{results}");
    assert!(!results.to_string().contains("777"), "{results}");

    let reader = shop.ask(&shop.clerk, "PATCH", &one, &json!({"x": 5})).expect(200);
    assert_eq!((&reader["balance"], &reader["stats"]["moves"]), (&json!(7777), &json!(7778)));
}

/// An answer that is kept for an idempotency key is given again to whoever sends the same, as far
/// as they may see it.
#[test]
fn whoever_may_only_write_is_shown_nothing_by_repeating_what_others_sent() {
    let shop = Shop::open();
    let records = "/v1/collections/account/records";
    let one = format!("{records}/{}", id(1));
    let whole = json!({"id": id(1), "code": "hidden", "balance": 7777});
    shop.ask(&shop.clerk, "POST", records, &whole).expect(201);
    let patch = json!({"op": "patch", "collection": "account", "key": id(1), "patch": {"x": 1}});
    let add = json!({"op": "increment", "collection": "account", "key": id(1), "add": {"stats.moves": 7777}});
    let operations = json!({"operations": [patch, add]});
    for (number, (method, path, body)) in [
        ("POST", "/v1/transaction", &operations),
        ("POST", "/v1/batch", &operations),
        ("POST", records, &json!({"code": "second", "balance": 7777})),
        ("PUT", one.as_str(), &json!({"code": "hidden", "balance": 7777})),
        ("PATCH", one.as_str(), &json!({"x": 2})),
        ("PATCH", &format!("{one}?if.balance=7777"), &json!({"x": 3})),
        ("POST", &format!("{one}/increment"), &json!({"stats.moves": 7777})),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("key {number}");
        let ask = |token: &str| {
            let bearer = format!("Bearer {token}");
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/json"),
                ("idempotency-key", key.as_str()),
            ];
            let answer = shop.server.send(method, path, &headers, body.to_string());
            assert!((200..300).contains(&answer.status), "{answer:?}");
            (answer.status, String::from_utf8(answer.body).unwrap())
        };
        let first = ask(&shop.clerk).1;
        let secrets = ["hidden", "second", "777", "23331", "\"x\"", "\"status\":200"];
        assert!(secrets.iter().any(|told| first.contains(told)), "{first}");
        let (status, again) = ask(&shop.till);
        for told in secrets {
            assert!(!again.contains(told), "{method} {path}: {status} {again}");
        }
    }
    let kept = shop.ask(&shop.clerk, "GET", &one, &Value::Null).expect(200);
    assert_eq!((&kept["x"], &kept["stats"]["moves"]), (&json!(3), &json!(3 * 7777)));
}

/// Pages for changes show what is stored, and why an index failed names records.
#[test]
fn whoever_may_only_write_is_shown_nothing_by_the_console_and_the_schema() {
    let shop = Shop::open();
    let twice = [account(1, 7777), account(2, 7777)];
    let inserts = twice.map(|it| json!({"op": "insert", "collection": "account", "record": it}));
    shop.operations(&shop.admin, "/v1/transaction", json!(inserts)).expect(200);
    let account = "/console/collections/account";
    for page in ["/new".to_owned(), format!("/record/edit?key={}", id(1))] {
        let see = |token: &str| shop.ask(token, "GET", &format!("{account}{page}"), &Value::Null);
        assert_eq!(see(&shop.clerk).status, 200, "{page}");
        let refused = see(&shop.till);
        assert_eq!(refused.status, 403, "{page}");
        assert!(!String::from_utf8_lossy(&refused.body).contains("7777"), "{page}");
    }
    let wider = SCHEMA.replace("code = \"text\" }", "code = \"text\", balance = \"integer\" }")
        + "[collection.account.unique.balance]\nkey = \"account:balance:{balance}\"";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        shop.server.store.apply(&Schema::from_toml(&wider).unwrap()).await.unwrap();
        shop.server.store.build("account", "balance").await.unwrap_err();
    });
    let told = |token: &str| shop.ask(token, "GET", "/v1/schema", &Value::Null).expect(200);
    let failures = |token: &str| told(token)["failures"]["account"]["balance"].clone();
    assert!(failures(&shop.clerk).as_str().unwrap().contains(&id(1)), "{}", told(&shop.clerk));
    assert_eq!(failures(&shop.till), Value::Null);
    assert_eq!(told(&shop.till)["indexes"]["account"]["balance"], "failed");
}

/// Deleting is a verb of its own, too.
#[test]
fn whoever_may_only_delete_is_shown_nothing() {
    let (token, hash) = new_token();
    let file = format!(
        "[[token]]\nname = \"broom\"\nrole = \"service\"\nsha256 = \"{hash}\"\n\
         collections = [\"account\"]\nverbs = [\"delete\"]\n"
    );
    let authority = Authority::from_toml(&file).unwrap();
    let server = TestServer::with(SCHEMA, Config { authority, ..Config::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let accounts = server.store.documents("account").await.unwrap();
        accounts.insert(&account(1, 7777)).await.unwrap();
    });
    let one = format!("/v1/collections/account/records/{}", id(1));
    let bearer = format!("Bearer {token}");
    let stale = [
        ("authorization", bearer.as_str()),
        ("if-match", "\"00000000000000000000000000000000-1\""),
    ];
    let problem = server.send("DELETE", &one, &stale, "").expect(412);
    assert!(!problem.to_string().contains("7777") && problem.get("current").is_none(), "{problem}");
    assert_eq!(server.send("DELETE", &one, &stale[..1], "").status, 204);
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
