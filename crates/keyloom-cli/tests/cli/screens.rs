//! What a terminal is sent: tables that fit, and never an escape sequence of a record.

use serde_json::json;

use super::support::Sandbox;

/// Clears a screen, sets a title, turns the direction of writing, and hides as a C1 control.
const EVIL: &str = "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\u{9b}31m\u{7f}b\r\nc\td";

fn is_harmless(text: &str) -> bool {
    text.chars().all(|letter| letter == '\n' || !(letter.is_control() || letter == '\u{202e}'))
}

#[test]
fn no_record_sends_escape_codes_to_a_terminal() {
    let sandbox = Sandbox::with_store();
    let record = json!({ "noteId": EVIL, "text": EVIL, EVIL: 1 }).to_string();
    let key =
        sandbox.run(&["put", "note", &record, "--act-as", "ana"]).expect(0).value()["key"].clone();
    let key = key.as_str().unwrap();
    let commands: [&[&str]; 10] = [
        &["query", "note", "--scan"],
        &["get", "note", key, "--act-as", "ana"],
        &["get", "note", EVIL],
        &["entries", "note", key, "--act-as", "ana"],
        &["get", EVIL, EVIL],
        &["keys", "--values"],
        &["keys", "--tree"],
        &["watch", "--once"],
        &["export"],
        &["patch", "note", key, "{}", "--act-as", "ana"],
    ];
    for command in commands {
        for look in ["--table", "--json"] {
            let ran = sandbox.run(&[command, &[look]].concat());
            if command[0] != "export" {
                assert!(is_harmless(&ran.out), "{command:?} {look}: {:?}", ran.out);
            }
            assert!(is_harmless(&ran.err), "{command:?} {look}: {:?}", ran.err);
        }
    }
    // What is made visible is still the same record.
    let got = sandbox.run(&["get", "note", key, "--act-as", "ana"]).expect(0).value();
    assert_eq!(got["record"]["text"], EVIL);
}

#[test]
fn tables_fit_every_width() {
    let sandbox = Sandbox::empty();
    let store = ["--store", "file:./demo"];
    sandbox.run(&[&["demo", "--no-serve", "--records", "100"], &store[..]].concat()).expect(0);
    for width in [1, 10, 23, 24, 40, 80, 200] {
        let columns = width.to_string();
        let query = ["query", "approval", "requester_id=ana", "--table"];
        let ran =
            sandbox.run_with(&[&query[..], &store[..]].concat(), &[("COLUMNS", &columns)], "");
        let ran = ran.expect(0);
        assert!(ran.out.contains("ana"), "{width}: {}", ran.out);
        if width >= 24 {
            let longest = ran.out.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= width, "{width}: {longest}");
        }
    }
}

#[test]
fn a_pipe_gets_json_lines_and_no_colours() {
    let sandbox = Sandbox::with_store();
    sandbox.run(&["put", "flow", "daily", "{}"]).expect(0);
    let ran = sandbox.run(&["query", "flow", "--scan"]).expect(0);
    assert_eq!(ran.lines().len(), 1);
    assert!(!sandbox.run(&["query", "flow", "--scan", "--table"]).expect(0).out.contains('\u{1b}'));
}

#[test]
fn every_subcommand_has_help_with_examples() {
    let sandbox = Sandbox::empty();
    let names = super::guide::subcommands(&sandbox);
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let args: &[&str] =
            if name == "token" { &["token", "new", "--help"] } else { &[&name, "--help"] };
        let help = sandbox.run(args).expect(0).out;
        let has_examples = help.contains("Examples:") || name == "exit-codes";
        assert!(has_examples, "{name}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 120), "{name}: {help}");
    }
    let codes = sandbox.run(&["help", "exit-codes"]).expect(0).out;
    assert!(codes.contains("6  a write may have happened"), "{codes}");
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.run(&["completions", shell]).expect(0).out;
        assert!(script.contains("increment"), "{shell}");
    }
}
