//! Administration: jobs, keys, figures.

use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

/// A server with accounts, one of whose entries is gone and one of which dangles.
fn damaged(accounts: usize) -> TestServer {
    let server = TestServer::start(SCHEMA);
    let inserts: Vec<Value> = (0..accounts)
        .map(|n| json!({"op": "insert", "collection": "account", "record": account(n, 1)}))
        .collect();
    server.json("POST", "/v1/batch", &json!({"operations": inserts})).expect(200);
    let mut batch = Batch::new(Space::main());
    let address = |key: &str| Address::new(Area::default_area(), key.to_owned());
    batch.push(address("account:code:c0"), None, Some(Effect::Delete));
    let (stamp, bytes) = (Stamp([1; Stamp::BYTES]), format!("\"{}\"", id(9_999)).into());
    batch.push(address("account:code:nobody"), None, Some(Effect::Put { stamp, bytes }));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.engine().commit(batch)).unwrap();
    server
}

/// The job at a place, once it is over.
fn over(server: &TestServer, location: &str) -> Value {
    loop {
        let job = server.get(location).expect(200);
        if job["state"] != "running" {
            return job;
        }
        std::thread::yield_now();
    }
}

fn run(server: &TestServer, kind: &str, body: &Value) -> Value {
    let started = server.json("POST", &format!("/v1/admin/{kind}"), body);
    let job = started.expect(202);
    assert_eq!(job["kind"], kind);
    over(server, started.header("location").unwrap())
}

#[test]
fn verify_finds_and_repair_mends() {
    let server = damaged(50);
    let verified = run(&server, "verify", &json!({}));
    assert_eq!(verified["state"], "done");
    assert_eq!(verified["result"]["counts"]["missing"], 1);
    assert_eq!(verified["result"]["counts"]["dangling"], 1);
    assert_eq!(verified["result"]["is_clean"], false);
    assert_eq!(verified["result"]["records"], 50);
    assert_eq!(verified["progress"], json!({"records": 50, "entries": 50, "findings": 2}));
    assert_eq!(verified["result"]["findings"][0]["index"], "code");
    let dry = run(&server, "repair", &json!({"dry_run": true}));
    assert_eq!(dry["result"]["mended_counts"]["missing"], 1);
    assert_eq!(run(&server, "verify", &json!({}))["result"]["is_clean"], false);
    let real = run(&server, "repair", &json!({"dry_run": false}));
    assert_eq!(real["result"]["mended"].as_array().unwrap().len(), 2);
    assert_eq!(run(&server, "verify", &json!({}))["result"]["is_clean"], true);
    let listed = server.get("/v1/admin/jobs").expect(200);
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 5);
    let newest = &listed["jobs"][0];
    assert_eq!(newest["result"]["is_clean"], true, "{newest}");
    assert_eq!(server.get("/s/other/v1/admin/jobs").expect(200)["jobs"], json!([]));
    server.get(&format!("/s/other/v1/admin/jobs/{}", newest["id"].as_str().unwrap())).expect(404);
}

/// A server whose declared unique index could not be built: two accounts have the same code.
fn failed() -> TestServer {
    let server = TestServer::start(SCHEMA);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.disable("account", "code")).unwrap();
    for n in [0, 1] {
        let mut record = account(n, 1);
        record["code"] = "same".into();
        server.json("POST", "/v1/collections/account/records", &record).expect(201);
    }
    let built = run(&server, "build", &json!({"collection": "account", "index": "code"}));
    assert_eq!(built["state"], "failed", "{built}");
    server
}

#[test]
fn verify_and_repair_tell_of_an_index_that_does_not_serve() {
    let server = failed();
    let reason = format!("code \"same\" is in account:{} and in account:{}", id(0), id(1));
    let failed = json!([
        {"collection": "account", "index": "code", "state": "failed", "reason": reason}
    ]);
    let verified = run(&server, "verify", &json!({}));
    assert_eq!(verified["result"]["not_ready"], failed);
    assert_eq!(verified["result"]["is_clean"], false);
    assert_eq!(verified["result"]["findings"], json!([]));
    let repaired = run(&server, "repair", &json!({"dry_run": false}));
    assert_eq!(repaired["result"]["not_ready"], failed);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.disable("account", "code")).unwrap();
    let verified = run(&server, "verify", &json!({}));
    let disabled = json!([{"collection": "account", "index": "code", "state": "disabled"}]);
    assert_eq!(verified["result"]["not_ready"], disabled);
    assert_eq!(verified["result"]["is_clean"], true);
}

