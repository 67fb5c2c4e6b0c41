//! `keyloom serve`: from the start to the end.

use std::net::TcpListener;

use super::support::{SCHEMA, Sandbox, repository};

#[test]
fn what_was_acknowledged_is_there_after_a_stop_and_after_a_kill() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let put = |url: &str, key: &str| {
        sandbox.run(&["put", "flow", key, "{}", "--server", url]).expect(0);
    };
    let served = sandbox.serve(&[]);
    assert_eq!(served.told["console"], format!("{}/console/", served.url));
    put(&served.url, "stopped");
    let (code, err) = served.stop();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("schema: collection.approval: is new"), "{err}");
    let served = sandbox.serve(&[]);
    put(&served.url, "killed");
    served.kill();
    for key in ["stopped", "killed"] {
        sandbox.run(&["get", "flow", key]).expect(0);
    }
}

#[test]
fn a_new_index_over_records_is_built_in_the_background() {
    let sandbox = Sandbox::with_store();
    sandbox.run(&["put", "flow", "daily", r#"{"team":"ops"}"#]).expect(0);
    let wider = "[collection.flow.index.team]\nkey = \"flow:team:{team}:{flow}\"\n";
    sandbox.write(
        "wider.toml",
        SCHEMA.replace("flow = \"text\"", "flow = \"text\"\nteam = \"text\"") + wider,
    );
    let served = sandbox.serve(&["--schema", "wider.toml", "--no-build"]);
    let query = ["query", "flow", "team=ops", "--index", "team", "--server"];
    let ran = sandbox.run(&[&query[..], &[&served.url]].concat()).expect(5);
    assert!(ran.err.contains("keyloom build"), "{}", ran.err);
    sandbox.run(&["build", "flow", "team", "--server", &served.url]).expect(0);
    assert_eq!(sandbox.run(&[&query[..], &[&served.url]].concat()).expect(0).lines().len(), 1);
    let (_, err) = served.stop();
    assert!(err.contains("to build: keyloom build flow team"), "{err}");
}

#[test]
fn what_keeps_a_server_from_starting_is_told_with_a_hint() {
    let sandbox = Sandbox::with_store();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = sandbox.run(&["serve", "--listen", &address]).expect(5);
    assert!(ran.err.contains("cannot listen at") && ran.err.contains("hint: "), "{}", ran.err);

    let served = sandbox.serve(&[]);
    let ran = sandbox.run(&["serve", "--listen", "127.0.0.1:0"]).expect(5);
    assert!(ran.err.contains(&format!("--server {}", served.url)), "{}", ran.err);
    drop(served);

    sandbox.write("bad.toml", "[collection.a]\nkye = 1\n");
    let ran = sandbox.run(&["serve", "--schema", "bad.toml"]).expect(3);
    assert!(ran.err.contains("bad.toml:2:1"), "{}", ran.err);

    sandbox.write("other.toml", SCHEMA.replace("flow:stats:{flow}", "flow:{flow}"));
    let ran =
        sandbox.run(&["serve", "--schema", "other.toml", "--listen", "127.0.0.1:0"]).expect(4);
    assert!(ran.err.contains("check --store"), "{}", ran.err);

    for listen in ["nowhere", "127.0.0.1:99999"] {
        sandbox.run(&["serve", "--listen", listen]).expect(2);
    }
    let ran = sandbox.run(&["serve", "--access", "nothing.toml"]).expect(3);
    assert!(ran.err.contains("access file cannot be read"), "{}", ran.err);
}

#[test]
fn limits_are_what_the_options_say() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    sandbox.write("flows.jsonl", "{\"flow\":\"a\"}\n{\"flow\":\"longer-than-it-may-be\"}\n");
    let limits = ["--line-bytes-max", "20", "--page-max", "3", "--head-bytes-max", "2000"];
    let served = sandbox.serve(&[&limits[..], &["--store", "memory:"]].concat());
    let server = ["--server", &served.url];
    let run = |args: &[&str]| sandbox.run(&[args, &server].concat());
    let ran = run(&["import", "flows.jsonl", "--collection", "flow"]).expect(3);
    assert!(ran.err.contains("line 2: the line has more than 20 bytes"), "{}", ran.err);
    let ran = run(&["query", "flow", "--scan", "--limit", "4"]).expect(3);
    assert!(ran.err.contains("1 to 3"), "{}", ran.err);
    let ran = run(&["get", "flow", &"x".repeat(2_000)]);
    assert!(ran.err.contains("more than 2000 bytes"), "{}", ran.err);
}

#[test]
fn tokens_let_in_and_are_never_told() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let made = sandbox.run(&["token", "new", "ops", "--json"]).expect(0).value();
    let reader = [
        "token",
        "new",
        "reader",
        "--role",
        "service",
        "--collection",
        "flow",
        "--verb",
        "read",
        "--json",
    ];
    let reader = sandbox.run(&reader).expect(0).value();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let (token, reader_token) = (text(&made["token"]), text(&reader["token"]));
    sandbox.write("access.toml", text(&made["entry"]) + &text(&reader["entry"]));
    assert!(!sandbox.read("access.toml").contains(&token));
    let served = sandbox.serve(&["--access", "access.toml", "--store", "memory:"]);
    let asked = ["put", "flow", "daily", "{}", "--server", &served.url];
    let refused = sandbox.run(&asked).expect(7);
    assert!(refused.err.contains("KEYLOOM_TOKEN"), "{}", refused.err);
    sandbox.run_with(&asked, &[("KEYLOOM_TOKEN", &token)], "").expect(0);
    let wrong = sandbox.run_with(&asked, &[("KEYLOOM_TOKEN", "klm_wrong")], "").expect(7);
    let reading = sandbox.run_with(&asked, &[("KEYLOOM_TOKEN", &reader_token)], "").expect(7);
    for ran in [wrong, reading] {
        assert!(!ran.err.contains("klm_"), "{}", ran.err);
    }
    let (_, err) = served.stop();
    assert!(!err.contains("klm_"), "{err}");
}

#[test]
fn a_server_for_everyone_without_access_control_is_one_by_decision() {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    for command in ["serve", "demo"] {
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7117"] {
            let ran = sandbox.run(&[command, "--store", "file:./open", "--listen", listen]);
            let ran = ran.expect(2);
            for told in ["--access FILE", "keyloom token new", "--open-to-all"] {
                assert!(ran.err.contains(told), "{command} {listen}: {}", ran.err);
            }
        }
    }
    assert_eq!(sandbox.names(), ["keyloom.toml"], "nothing was opened");
    let ran = sandbox.run(&["serve", "--listen", "0.0.0.0:7117"]).expect(2);
    let guide = std::fs::read_to_string(repository("docs/guide/access.md")).unwrap();
    assert!(guide.contains(&ran.err), "the guide shows something else than {}", ran.err);
    let args = ["serve", "--store", "memory:", "--json", "--listen"];
    let open = sandbox.start(&[&args[..], &["0.0.0.0:0", "--open-to-all"]].concat());
    let (_, err) = open.stop();
    assert!(err.contains("WARNING: access control is off") && err.contains("--host NAME"), "{err}");
    let entry = sandbox.run(&["token", "new", "ops", "--json"]).expect(0).value();
    sandbox.write("access.toml", entry["entry"].as_str().unwrap());
    for more in [&["0.0.0.0:0", "--access", "access.toml"][..], &["127.0.0.1:0"], &["[::1]:0"]] {
        let (_, err) = sandbox.start(&[&args[..], more].concat()).stop();
        assert!(!err.contains("WARNING"), "{err}");
    }
}
