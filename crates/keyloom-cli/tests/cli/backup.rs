//! `keyloom backup` and `keyloom restore`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::support::Sandbox;

/// A folder with a store that has records, counters, a history and a log.
fn filled() -> Sandbox {
    let sandbox = Sandbox::with_store();
    for number in 0..20 {
        let note = format!(r#"{{"userId":"ana","noteId":"n{number}","text":"é {number}"}}"#);
        sandbox.run(&["put", "note", &note]).expect(0);
    }
    sandbox.run(&["put", "flow", r#"{"flow":"daily"}"#]).expect(0);
    sandbox.run(&["increment", "flow", "daily", "stats.running=3"]).expect(0);
    sandbox
}

fn everything(sandbox: &Sandbox, place: &[&str]) -> String {
    let told = |args: &[&str]| sandbox.run(&[args, place].concat()).expect(0).out;
    let keys = told(&["keys", "--all", "--values", "--json"]);
    format!("{}{keys}", told(&["export"]))
}

#[test]
fn a_backup_is_restored_into_another_folder_and_another_space() {
    let sandbox = filled();
    let taken = sandbox.run(&["backup", "monday.keyloom"]).expect(0).value();
    let file = std::fs::read(sandbox.path("monday.keyloom")).unwrap();
    assert_eq!(taken["bytes"], file.len());
    let sum = Command::new("sha256sum").arg(sandbox.path("monday.keyloom")).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert_eq!(taken["sha256"], sum.split(' ').next().unwrap());
    let checked = sandbox.run(&["restore", "monday.keyloom", "--check"]).expect(0).value();
    assert_eq!(checked, taken);
    let before = everything(&sandbox, &[]);
    for place in [&["--store", "file:./restored"][..], &["--space", "other"]] {
        let ran = sandbox.run(&[&["restore", "monday.keyloom"], place].concat()).expect(0);
        assert_eq!(ran.lines()[0], taken, "{}", ran.out);
        assert!(ran.err.contains("everything is whole"), "{}", ran.err);
        assert_eq!(everything(&sandbox, place), before);
        let next = taken["log"]["next"].as_str().unwrap();
        let from = [&["watch", "--from", next, "--once", "--json"], place].concat();
        let patch = [&["patch", "note", "ana:notes:n1", r#"{"text":"x"}"#], place].concat();
        sandbox.run(&patch).expect(0);
        let told = sandbox.run(&from).expect(0).out;
        assert!(told.contains("n1"), "{told}");
    }
}

#[test]
fn a_server_is_backed_up_and_restored_into_while_it_serves() {
    let sandbox = filled();
    let served = sandbox.serve(&[]);
    let server = ["--server", served.url.as_str()];
    sandbox.run(&[&["backup", "live.keyloom"][..], &server].concat()).expect(0);
    let into = [&["restore", "live.keyloom", "--space", "copy"][..], &server].concat();
    sandbox.run(&into).expect(0);
    let copy = [&server[..], &["--space", "copy"]].concat();
    assert_eq!(everything(&sandbox, &copy), everything(&sandbox, &server));
    // The refusal comes although the body is large.
    let refused = sandbox.run(&into).expect(3);
    assert!(refused.err.contains("only an empty space"), "{}", refused.err);
}

#[test]
fn a_file_that_is_there_is_not_overwritten_and_half_a_file_has_another_name() {
    let sandbox = filled();
    sandbox.write("mine", "precious");
    let ran = sandbox.run(&["backup", "mine"]).expect(4);
    assert!(ran.err.contains("mine is there already"), "{}", ran.err);
    assert_eq!(sandbox.read("mine"), "precious");
    sandbox.run(&["backup", "none/monday"]).expect(1);
    sandbox.run(&["backup", "whole"]).expect(0);
    assert_eq!(sandbox.names(), ["keyloom-data", "keyloom.toml", "mine", "whole"]);
    let mode = std::os::unix::fs::MetadataExt::mode(&sandbox.path("whole").metadata().unwrap());
    assert_eq!(mode & 0o777, 0o600, "it holds what the store holds");
}

#[test]
fn backups_go_through_pipes() {
    let sandbox = filled();
    let taken = sandbox.command(&["backup", "-"]).stderr(Stdio::piped()).output().unwrap();
    assert!(taken.status.success());
    let told = String::from_utf8(taken.stderr).unwrap();
    assert!(told.contains("of the space main"), "{told}");
    let mut restore = sandbox.command(&["restore", "-", "--store", "file:./piped"]);
    let mut child = restore.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&taken.stdout).unwrap();
    assert!(child.wait().unwrap().success());
    let piped = ["--store", "file:./piped"];
    assert_eq!(everything(&sandbox, &piped), everything(&sandbox, &[]));
}

#[test]
fn what_is_damaged_is_told_and_writes_nothing() {
    let sandbox = filled();
    sandbox.run(&["backup", "whole"]).expect(0);
    let whole = std::fs::read(sandbox.path("whole")).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    sandbox.write("flipped", &flipped);
    sandbox.write("short", &whole[..whole.len() - 1]);
    sandbox.write("export", sandbox.run(&["export"]).expect(0).out);
    for (name, said) in [
        ("flipped", "a checksum does not hold"),
        ("short", "it breaks off"),
        ("export", "an export"),
        ("keyloom.toml", "this is no backup"),
        ("keyloom-data", "is a folder"),
    ] {
        for args in [&["restore", name, "--check"][..], &["restore", name, "--store", "file:./new"]]
        {
            let ran = sandbox.run(args).expect(3);
            assert!(ran.err.contains(said), "{name}: {}", ran.err);
        }
    }
    sandbox.run(&["restore", "nothing", "--check"]).expect(3);
    assert!(!sandbox.path("new").exists(), "nothing was made");
    let ran = sandbox.run(&["restore", "whole"]).expect(3);
    assert!(ran.err.contains("only an empty space"), "{}", ran.err);
    sandbox.run(&["restore", "whole", "--store", "memory:"]).expect(0);
}

/// Half of a backup comes through a pipe: the folder cannot be used, and the whole one goes on.
#[test]
fn a_restore_that_broke_off_goes_on() {
    let sandbox = filled();
    sandbox.run(&["backup", "whole"]).expect(0);
    let whole = std::fs::read(sandbox.path("whole")).unwrap();
    let new = ["--store", "file:./new"];
    let mut restore = sandbox.command(&[&["restore", "-"], &new[..]].concat());
    restore.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = restore.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&whole[..whole.len() - 20]).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("it breaks off"), "{told}");
    let ran = sandbox.run(&[&["export"], &new[..]].concat()).expect(5);
    assert!(ran.err.contains("restore the same backup again"), "{}", ran.err);
    sandbox.run(&[&["restore", "whole"], &new[..]].concat()).expect(0);
    assert_eq!(everything(&sandbox, &new), everything(&sandbox, &[]));
}

/// Wherever a restore is killed, the folder opens, and the same backup goes on.
#[test]
fn a_restore_that_was_killed_goes_on() {
    let sandbox = filled();
    sandbox.run(&["backup", "whole"]).expect(0);
    let whole = std::fs::read(sandbox.path("whole")).unwrap();
    let before = everything(&sandbox, &[]);
    for part in 1..6 {
        let store = format!("file:./new{part}");
        let new = ["--store", store.as_str()];
        let mut restore = sandbox.command(&[&["restore", "-"], &new[..]].concat());
        let mut child = restore.stdin(Stdio::piped()).spawn().unwrap();
        // The pipe stays open, so that the restore waits for the rest when it is killed.
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&whole[..part * whole.len() / 6]).unwrap();
        let marked = sandbox.path(&format!("new{part}"));
        while !marked.exists() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        sandbox.run(&[&["restore", "whole"], &new[..]].concat()).expect(0);
        assert_eq!(everything(&sandbox, &new), before, "{part}");
    }
}
