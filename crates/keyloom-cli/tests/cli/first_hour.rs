//! What goes wrong in the first hour, and how it is told.

use serde_json::Value;

use super::support::{Ran, SCHEMA, Sandbox, words};

#[test]
fn a_locked_folder_names_the_server_that_holds_it() {
    let sandbox = Sandbox::with_store();
    let server = sandbox.serve(&[]);
    for store in [&[][..], &["--store", "./keyloom-data"]] {
        let refused = sandbox.run(&[&["get", "flow", "a"], store].concat()).expect(5);
        let hint = format!("ask the server that holds it: --server {}\n", server.url);
        assert!(refused.err.contains(&hint), "{}", refused.err);
        assert!(refused.err.contains("held by process: "), "{}", refused.err);
    }
    sandbox.run(&["put", "flow", "a", "{}", "--server", &server.url]).expect(0);
    // A server that was killed holds nothing, so that nobody is sent to it.
    server.kill();
    sandbox.run(&["get", "flow", "a"]).expect(0);
    let lock = sandbox.read("keyloom-data/LOCK");
    assert!(!lock.contains("address"), "{lock}");
}

#[test]
fn to_look_into_an_empty_folder_makes_no_store() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.path("bare")).unwrap();
    let refused = sandbox.run(&["query", "flow", "--store", "./bare"]).expect(5);
    assert!(refused.err.contains("there is no store at ./bare"), "{}", refused.err);
    assert_eq!(std::fs::read_dir(sandbox.path("bare")).unwrap().count(), 0);
}

/// The failure that a command tells as JSON.
fn failure(ran: &Ran) -> Value {
    let last = ran.err.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {:?}", ran.err))
}

/// Commands that fail, the type of the problem, and the exit code.
const FAILING: &[(&str, &str, i32)] = &[
    ("get flow absent", "not-found", 1),
    ("get nothing absent", "not-found", 1),
    ("history approval 00000000000000000000000009 --at", "about:blank", 2),
    ("get approval short", "invalid-key", 3),
    ("query issue number=many", "invalid-request", 3),
    ("query issue tags=bug", "invalid-query", 3),
    ("query issue title=x", "no-index", 3),
    ("query issue --cursor x", "invalid-cursor", 3),
    ("count approval --limit 1", "limit-exceeded", 3),
    ("put approval {\"status\":1}", "invalid-record", 3),
    ("put approval {\"id\":\"00000000000000000000000001\"}", "already-exists", 4),
    ("put approval {\"code\":\"A-AAAAAA\"}", "unique-conflict", 4),
    (
        "patch approval 00000000000000000000000001 {} --if-match 0199c0e2a1b27f3c00000000000000aa-1",
        "version-conflict",
        4,
    ),
    ("put approval 00000000000000000000000001 {} --if-absent", "precondition-failed", 4),
    ("patch approval 00000000000000000000000003 {\"status\":\"pending\"}", "illegal-transition", 4),
    ("increment flow a stats.x=-1", "out-of-bounds", 4),
    ("build approval nothing", "invalid-argument", 3),
    ("put flow a {", "about:blank", 3),
    ("query issue --limit 0", "about:blank", 2),
];

const RECORDS: &[&str] = &[
    "put approval {\"id\":\"00000000000000000000000001\",\"code\":\"A-AAAAAA\",\"status\":\"pending\"}",
    "put approval {\"id\":\"00000000000000000000000003\",\"status\":\"denied\"}",
    "put flow a {}",
];

#[test]
fn failures_are_the_same_problems_on_a_folder_and_against_a_server() {
    let folder = Sandbox::with_store();
    let remote = Sandbox::empty();
    remote.write("keyloom.toml", SCHEMA);
    let server = remote.serve(&["--store", "memory:"]);
    let on_folder = |line: &str| {
        let args = words(line);
        folder.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let on_server = |line: &str| {
        let args = words(line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        remote.run(&[&args[..], &["--server", &server.url]].concat())
    };
    for line in RECORDS {
        on_folder(line).expect(0);
        on_server(line).expect(0);
    }
    let mut faults = Vec::new();
    for (line, kind, code) in FAILING {
        let line = format!("{line} --json");
        let (here, there) = (on_folder(&line), on_server(&line));
        let (told, told_there) = (failure(&here), failure(&there));
        let is_right = told["type"].as_str().is_some_and(|it| it.ends_with(kind))
            && here.code == *code
            && told["exit_code"] == *code
            && told["detail"].as_str().is_some_and(|detail| !detail.is_empty());
        if !is_right || here.code != there.code || told["type"] != told_there["type"] {
            faults.push(format!("{line}: {} {told}\n  {} {told_there}", here.code, there.code));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn hints_name_what_they_are_about() {
    let sandbox = Sandbox::with_store();
    let insert = ["put", "approval", r#"{"id":"00000000000000000000000001","code":"A-AAAAAA"}"#];
    sandbox.run(&insert).expect(0);
    let taken = sandbox.run(&["put", "approval", r#"{"code":"A-AAAAAA"}"#]).expect(4);
    let hint = "keyloom get approval 00000000000000000000000001";
    assert!(taken.err.contains(hint), "{}", taken.err);
    let there = sandbox.run(&insert).expect(4);
    assert!(there.err.contains("keyloom put approval KEY RECORD"), "{}", there.err);
    // An index over records that are there is not ready before it is built.
    let later = "[collection.approval.index.status]\nkey = \"approval:status:{status}:{id}\"\n";
    sandbox.write("keyloom.toml", format!("{SCHEMA}\n{later}"));
    sandbox.run(&["schema", "--apply", "keyloom.toml"]).expect(0);
    let waiting = sandbox.run(&["query", "approval", "status=pending"]).expect(5);
    assert!(waiting.err.contains("keyloom build approval status\n"), "{}", waiting.err);
    sandbox.run(&["build", "approval", "status"]).expect(0);
    sandbox.run(&["query", "approval", "status=pending"]).expect(0);
}

#[test]
fn times_are_for_people_in_tables_of_every_width() {
    let sandbox = Sandbox::with_store();
    let issue = r#"{"project":"web","number":5,"opened":1700000000000,"title":"first"}"#;
    sandbox.run(&["put", "issue", issue]).expect(0);
    for width in ["20", "40", "200"] {
        let variables = [("COLUMNS", width)];
        let table = sandbox.run_with(&["query", "issue", "--table"], &variables, "").expect(0).out;
        assert!(table.contains("2023"), "{width}: {table}");
        assert!(!table.contains("17000"), "{width}: {table}");
    }
    let line = sandbox.run(&["query", "issue"]).expect(0).value();
    assert_eq!(line["record"]["opened"], 1_700_000_000_000_i64);
}
