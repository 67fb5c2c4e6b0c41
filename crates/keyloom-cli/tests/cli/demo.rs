//! `keyloom demo`: the first thing that a new user runs.

use super::support::Sandbox;

const STORE: [&str; 2] = ["--store", "file:./demo"];

fn fill(sandbox: &Sandbox, more: &[&str]) -> u64 {
    let ran = sandbox.run(&[&["demo", "--no-serve"], &STORE[..], more].concat()).expect(0);
    ran.value()["records"].as_u64().unwrap()
}

fn ask(sandbox: &Sandbox, args: &[&str]) -> String {
    sandbox.run(&[args, &STORE[..]].concat()).expect(0).out
}

#[test]
fn a_demo_that_is_killed_leaves_a_whole_store() {
    let sandbox = Sandbox::empty();
    let served = sandbox.start(&[
        "demo",
        "--records",
        "300",
        "--store",
        "file:./demo",
        "--listen",
        "127.0.0.1:0",
        "--json",
    ]);
    let asked = ["query", "approval", "requester_id=ana", "--limit", "1", "--server", &served.url];
    assert_eq!(sandbox.run(&asked).expect(0).lines().len(), 1);
    let locked = sandbox.run(&[&["get", "user", "ana"], &STORE[..]].concat()).expect(5);
    assert!(locked.err.contains(&format!("--server {}", served.url)), "{}", locked.err);
    served.kill();
    for space in ["main", "reputation"] {
        let verified = sandbox.run(&[&["verify", "--space", space], &STORE[..]].concat()).expect(0);
        assert_eq!(verified.value()["is_clean"], true, "{}", verified.out);
    }
}

#[test]
fn the_same_seed_gives_the_same_records_and_a_second_run_adds_none() {
    let exported = |seed: &str| {
        let sandbox = Sandbox::empty();
        let args = ["--records", "200", "--seed", seed];
        fill(&sandbox, &args);
        let lines = sandbox.run(&[&["export"], &STORE[..]].concat()).expect(0).lines();
        let count = lines.len();
        fill(&sandbox, &args);
        let again = sandbox.run(&[&["export"], &STORE[..]].concat()).expect(0).lines();
        assert_eq!(again.len(), count);
        again.into_iter().map(|line| line["record"].clone()).collect::<Vec<_>>()
    };
    let first = exported("1");
    assert_eq!(first, exported("1"));
    assert_ne!(first, exported("2"));
}

#[test]
fn what_it_tells_people_to_try_works() {
    let sandbox = Sandbox::empty();
    fill(&sandbox, &[]);
    let newest = ask(
        &sandbox,
        &["query", "approval", "requester_id=ana", "--order", "-created_at", "--limit", "5"],
    );
    assert_eq!(newest.lines().count(), 5);
    let near = ask(&sandbox, &["near", "location", "52.52", "13.405", "--radius", "3km"]);
    assert!(near.lines().count() > 1, "{near}");
    assert!(ask(&sandbox, &["keys", "--tree"]).contains("approval:"));
    let counted = ask(&sandbox, &["count", "run", "flow=daily-report", "status=success"]);
    let flow = ask(&sandbox, &["get", "flow", "daily-report"]);
    let of = |text: &str| serde_json::from_str::<serde_json::Value>(text.trim()).unwrap();
    assert_eq!(of(&counted)["count"], of(&flow)["record"]["stats"]["success"]);
}

#[test]
fn people_are_told_what_there_is() {
    let sandbox = Sandbox::empty();
    let told =
        sandbox.run(&[&["demo", "--no-serve", "--table", "--records", "100"], &STORE[..]].concat());
    for word in ["records in", "approvals", "executions", "flows", "patterns", "reputation"] {
        assert!(told.out.contains(word), "{word}: {}", told.out);
    }
    let ran = sandbox.run(&["demo", "--no-serve"]).expect(2);
    assert!(ran.err.contains("--store"), "{}", ran.err);
}

#[test]
fn a_temporary_store_is_gone_after_the_demo() {
    let sandbox = Sandbox::empty();
    let mut command =
        sandbox.command(&["demo", "--records", "50", "--listen", "127.0.0.1:0", "--json"]);
    // The demo's folder goes where temporary files go.
    std::fs::create_dir(sandbox.path("temporary")).unwrap();
    command.env("TMPDIR", sandbox.path("temporary"));
    let count = || std::fs::read_dir(sandbox.path("temporary")).unwrap().count();
    let served = super::support::started(command);
    assert_eq!(count(), 1);
    let (code, err) = served.stop();
    assert_eq!(code, 0, "{err}");
    assert_eq!(count(), 0, "{err}");
}
