//! Exports of a store that is written to: all of one moment.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keyloom::engine::{Memory, Torn};
use keyloom_server::{Config, Limits};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};
use crate::transaction::{SCHEMA, account, id};

/// How many accounts lie between the two that money moves between; several pages of an export.
pub(crate) const BETWEEN: usize = 200;
pub(crate) const TOTAL: i64 = 1_000;

/// A server whose first and last account have a sum.
pub(crate) fn filled(server: TestServer) -> TestServer {
    let insert = |number: usize, balance: i64| json!({"op": "insert", "collection": "account", "record": account(number, balance)});
    let mut operations = vec![insert(0, TOTAL), insert(BETWEEN + 1, 0)];
    operations.extend((1..=BETWEEN).map(|number| insert(number, 0)));
    operations.push(
        json!({"op": "put", "collection": "note", "key": "ana:notes:sum", "record": {"moved": 0}}),
    );
    server.json("POST", "/v1/batch", &json!({"operations": operations})).expect(200);
    server
}

/// Moves money from the first account to the last, and notes how much, in one step.
fn transfer(server: &TestServer, moved: i64) {
    let patch = |number: usize, balance: i64| json!({"op": "patch", "collection": "account", "key": id(number), "patch": {"balance": balance}});
    let operations = json!([
        patch(0, TOTAL - moved),
        patch(BETWEEN + 1, moved),
        {"op": "put", "collection": "note", "key": "ana:notes:sum", "record": {"moved": moved}},
    ]);
    server.json("POST", "/v1/transaction", &json!({"operations": operations})).expect(200);
}

/// Does something while money moves, and stops when it is done.
pub(crate) fn while_money_moves(server: &TestServer, work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut moved = 0;
            while !is_over.load(Ordering::Acquire) {
                moved += 1;
                transfer(server, moved);
            }
        });
        // Also when the work panics, or nobody would stop the writer.
        struct Over<'o>(&'o AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let _over = Over(&is_over);
        work();
    });
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200);
    let text = std::str::from_utf8(&answer.body).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records of an export, by collection and key, without their counters: the log tells of
/// those apart.
fn records(lines: &[Value]) -> BTreeMap<(String, String), Value> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let record = |line: &Value| {
        let mut record = line["record"].clone();
        record.as_object_mut().unwrap().shift_remove("stats");
        record
    };
    lines
        .iter()
        .map(|line| ((text(&line["collection"]), text(&line["key"])), record(line)))
        .collect()
}

fn balance(records: &BTreeMap<(String, String), Value>, number: usize) -> i64 {
    records[&("account".to_owned(), id(number))]["balance"].as_i64().unwrap()
}

/// What the log has told of records since a position.
fn follow(server: &TestServer, mut from: String, copy: &mut BTreeMap<(String, String), Value>) {
    loop {
        let page = server.get(&format!("/v1/changes?from={from}&limit=1000")).expect(200);
        let changes = page["commits"].as_array().unwrap().iter();
        for change in changes.flat_map(|commit| commit["changes"].as_array().unwrap()) {
            let collection = change["collection"].as_str().unwrap().to_owned();
            let key = change["stored_at"].as_str().unwrap();
            let name = key.strip_prefix("account:").or(key.strip_prefix("user:")).unwrap();
            copy.insert((collection, name.to_owned()), change["record"].clone());
        }
        page["next"].as_str().unwrap().clone_into(&mut from);
        if page["is_end"] == true {
            return;
        }
    }
}

#[test]
fn an_export_of_a_running_store_keeps_a_sum_and_the_log_goes_on_from_it() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["memory:".to_owned(), format!("file:{}", folder.path().display())] {
        let server = filled(TestServer::on(&address, SCHEMA, Config::default()));
        let mut copies = Vec::new();
        while_money_moves(&server, || {
            for _ in 0..8 {
                let export = server.get("/v1/admin/export");
                assert_eq!(export.header("keyloom-consistency"), Some("snapshot"));
                let copy = records(&lines(&export));
                let moved = balance(&copy, BETWEEN + 1);
                assert_eq!(balance(&copy, 0) + moved, TOTAL, "{address}");
                let note = &copy[&("note".to_owned(), "ana:notes:sum".to_owned())];
                assert_eq!(note["moved"], moved, "{address}: another collection, another moment");
                let position = export.header("keyloom-log-position").unwrap().to_owned();
                copies.push((copy, position));
            }
        });
        let last = records(&lines(&server.get("/v1/admin/export")));
        for (mut copy, position) in copies {
            follow(&server, position, &mut copy);
            assert_eq!(copy, last, "{address}");
        }
    }
}

#[test]
fn one_export_has_the_collections_that_are_named_in_their_order() {
    let server = filled(TestServer::start(SCHEMA));
    let named = |query: &str| {
        let mut names: Vec<String> = lines(&server.get(&format!("/v1/admin/export{query}")))
            .iter()
            .map(|line| line["collection"].as_str().unwrap().to_owned())
            .collect();
        names.dedup();
        names
    };
    assert_eq!(named("?collection=note&collection=account"), ["note", "account"]);
    assert_eq!(named("?collection=account"), ["account"]);
    // After a key of the first, and all of the second.
    let rest = lines(&server.get(&format!(
        "/v1/admin/export?collection=account&collection=note&after={}",
        id(BETWEEN)
    )));
    assert_eq!(
        rest.iter().map(|line| line["key"].as_str().unwrap()).collect::<Vec<_>>(),
        [&id(BETWEEN + 1)[..], "ana:notes:sum"]
    );
    let twice = server.get("/v1/admin/export?collection=note&collection=note").expect(400);
    assert!(twice["detail"].as_str().unwrap().contains("named twice"), "{twice}");
    server.get("/v1/admin/export?collection=note&collection=nobody").expect(404);
}

/// An engine that cannot hold a moment says that the export is none.
#[test]
fn an_export_that_is_of_no_moment_says_so() {
    let torn = Arc::new(Torn::new(Arc::new(Memory::new()), 1));
    let server = TestServer::on_engine(torn, &SCHEMA.replace("[log]", ""));
    let server = filled(server);
    let export = server.get("/v1/admin/export");
    assert_eq!(lines(&export).len(), BETWEEN + 3);
    assert_eq!(export.header("keyloom-consistency"), Some("walk"));
    assert_eq!(export.header("keyloom-log-position"), None);
    let server = filled(TestServer::start(&SCHEMA.replace("[log]", "")));
    let export = server.get("/v1/admin/export");
    assert_eq!(export.header("keyloom-consistency"), Some("snapshot"));
    assert_eq!(export.header("keyloom-log-position"), None, "there is no log");
}

#[test]
fn moments_are_held_by_a_few_and_not_for_ever() {
    let limited = |moments_max, moment_timeout| {
        let limits = Limits { moments_max, moment_timeout, ..Limits::default() };
        filled(TestServer::with(SCHEMA, Config { limits, ..Config::default() }))
    };
    let server = limited(0, Duration::from_secs(60));
    let refused = server.get("/v1/admin/export").expect(503);
    assert!(refused["detail"].as_str().unwrap().contains("0 exports and backups"), "{refused}");
    let server = limited(1, Duration::ZERO);
    let answer = std::panic::catch_unwind(AssertUnwindSafe(|| server.get("/v1/admin/export")));
    assert!(answer.is_err(), "an export that breaks off breaks its connection");
    // The place is free again.
    let server = limited(1, Duration::from_secs(60));
    for _ in 0..3 {
        assert_eq!(lines(&server.get("/v1/admin/export")).len(), BETWEEN + 3);
    }
}
