//! `keyloom watch`: changes as they happen.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::support::{SCHEMA, Sandbox};

#[test]
fn changes_come_as_they_happen_and_go_on_after_the_server_was_away() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let served = sandbox.serve(&["--store", "file:./data"]);
    let port = served.url.rsplit(':').next().unwrap().to_owned();
    let args =
        ["watch", "--collection", "flow", "--from", "1", "--count", "3", "--server", &served.url];
    let mut command = sandbox.command(&args);
    let mut watching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let put = |key: &str| {
        sandbox.run(&["put", "flow", key, "{}", "--server", &served.url]).expect(0);
    };
    put("one");
    assert_eq!(next()["changes"][0]["record"]["flow"], "one");
    sandbox.run(&["put", "note", "n1", "{}", "--act-as", "ana", "--server", &served.url]).expect(0);
    put("two");
    assert_eq!(next()["changes"][0]["record"]["flow"], "two");
    let url = served.url.clone();
    served.kill();
    let listen = format!("127.0.0.1:{port}");
    let _again = sandbox.start(&["serve", "--json", "--store", "file:./data", "--listen", &listen]);
    sandbox.run(&["put", "flow", "three", "{}", "--server", &url]).expect(0);
    assert_eq!(next()["changes"][0]["record"]["flow"], "three");
    let output = watching.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("trying again"));
}

/// A log that does not go back to its first position any more is printed from where it begins.
#[test]
fn what_the_log_has_is_printed_although_its_beginning_is_gone() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA.replace("days = 30", "entries = 5"));
    sandbox.run(&["schema", "--apply", "keyloom.toml"]).expect(0);
    // Lines of one record are commits of their own.
    let line = |n: usize| format!("{{\"flow\":\"f{}\",\"n\":{n}}}\n", n % 50);
    let lines: Vec<String> = (0..600).map(line).collect();
    sandbox.write("flows.jsonl", lines.concat());
    sandbox.run(&["import", "flows.jsonl", "--collection", "flow"]).expect(0);
    let gone = sandbox.run(&["watch", "--once", "--from", "1"]).expect(1);
    assert!(gone.err.contains("does not go back"), "{}", gone.err);
    let printed = sandbox.run(&["watch", "--once"]).expect(0);
    let commits = printed.lines();
    assert!((5..600).contains(&commits.len()), "{}", commits.len());
    // The schema was two commits, the beginning of the import one, and that its lines go apart one.
    assert_eq!(commits.last().unwrap()["position"], "604");
    let one = sandbox.run(&["watch", "--once", "--count", "1"]).expect(0);
    assert_eq!(one.lines()[0], commits[0]);
}
