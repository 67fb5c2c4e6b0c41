//! `keyloom import` and `keyloom export`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};

use super::support::Sandbox;

fn notes(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let line = format!(r#"{{"userId":"ana","noteId":"n{number:05}","text":"note {number}"}}"#);
        writeln!(text, "{line}").unwrap();
        text
    })
}

#[test]
fn what_is_exported_is_imported_as_it_was() {
    let from = Sandbox::empty();
    from.run(&["demo", "--no-serve", "--records", "300", "--store", "file:./keyloom-data"])
        .expect(0);
    let exported = from.run(&["export"]).expect(0);
    let to = Sandbox::empty();
    to.write("schema.json", from.run(&["schema", "--json"]).expect(0).out);
    to.run(&["schema", "--apply", "schema.json"]).expect(0);
    let done = to.run_with(&["import", "-"], &[], &exported.out).expect(0).value();
    assert_eq!(done["written"], exported.lines().len());
    let records = |sandbox: &Sandbox| {
        let lines = sandbox.run(&["export"]).expect(0).lines();
        lines
            .into_iter()
            .map(|mut line| {
                line.as_object_mut().unwrap().remove("version");
                line
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(records(&from), records(&to));
    to.run(&["verify"]).expect(0);
    // Again, nothing changes.
    to.run_with(&["import", "-"], &[], &exported.out).expect(0);
    assert_eq!(records(&from), records(&to));
}

#[test]
fn a_collection_that_is_not_there_is_told_before_any_line() {
    let sandbox = Sandbox::with_store();
    sandbox.write("empty.jsonl", "");
    let ran = sandbox.run(&["import", "empty.jsonl", "--collection", "nothing"]).expect(1);
    assert!(
        ran.err.contains("the collections are approval, flow, issue, note, place"),
        "{}",
        ran.err
    );
    let done = sandbox.run(&["import", "empty.jsonl", "--collection", "note"]).expect(0).value();
    assert_eq!(done, serde_json::json!({ "written": 0, "failed": 0 }));
    let progress = "empty.jsonl.progress.json";
    assert_eq!(sandbox.names(), ["empty.jsonl", progress, "keyloom-data", "keyloom.toml"]);
}

#[test]
fn what_is_wrong_with_the_json_of_a_line_has_one_line_and_a_column() {
    let sandbox = Sandbox::with_store();
    sandbox.write("notes.jsonl", b"\n\xef\xbb\xbf{}\n{\"a\":\n");
    let ran = sandbox.run(&["import", "notes.jsonl", "--collection", "note"]).expect(3);
    assert!(ran.err.contains("line 2: the text cannot be taken as JSON; column: 1; reason: it begins with a byte order mark"), "{}", ran.err);
    assert!(
        ran.err.contains("line 3: the text cannot be taken as JSON; column: 5; "),
        "{}",
        ran.err
    );
}

#[test]
fn lines_that_fail_are_told_by_their_numbers_and_do_not_stop_the_others() {
    let sandbox = Sandbox::with_store();
    let mut text = notes(2500);
    text.insert_str(0, "not json\n");
    text.push_str("{\"userId\":7,\"noteId\":\"x\"}\n\n{\"userId\":\"ana\"}\n");
    sandbox.write("notes.jsonl", &text);
    let ran = sandbox.run(&["import", "notes.jsonl", "--collection", "note"]).expect(3);
    assert_eq!(ran.value(), serde_json::json!({ "written": 2500, "failed": 3 }));
    let report = sandbox.read("notes.jsonl.errors.jsonl");
    let lines: Vec<u64> = report
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["line"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(lines, [1, 2502, 2504]);
    assert!(
        ran.err.contains("line 2502: ") && ran.err.contains("notes.jsonl.errors.jsonl"),
        "{}",
        ran.err
    );
    // A second import says nothing of what failed in the first.
    sandbox.write("notes.jsonl", notes(3));
    sandbox.run(&["import", "notes.jsonl", "--collection", "note"]).expect(0);
    assert!(!sandbox.names().contains(&"notes.jsonl.errors.jsonl".to_owned()));
}

/// A page of the server has at most a thousand records; whoever wants more need not know.
#[test]
fn as_many_records_are_listed_as_were_asked_for() {
    let sandbox = Sandbox::with_store();
    sandbox.write("notes.jsonl", notes(1300));
    sandbox.run(&["import", "notes.jsonl", "--collection", "note"]).expect(0);
    let listed = |more: &[&str]| sandbox.run(&[&["query", "note", "--scan"], more].concat());
    let some = listed(&["--limit", "1200"]).expect(0);
    assert_eq!(some.lines().len(), 1200);
    let cursor = some.err.split("--cursor ").nth(1).unwrap().trim();
    assert_eq!(listed(&["--limit", "1200", "--cursor", cursor]).expect(0).lines().len(), 100);
    assert_eq!(listed(&["--all", "--limit", "1250"]).expect(0).lines().len(), 1250);
    assert_eq!(listed(&["--all"]).expect(0).lines().len(), 1300);
}

/// The command speaks of its options, and not of the parameters of a request.
#[test]
fn bare_records_without_a_collection_are_told_which_option_they_need() {
    let sandbox = Sandbox::with_store();
    sandbox.write("notes.jsonl", notes(1));
    let ran = sandbox.run(&["import", "notes.jsonl"]).expect(3);
    assert!(ran.err.contains("hint: bare records need --collection NAME"), "{}", ran.err);
    assert!(!ran.err.contains('?'), "{}", ran.err);
}

#[test]
fn an_export_that_broke_off_is_resumed() {
    let sandbox = Sandbox::with_store();
    sandbox.write("notes.jsonl", notes(300));
    sandbox.run(&["import", "notes.jsonl", "--collection", "note"]).expect(0);
    sandbox.run(&["put", "flow", "daily", "{}"]).expect(0);
    let whole = sandbox.run(&["export"]).expect(0).out;
    for cut in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 5, whole.len()] {
        sandbox.write("backup.jsonl", &whole[..cut]);
        sandbox.run(&["export", "--output", "backup.jsonl", "--resume"]).expect(0);
        assert_eq!(sandbox.read("backup.jsonl"), whole, "cut at {cut}");
    }
    sandbox.write("backup.jsonl", "something else\n");
    sandbox.run(&["export", "--output", "backup.jsonl", "--resume"]).expect(3);
    assert_eq!(sandbox.read("backup.jsonl"), "something else\n");
}

#[test]
fn a_reader_that_goes_away_ends_an_export_quietly() {
    let sandbox = Sandbox::with_store();
    sandbox.write("notes.jsonl", notes(3000));
    sandbox.run(&["import", "notes.jsonl", "--collection", "note"]).expect(0);
    let mut command = sandbox.command(&["export"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
