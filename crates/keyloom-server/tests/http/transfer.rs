//! Import and export: JSON lines in and out.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{Address, Area, Batch, Effect, Memory, Metered, Space, Stamp};
use keyloom_server::{Config, Limits};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::TestServer;
use crate::transaction::{SCHEMA, account, id};

fn export(server: &TestServer, query: &str) -> String {
    let answer = server.get(&format!("/v1/admin/export{query}"));
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

fn import(server: &TestServer, query: &str, lines: impl Into<Vec<u8>>) -> Value {
    server.send("POST", &format!("/v1/admin/import{query}"), &[], lines).expect(200)
}

fn lines(export: &str) -> Vec<Value> {
    export.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What an export says of records, whatever their versions are.
fn records(export: &str) -> Vec<Value> {
    let mut lines = lines(export);
    lines.iter_mut().for_each(|line| drop(line.as_object_mut().unwrap().remove("version")));
    lines
}

/// A server with accounts, notes and counters.
fn filled() -> TestServer {
    filled_on(TestServer::start(SCHEMA))
}

fn filled_on(server: TestServer) -> TestServer {
    let mut operations = Vec::new();
    for n in 0..150 {
        operations
            .push(json!({"op": "insert", "collection": "account", "record": account(n, n as i64)}));
        operations.push(json!({"op": "increment", "collection": "account", "key": id(n), "add": {"stats.moves": n as i64 - 20}}));
        operations.push(json!({"op": "put", "collection": "note", "key": format!("u{}:notes:n{n}", n % 7), "record": {"text": "a\nb \u{2028} \"c\""}}));
    }
    server.json("POST", "/v1/batch", &json!({"operations": operations})).expect(200);
    server
}

fn is_clean(server: &TestServer) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(server.store.verify()).unwrap().is_clean()
}

#[test]
fn a_store_goes_through_export_and_import_unchanged() {
    let server = filled();
    let exported = export(&server, "");
    assert_eq!(exported.lines().count(), 300);
    let keys: Vec<Value> =
        lines(&exported).iter().map(|line| json!([line["collection"], line["key"]])).collect();
    let mut sorted = keys.clone();
    sorted.sort_by_key(Value::to_string);
    assert_eq!(keys, sorted);
    let other = TestServer::start(SCHEMA);
    let report = import(&other, "", exported.clone());
    assert_eq!(report, json!({"lines": 300, "written": 300, "errors": [], "errors_count": 0}));
    assert_eq!(records(&export(&other, "")), records(&exported));
    assert!(is_clean(&other));
    // Once more as puts: nothing changes, not even versions.
    let before = export(&other, "");
    assert_eq!(import(&other, "?mode=put", exported.clone())["written"], 300);
    assert_eq!(export(&other, ""), before);
    // Once more as inserts: every line is told.
    let report = import(&other, "", exported);
    assert_eq!((&report["written"], &report["errors_count"]), (&json!(0), &json!(300)));
    assert_eq!(report["errors"][299]["line"], 300);
    assert_eq!(report["errors"][299]["problem"]["type"], "/problems/already-exists");
}

#[test]
fn exports_go_on_behind_a_key() {
    let server = filled();
    let all = export(&server, "?collection=note");
    let all: Vec<&str> = all.lines().collect();
    for place in [0, 1, 70, 148, 149] {
        let key =
            serde_json::from_str::<Value>(all[place]).unwrap()["key"].as_str().unwrap().to_owned();
        let key = key.replace(':', "%3A");
        let rest = export(&server, &format!("?collection=note&after={key}"));
        assert_eq!(rest.lines().collect::<Vec<_>>(), all[place + 1..], "{place}");
    }
    server.get("/v1/admin/export?after=x").expect(400);
    server.get("/v1/admin/export?collection=note&after=x").expect(400);
    server.get("/v1/admin/export?collection=nobody").expect(404);
}

#[test]
fn an_export_that_goes_on_near_the_end_costs_what_it_returns() {
    let metered = Metered::new(Arc::new(Memory::new()));
    let server = filled_on(TestServer::on_engine(Arc::new(metered.clone()), SCHEMA));
    let all = lines(&export(&server, "?collection=note"));
    assert_eq!(all.len(), 150);
    let cost = |query: &str| {
        metered.take();
        (export(&server, query).lines().count(), metered.take().cells_read)
    };
    let (_, whole) = cost("?collection=note");
    let key = all[147]["key"].as_str().unwrap().replace(':', "%3A");
    let (count, rest) = cost(&format!("?collection=note&after={key}"));
    assert_eq!(count, 2);
    // Two records and the epoch, and before them the schema of the moment.
    assert!(whole >= 150 && rest <= 5, "{whole} {rest}");
}

#[test]
fn an_export_goes_on_behind_a_record_that_cannot_be_read() {
    let server = filled();
    let key = format!("account:{}", id(70));
    let mut batch = Batch::new(Space::main());
    let effect = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "no JSON".into() };
    batch.push(Address::new(Area::default_area(), key), None, Some(effect));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.engine().commit(batch)).unwrap();
    let all = lines(&export(&server, "?collection=account"));
    let broken = all.iter().position(|line| line.get("problem").is_some()).unwrap();
    assert_eq!(all[broken]["key"], id(70));
    let rest = lines(&export(&server, &format!("?collection=account&after={}", id(70))));
    assert_eq!(rest, all[broken + 1..]);
}

