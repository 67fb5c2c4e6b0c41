//! `keyloom get` of the past and of other users, and what tokens that may only write are told.

use serde_json::{Value, json};

use super::support::{SCHEMA, Sandbox};

const POSTS: &str = r#"
[collection.post]
key    = "user:{userId}:posts:{postId}"
access = "hybrid"
owner  = "userId"
[collection.post.fields]
userId = "text"
postId = "text"
"#;

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn a_record_is_read_in_a_version_and_as_it_was_at_a_time() {
    let sandbox = Sandbox::with_store();
    let created = sandbox.run(&["put", "approval", r#"{"requester_id":"ana","step":0}"#]).expect(0);
    let key = text(&created.value()["key"]);
    // Until a version is of a later moment than the first.
    let versions = (1..)
        .map(|step| {
            let patch = json!({ "step": step }).to_string();
            sandbox.run(&["patch", "approval", &key, &patch]).expect(0);
            sandbox.run(&["history", "approval", &key]).expect(0).lines()
        })
        .find(|versions| {
            let at = |version: Option<&Value>| version.and_then(|it| it["at_ms"].as_u64()).unwrap();
            at(versions.first()) > at(versions.last())
        })
        .unwrap();
    let (newest, first) = (versions.first().unwrap(), versions.last().unwrap());
    let get = |more: &[&str]| sandbox.run(&[&["get", "approval", &key], more].concat());
    assert_eq!(get(&[]).expect(0).value()["record"], newest["record"]);
    for version in &versions {
        let read = get(&["--version", &text(&version["version"])]).expect(0);
        assert_eq!(read.value()["record"], version["record"]);
        assert_eq!(read.value()["version"], version["version"]);
    }
    let moment = |version: &Value| version["at_ms"].as_u64().unwrap();
    let at = |version: &Value| get(&["--at", &moment(version).to_string()]).expect(0).value();
    assert_eq!(at(newest)["record"], newest["record"]);
    // Several versions may be of the first moment: the last of them is what it was then.
    let then = versions.iter().find(|version| moment(version) == moment(first)).unwrap();
    assert_eq!(at(first)["record"], then["record"]);
    get(&["--at", &(moment(first) - 1).to_string()]).expect(1);
    sandbox.run(&["delete", "approval", &key]).expect(0);
    get(&[]).expect(1);
    let read = get(&["--version", &text(&first["version"])]).expect(0);
    assert_eq!(read.value()["record"]["step"], 0);
}

#[test]
fn a_record_of_another_user_is_read_by_its_owner_and_name() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", format!("{SCHEMA}{POSTS}"));
    sandbox.run(&["schema", "--apply", "keyloom.toml", "--json"]).expect(0);
    sandbox.run(&["put", "post", "p1", r#"{"text":"hello"}"#, "--act-as", "ana:b"]).expect(0);
    sandbox.run(&["put", "note", "n1", "{}", "--act-as", "ana:b"]).expect(0);
    let read = sandbox.run(&["get", "post", "p1", "--owner", "ana:b", "--act-as", "ben"]).expect(0);
    let (read, record) =
        (read.value(), json!({ "text": "hello", "postId": "p1", "userId": "ana:b" }));
    assert_eq!((&read["record"], &read["owner"]), (&record, &json!("ana:b")));
    sandbox.run(&["get", "post", "p1", "--owner", "ana:b"]).expect(0);
    sandbox.run(&["get", "post", "p1", "--act-as", "ben"]).expect(1);
    sandbox.run(&["get", "note", "n1", "--owner", "ana:b", "--act-as", "ben"]).expect(1);
}

#[test]
fn a_token_that_may_only_write_is_told_versions_and_no_records() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let made = sandbox.run(&[
        "token",
        "new",
        "till",
        "--role",
        "service",
        "--collection",
        "flow",
        "--verb",
        "write",
        "--json",
    ]);
    let made = made.expect(0).value();
    sandbox.write("access.toml", text(&made["entry"]));
    let served = sandbox.serve(&["--access", "access.toml", "--store", "memory:"]);
    let token = text(&made["token"]);
    let run = |args: &[&str]| {
        let args = [args, &["--server", &served.url]].concat();
        sandbox.run_with(&args, &[("KEYLOOM_TOKEN", &token)], "")
    };
    let put = run(&["put", "flow", "daily", r#"{"team":"ops"}"#]).expect(0).value();
    let version = text(&put["version"]);
    assert_eq!(put, json!({ "key": "daily", "version": version, "record": null }));
    let patched = run(&["patch", "flow", "daily", "{\"x\":1}", "--if-match", &version]).expect(0);
    assert!(patched.value()["version"] != put["version"] && !patched.out.contains("ops"));
    let stale = run(&["patch", "flow", "daily", "{\"x\":1}", "--if-match", &version]).expect(4);
    assert!(!stale.err.contains("ops"), "{}", stale.err);
    assert_eq!(
        run(&["increment", "flow", "daily", "stats.runs=+3"]).expect(0).value(),
        Value::Null
    );
    let told = run(&["increment", "flow", "daily", "stats.runs=+3", "--table"]).expect(0);
    assert_eq!(told.out, "added; this token does not see the values\n");
    run(&["get", "flow", "daily"]).expect(7);
}

/// What keeps an index from being built names records: the command that was asked tells, and the
/// log of a server does not.
#[test]
fn a_failed_build_is_told_by_schema_and_not_by_the_log() {
    let sandbox = Sandbox::with_store();
    for key in ["zz-a-zz", "zz-b-zz"] {
        sandbox.run(&["put", "flow", key, r#"{"team":"zz-ops-zz"}"#]).expect(0);
    }
    let wider = "[collection.flow.unique.team]\nkey = \"flow:team:{team}\"\n";
    let fields = SCHEMA.replace("flow = \"text\"", "flow = \"text\"\nteam = \"text\"");
    sandbox.write("wider.toml", fields + wider);
    let mut served = sandbox.serve(&["--schema", "wider.toml"]);
    let heard = served.hear("flow.team could not be built");
    assert!(heard.contains("keyloom schema"), "{heard}");
    let told = sandbox.run(&["schema", "--table", "--server", &served.url]).expect(0);
    assert!(told.err.contains("flow.team failed: ") && told.err.contains("zz-"), "{}", told.err);
    let (_, rest) = served.stop();
    assert!(!heard.contains("zz-") && !rest.contains("zz-"), "{heard}{rest}");
}