#[test]
fn an_index_is_built_and_an_unknown_one_refused() {
    let server = damaged(20);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.disable("account", "code")).unwrap();
    let built = run(&server, "build", &json!({"collection": "account", "index": "code"}));
    assert_eq!(built["state"], "done", "{built}");
    assert_eq!(built["result"]["records"], 20);
    for body in [
        json!({"collection": "account", "index": "nobody"}),
        json!({"collection": "account"}),
        json!({"collection": "account", "index": "code", "x": 1}),
    ] {
        let status = server.json("POST", "/v1/admin/build", &body).status;
        assert!((400..500).contains(&status), "{body}: {status}");
    }
    server.json("POST", "/v1/admin/repair", &json!({})).expect(400);
    server.json("POST", "/v1/admin/repair", &json!({"dry_run": "yes"})).expect(400);
    server.json("POST", "/v1/admin/verify", &json!({"dry_run": true})).expect(400);
    for id in ["999", "x", "-1", "18446744073709551616"] {
        server.get(&format!("/v1/admin/jobs/{id}")).expect(404);
    }
}

#[test]
fn a_running_job_is_told_to_its_rivals_and_can_be_stopped() {
    let server = damaged(1_000);
    let first = server.json("POST", "/v1/admin/verify", &json!({}));
    let place = first.header("location").unwrap().to_owned();
    let second = server.json("POST", "/v1/admin/verify", &json!({}));
    match second.status {
        409 => {
            assert_eq!(second.header("location"), Some(place.as_str()));
            assert_eq!(second.value()["type"], "/problems/already-running");
        }
        // The first one was over already.
        202 => assert_eq!(over(&server, &place)["state"], "done"),
        _ => panic!("{second:?}"),
    }
    let stopped = server.send("DELETE", &place, &[], "").expect(200);
    assert!(["stopped", "done"].contains(&stopped["state"].as_str().unwrap()), "{stopped}");
}

#[test]
fn only_administrators_come_here() {
    let server = damaged(1);
    let ana = [("keyloom-act-as", "ana"), ("content-type", "application/json")];
    for (method, path) in [
        ("GET", "keys"),
        ("GET", "branches"),
        ("GET", "stats"),
        ("GET", "rates"),
        ("GET", "distribution/account/code"),
        ("POST", "verify"),
        ("POST", "repair"),
        ("POST", "build"),
        ("GET", "jobs"),
        ("GET", "jobs/1"),
        ("DELETE", "jobs/1"),
        ("POST", "import"),
        ("GET", "export"),
    ] {
        let answer = server.send(method, &format!("/v1/admin/{path}"), &ana, "{}");
        assert_eq!(answer.status, 403, "{method} {path}");
    }
}

#[test]
fn keys_branches_stats_and_distribution_tell_what_lies_there() {
    let server = damaged(30);
    let page = server.get("/v1/admin/keys?area=&prefix=account:&limit=10&values=true").expect(200);
    let keys = page["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 10);
    assert_eq!(keys[0]["kind"], "record");
    assert_eq!(keys[0]["collection"], "account");
    assert!(keys[0]["value"].as_str().unwrap().starts_with('{'));
    let next = page["next"].as_str().unwrap();
    let rest = server
        .get(&format!("/v1/admin/keys?area=&prefix=account:&limit=1000&cursor={next}"))
        .expect(200);
    assert_eq!(rest["keys"].as_array().unwrap().len(), 50);
    assert!(rest["keys"][0].get("value").is_none());
    let own = server.get("/v1/admin/keys?area=~").expect(200);
    assert!(own["keys"].as_array().unwrap().iter().any(|key| key["kind"] == "own"));
    let branches = server.get("/v1/admin/branches?prefix=account:").expect(200);
    assert!(branches["branches"].as_array().unwrap().iter().any(|branch| {
        branch["text"] == "account:code:" && branch["keys"] == 30 && branch["is_exact"] == true
    }));
    let stats = server.get("/v1/admin/stats").expect(200);
    assert_eq!(stats["engine"], "memory");
    assert_eq!(stats["collections"][0]["records"]["keys"], 30);
    assert_eq!(stats["collections"][0]["indexes"][0]["state"], "ready");
    let shares = server.get("/v1/admin/distribution/account/code").expect(200);
    assert_eq!(shares["shares"].as_array().unwrap().len(), 30);
    server.get("/v1/admin/distribution/account/nobody").expect(400);
    for wrong in ["keys?limit=0", "stats?budget=0", "keys?x=1", "stats?budget=100001"] {
        assert_eq!(server.get(&format!("/v1/admin/{wrong}")).status, 400, "{wrong}");
    }
    server.get("/v1/admin/keys?cursor=abc").expect(409);
}