#[test]
fn bare_records_are_imported_into_the_named_collection() {
    let server = TestServer::start(SCHEMA);
    let text = format!("{}\r\n\n  \n{{\"code\": \"generated\"}}", account(1, 1));
    let report = import(&server, "?collection=account", text);
    assert_eq!((&report["lines"], &report["written"]), (&json!(4), &json!(2)));
    assert_eq!(export(&server, "").lines().count(), 2);
    // The lines of an export of the collection are taken as well.
    let exported = export(&server, "?collection=account");
    assert_eq!(import(&server, "?collection=account&mode=put", exported)["written"], 2);
}

#[test]
fn hostile_lines_are_told_with_their_numbers_and_the_rest_is_written() {
    let limits = Limits { line_bytes_max: 500, ..Limits::default() };
    let server = TestServer::with(SCHEMA, Config { limits, ..Config::default() });
    let line = |n: usize| {
        json!({"collection": "account", "key": id(n), "version": "x", "record": account(n, 0)})
            .to_string()
    };
    let hostile: Vec<(String, &str)> = vec![
        ("{".to_owned(), "invalid-argument"),
        (format!("{{\"code\":\"{}\"}}", "x".repeat(600)), "limit-exceeded"),
        ("x".repeat(100_000), "limit-exceeded"),
        (
            r#"{"collection":"account","collection":"note","record":{}}"#.to_owned(),
            "invalid-argument",
        ),
        (r#"{"collection":"nobody","record":{}}"#.to_owned(), "not-found"),
        (r#"{"collection":"account","record":[]}"#.to_owned(), "invalid-request"),
        (
            r#"{"collection":"account","record":{"code":18446744073709551616}}"#.to_owned(),
            "invalid-argument",
        ),
        (r#"{"collection":"account","record":{"code":5}}"#.to_owned(), "invalid-record"),
        (r#"{"collection":"account","key":"short","record":{}}"#.to_owned(), "invalid-key"),
        (
            json!({"collection": "account", "key": id(1), "record": account(2, 0)}).to_string(),
            "invalid-record",
        ),
        (
            r#"{"collection":"account","key":"k","problem":"it is broken"}"#.to_owned(),
            "invalid-request",
        ),
        (
            json!({"collection": "account", "record": {"code": "y", "stats": {"moves": "many"}}})
                .to_string(),
            "invalid-record",
        ),
        ("[1,2]".to_owned(), "invalid-request"),
        ("\u{feff}{}".to_owned(), "invalid-argument"),
        ("nul\0l".to_owned(), "invalid-argument"),
    ];
    let mut text = String::new();
    for (n, (bad, _)) in hostile.iter().enumerate() {
        text.push_str(&format!("{}\n{bad}\n", line(n)));
    }
    let report = import(&server, "", text);
    assert_eq!(report["written"], hostile.len(), "{report:#}");
    let errors = report["errors"].as_array().unwrap();
    assert_eq!(errors.len(), hostile.len());
    for (n, ((bad, kind), error)) in hostile.iter().zip(errors).enumerate() {
        assert_eq!(error["line"], 2 * n + 2);
        let shown = &bad[..bad.len().min(80)];
        assert_eq!(error["problem"]["type"], format!("/problems/{kind}"), "{shown}: {error}");
    }
    let wrong = import(&server, "?collection=note", line(100));
    assert_eq!(wrong["errors"][0]["problem"]["type"], "/problems/invalid-request");
    assert!(is_clean(&server));
    for query in ["?mode=upsert", "?from_line=x", "?colour=red", "?mode=put&mode=put"] {
        server.send("POST", &format!("/v1/admin/import{query}"), &[], "").expect(400);
    }
    server.send("POST", "/v1/admin/import?collection=nobody", &[], "").expect(404);
    server.send("POST", "/v1/admin/import", &[("content-encoding", "gzip")], "").expect(415);
}

#[test]
fn an_import_goes_on_from_a_line_and_counts_what_it_does_not_tell() {
    let server = TestServer::start(SCHEMA);
    let text: String = (0..20).map(|n| format!("{}\n", account(n, 0))).collect();
    let report = import(&server, "?collection=account&from_line=16", text);
    assert_eq!((&report["lines"], &report["written"]), (&json!(20), &json!(5)));
    let first = &lines(&export(&server, ""))[0];
    assert_eq!(first["key"], id(15));
    let report = import(&server, "?collection=account", "x\n".repeat(1_500));
    assert_eq!(report["errors_count"], 1_500);
    assert_eq!(report["errors"].as_array().unwrap().len(), 1_000);
    assert_eq!(report["errors"][999]["line"], 1_000);
}

/// Lines of one record are written in their order, and values pass from record to record.
#[test]
fn later_lines_win() {
    // In a folder commits take their time, so that lines are written side by side.
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().display());
    let server = TestServer::on(&address, SCHEMA, Config::default());
    let mut text = String::new();
    for step in 0..100 {
        for n in 0..3 {
            let record = json!({"id": id(n), "code": format!("s{step}-{n}"), "step": step});
            text.push_str(&format!("{record}\n"));
        }
    }
    let report = import(&server, "?collection=account&mode=put", text);
    assert_eq!(report["written"], 300, "{report}");
    assert!(lines(&export(&server, "")).iter().all(|line| line["record"]["step"] == 99));
    let moved = [json!({"id": id(0), "code": "free"}), json!({"id": id(1), "code": "s99-0"})];
    let moved = moved.map(|record| record.to_string()).join("\n");
    assert_eq!(import(&server, "?collection=account&mode=put", moved)["written"], 2);
    assert!(is_clean(&server));
}

/// A line that comes too soon is written again, and still before the later lines of its record.
#[test]
fn later_lines_win_over_one_that_had_to_wait() {
    const PAIRS: usize = 40;
    // In a folder commits take their time, so that lines are written side by side.
    let folder = tempfile::tempdir().unwrap();
    let address = format!("file:{}", folder.path().display());
    let server = TestServer::on(&address, SCHEMA, Config::default());
    let line = |n: usize, code: String| json!({"id": id(n), "code": code}).to_string();
    let held: Vec<String> = (0..PAIRS).map(|n| line(n, format!("held{n}"))).collect();
    import(&server, "?collection=account", held.join("\n"));
    // The first claims what the second gives up; the third is the last word about its record.
    let three = |n: usize| {
        let other = PAIRS + n;
        let claim = line(other, format!("held{n}"));
        [claim, line(n, format!("new{n}")), line(other, format!("last{n}"))].join("\n")
    };
    let text: Vec<String> = (0..PAIRS).map(three).collect();
    let report = import(&server, "?collection=account&mode=put", text.join("\n"));
    assert_eq!((&report["written"], &report["errors_count"]), (&json!(3 * PAIRS), &json!(0)));
    for n in 0..PAIRS {
        let path = format!("/v1/collections/account/records/{}", id(PAIRS + n));
        assert_eq!(server.get(&path).expect(200)["code"], format!("last{n}"));
    }
    assert!(is_clean(&server));
}

#[test]
fn an_import_with_a_key_happens_once() {
    let server = TestServer::start(SCHEMA);
    let text: String = (0..10).map(|n| format!("{{\"code\": \"c{n}\"}}\n")).collect();
    let path = "/v1/admin/import?collection=account";
    for _ in 0..3 {
        let report =
            server.send("POST", path, &[("idempotency-key", "i")], text.clone()).expect(200);
        assert_eq!(report["written"], 10, "{report}");
    }
    assert_eq!(export(&server, "").lines().count(), 10);
    let other =
        server.send("POST", path, &[("idempotency-key", "i")], text.replace('c', "d")).expect(200);
    assert_eq!(other["written"], 0);
}

#[test]
fn a_broken_connection_leaves_whole_records() {
    let server = TestServer::start(SCHEMA);
    let mut socket = TcpStream::connect(server.address).unwrap();
    let text: String = (0..500).map(|n| format!("{}\n", account(n, 0))).collect();
    let cut = text.len() - 20;
    write!(
        socket,
        "POST /v1/admin/import?collection=account HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
        server.address,
        text.len()
    )
    .unwrap();
    socket.write_all(&text.as_bytes()[..cut]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    // The server may answer that the body broke off, or just close.
    drop(socket.read_to_string(&mut answer));
    drop(socket);
    let exported = export(&server, "");
    let found = lines(&exported);
    assert!(found.len() < 500, "{}", found.len());
    assert!(found.iter().all(|line| line["record"]["balance"] == 0));
    assert!(is_clean(&server));
    // What was written is a beginning; the import goes on from there.
    assert_eq!(import(&server, "?collection=account&mode=put", text)["written"], 500);
    assert_eq!(export(&server, "").lines().count(), 500);
}

#[test]
fn records_that_cannot_be_read_are_told_in_their_place() {
    use keyloom::engine::{Address, Area, Batch, Effect, Space, Stamp};
    let server = TestServer::start(SCHEMA);
    let text: String = (0..3).map(|n| format!("{}\n", account(n, 0))).collect();
    import(&server, "?collection=account", text);
    let mut batch = Batch::new(Space::main());
    let key = format!("account:{}", id(1));
    let put = Effect::Put { stamp: Stamp([1; Stamp::BYTES]), bytes: "{\"broken\n".into() };
    batch.push(Address::new(Area::default_area(), key), None, Some(put));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(server.store.engine().commit(batch)).unwrap();
    let exported = export(&server, "");
    let found = lines(&exported);
    assert_eq!(found.len(), 3);
    assert_eq!(found[1]["key"], id(1));
    assert!(found[1]["problem"].is_string() && found[1].get("record").is_none());
    let other = TestServer::start(SCHEMA);
    let report = import(&other, "", exported);
    assert_eq!((&report["written"], &report["errors"][0]["line"]), (&json!(2), &json!(2)));
}

fn any_record() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        ".{0,12}".prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    });
    (value, -5_i64..5).prop_map(|(data, moves)| json!({"data": data, "moves": moves}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn import_of_export_is_the_store(made in prop::collection::vec(any_record(), 1..12)) {
        let server = TestServer::start(SCHEMA);
        for (n, made) in made.iter().enumerate() {
            let record = json!({"id": id(n), "code": format!("c{n}"), "data": made["data"]});
            let operations = json!({"operations": [
                {"op": "put", "collection": "account", "key": id(n), "record": record},
                {"op": "increment", "collection": "account", "key": id(n), "add": {"stats.moves": made["moves"]}},
            ]});
            server.json("POST", "/v1/transaction", &operations).expect(200);
        }
        let exported = export(&server, "");
        let other = TestServer::start(SCHEMA);
        let report = import(&other, "", exported.clone());
        prop_assert_eq!(&report["written"], made.len(), "{}", report);
        prop_assert_eq!(records(&export(&other, "")), records(&exported));
        prop_assert!(is_clean(&other));
    }
}
