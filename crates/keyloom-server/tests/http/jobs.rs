//! Administration: jobs, keys, figures.

use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
use keyloom_server::Config;
use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

/// A server with accounts, one of whose entries is gone and one of which dangles.
fn damaged(accounts: usize) -> TestServer {
    damaged_at("memory:", accounts)
}

fn damaged_at(address: &str, accounts: usize) -> TestServer {
    let server = TestServer::on(address, SCHEMA, Config::default());
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

/// Puts accounts into another space.
fn fill_space(server: &TestServer, space: &str, accounts: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let space = server.store.space(space).unwrap();
        space.apply(&keyloom::Schema::from_toml(SCHEMA).unwrap()).await.unwrap();
        let records = space.documents("account").await.unwrap();
        for number in 0..accounts {
            records.insert(&account(number, 1)).await.unwrap();
        }
    });
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

/// A job of this kind that takes for ever, once it has gone over some records.
fn slow(server: &TestServer, kind: &str, mut body: Value) -> Value {
    body["keys_per_second"] = 1.into();
    let started = server.json("POST", &format!("/v1/admin/{kind}"), &body);
    started.expect(202);
    let place = started.header("location").unwrap();
    loop {
        let job = server.get(place).expect(200);
        if job["progress"]["records"] != 0 {
            return job;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_job_keeps_its_pace_and_tells_how_far_it_is() {
    let server = damaged(1_000);
    let job = slow(&server, "verify", json!({}));
    assert_eq!(job["request"], json!({"keys_per_second": 1}));
    let estimate = &job["estimate"];
    // A thousand records and as many entries, of which one is missing and one dangles.
    assert_eq!((&estimate["done"], &estimate["about"]), (&json!(256), &json!(2_000)), "{job}");
    let page = server.get(&format!("/console/verify/{}", job["id"].as_str().unwrap()));
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("has done 12 % of about 2,000"), "{page}");
    let place = format!("/v1/admin/jobs/{}", job["id"].as_str().unwrap());
    let stopped = server.send("DELETE", &place, &[], "").expect(200);
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(stopped.get("estimate"), None);
    for wrong in [
        json!({"keys_per_second": 0}),
        json!({"keys_per_second": "9"}),
        json!({"keys_per_second": 4_294_967_296_u64}),
        json!({"percent_of_time": 101}),
        json!({"percent_of_time": 50, "keys_per_second": 9}),
    ] {
        server.json("POST", "/v1/admin/verify", &wrong).expect(400);
    }
    // JSON does not tell whole numbers from others.
    let verified = run(&server, "verify", &json!({"percent_of_time": 100.0}));
    assert_eq!(verified["result"]["counts"]["missing"], 1);
}

/// A server that stops leaves its jobs to the next one, which knows them by their ids and by their
/// idempotency keys. One that was stopped does not go on.
#[test]
fn the_next_server_goes_on_with_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().display());
    let first = damaged_at(&address, 600);
    let key = [("content-type", "application/json"), ("idempotency-key", "k")];
    let repair = json!({"dry_run": false, "keys_per_second": 1}).to_string();
    let repairing = first.send("POST", "/v1/admin/repair", &key, repair.clone()).expect(202);
    let stopped = slow(&first, "verify", json!({}));
    let stopped = place_of("", &stopped);
    first.send("DELETE", &stopped, &[], "").expect(200);
    fill_space(&first, "other", 600);
    let elsewhere = json!({"keys_per_second": 1});
    let elsewhere = first.json("POST", "/s/other/v1/admin/verify", &elsewhere).expect(202);
    let before = owner_of_repair(&first);
    first.stop();

    let second = TestServer::on(&address, SCHEMA, Config::default());
    // Nobody has to ask for it.
    let mut looks = 0;
    while owner_of_repair(&second) == before {
        looks += 1;
        assert!(looks < 10_000, "nobody goes on");
        std::thread::yield_now();
    }
    let listed = second.get("/v1/admin/jobs").expect(200);
    let [listed] = &listed["jobs"].as_array().unwrap()[..] else { panic!("one goes on") };
    for told in ["id", "kind", "request", "started_at", "state"] {
        assert_eq!(listed[told], repairing[told]);
    }
    let again = second.send("POST", "/v1/admin/repair", &key, repair).expect(202);
    assert_eq!(again["id"], repairing["id"]);
    let rival = second.json("POST", "/v1/admin/repair", &json!({"dry_run": false}));
    assert_eq!(rival.expect(409)["job"], repairing["id"]);
    second.get(&stopped).expect(404);
    let stop = |place: String| second.send("DELETE", &place, &[], "").expect(200);
    assert_eq!(stop(place_of("", &repairing))["state"], "stopped");
    // Whatever was found was mended in the first chunk, or is now.
    let repaired = run(&second, "repair", &json!({"dry_run": false}));
    assert_eq!(repaired["result"]["left"], json!([]));
    assert_eq!(run(&second, "verify", &json!({}))["result"]["is_clean"], true);
    let elsewhere = place_of("/s/other", &elsewhere);
    assert_eq!(second.get(&elsewhere).expect(200)["state"], "running");
    assert_eq!(stop(elsewhere)["state"], "stopped");
    let kept = second.get("/v1/admin/keys?area=~&prefix=task:").expect(200);
    assert_eq!(kept["keys"], json!([]), "what is over is not kept");
}

/// Who works on the repair, or worked on it last, as the store says.
fn owner_of_repair(server: &TestServer) -> Value {
    let page = server.get("/v1/admin/keys?area=~&prefix=task:job::repair&values=true").expect(200);
    let held: Value = serde_json::from_str(page["keys"][0]["value"].as_str().unwrap()).unwrap();
    held["owner"].clone()
}

fn place_of(space: &str, job: &Value) -> String {
    format!("{space}/v1/admin/jobs/{}", job["id"].as_str().unwrap())
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
