//! An import that is interrupted anywhere, by anything, and resumed: every line is written once.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::proxy::{Fault, Proxy, Then};
use super::support::{Ran, SCHEMA, Sandbox, Served};

const FILE: &str = "approvals.jsonl";
const PROGRESS: &str = "approvals.jsonl.progress.json";
const REPORT: &str = "approvals.jsonl.errors.jsonl";

/// How many lines a batch has.
const BATCH: usize = 1000;

/// How a process ends before its import does.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The connection to the server breaks.
    Cut,
    /// A signal comes.
    Signal(&'static str),
}

const ENDS: [End; 4] = [End::Cut, End::Signal("INT"), End::Signal("KILL"), End::Signal("TERM")];

/// A line whose id and code the store makes: written twice, it would be there twice.
fn good(number: usize) -> Value {
    json!({
        "requester_id": "ana",
        "approver_id": "ben",
        "created_at": 1_700_000_000_000_u64,
        "status": "pending",
        "n": number,
    })
}

/// Lines of which some fail: by themselves, and only when they are written. Gives the text and the
/// numbers of those that fail.
fn lines(count: usize) -> (String, Vec<u64>) {
    let mut failing = Vec::new();
    let mut text = String::new();
    for number in 1..=count {
        let mut line = good(number);
        match number {
            // Two claim one value, in one batch and in two.
            1_500 | 1_600 | 2_700 => line["code"] = "A-AAAAAA".into(),
            700 | 3_050 => line["status"] = "unheard of".into(),
            _ => {}
        }
        let fails = [700, 1_600, 2_700, 3_050].contains(&number);
        failing.extend(fails.then_some(number as u64));
        text.push_str(&format!("{line}\n"));
    }
    (text, failing)
}

/// How often each line is in the store, by its number.
fn written(sandbox: &Sandbox, place: &[&str]) -> BTreeMap<u64, usize> {
    let exported = sandbox.run(&[&["export", "approval"], place].concat()).expect(0);
    let mut written = BTreeMap::new();
    for line in exported.lines() {
        *written.entry(line["record"]["n"].as_u64().unwrap()).or_default() += 1;
    }
    written
}

/// Every line once, but for those that fail, which the report tells once.
fn assert_exact(sandbox: &Sandbox, place: &[&str], last: &Ran, count: usize, failing: &[u64]) {
    let wanted: BTreeMap<u64, usize> =
        (1..=count as u64).filter(|number| !failing.contains(number)).map(|n| (n, 1)).collect();
    let found = written(sandbox, place);
    assert_eq!(found.len(), wanted.len(), "{}{}", last.out, last.err);
    assert!(found == wanted, "some line is there twice");
    assert_eq!(last.value(), json!({ "written": wanted.len(), "failed": failing.len() }));
    let told: Vec<u64> = match failing {
        [] => Vec::new(),
        _ => sandbox
            .read(REPORT)
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["line"].as_u64().unwrap())
            .collect(),
    };
    assert_eq!(told, failing);
}

fn serving() -> (Sandbox, Served) {
    let sandbox = Sandbox::empty();
    sandbox.write("keyloom.toml", SCHEMA);
    let served = sandbox.serve(&["--store", "memory:"]);
    (sandbox, served)
}

fn import(sandbox: &Sandbox, more: &[&str]) -> Child {
    let mut command = sandbox.command(&["import", FILE, "--collection", "approval"]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ran(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Imports until the process is at its request of that number, and ends it there.
fn end_at(
    served: &Served,
    sandbox: &Sandbox,
    mode: &str,
    at: usize,
    fault: Fault,
    end: End,
) -> Ran {
    let then = if matches!(end, End::Cut) { Then::Cut } else { Then::Silence };
    let proxy = Proxy::start(&served.url, at, fault, then);
    let child = import(sandbox, &["--mode", mode, "--resume", "--server", &proxy.url]);
    proxy.wait();
    if let End::Signal(name) = end {
        super::support::signal(&child, name);
    }
    ran(child)
}

/// A process ends before each of its requests has arrived, the next one before the answer to the
/// same request has; in every way that a process ends.
#[test]
fn an_import_over_http_is_exact_wherever_it_ends() {
    for (turn, mode) in ["put", "insert"].into_iter().enumerate() {
        let (sandbox, served) = serving();
        let (text, failing) = lines(3_100);
        sandbox.write(FILE, text);
        let mut ends = ENDS.into_iter().cycle().skip(turn);
        // The beginning has nothing to be resumed, and each batch is begun by whoever resumes.
        for request in 0..5 {
            for fault in [Fault::RequestLost, Fault::AnswerLost] {
                let end = ends.next().unwrap();
                // What the one before sent is sent again first, unless it never began.
                let at = usize::from(request > 0 && fault == Fault::RequestLost);
                let ended = end_at(&served, &sandbox, mode, at, fault, end);
                let code = match end {
                    End::Cut => 6,
                    End::Signal("INT") => 130,
                    End::Signal("TERM") => 143,
                    End::Signal(_) => -1,
                };
                assert_eq!(ended.code, code, "{request} {fault:?} {end:?}: {}", ended.err);
                if request > 0 && code != -1 {
                    let says = "hint: the same command goes on, and writes nothing twice";
                    assert!(ended.err.contains(says), "{}", ended.err);
                }
            }
            // One more end between two: the cycle then meets each batch in another way.
            ends.next();
        }
        let last = ran(import(&sandbox, &["--mode", mode, "--resume", "--server", &served.url]));
        let last = last.expect(3);
        assert_exact(&sandbox, &["--server", &served.url], &last, 3_100, &failing);
    }
}

/// How many lines the progress says are done; `None` before there is any.
fn progress(sandbox: &Sandbox) -> Option<u64> {
    let text = std::fs::read(sandbox.path(PROGRESS)).ok()?;
    serde_json::from_slice::<Value>(&text).unwrap()["done"]["lines"].as_u64()
}

/// A process that holds the folder itself is ended in the middle of each batch.
#[test]
fn an_import_into_a_folder_is_exact_wherever_it_ends() {
    for mode in ["put", "insert"] {
        let sandbox = Sandbox::with_store();
        let (text, failing) = lines(4_100);
        sandbox.write(FILE, text);
        let mut ends = 0;
        let last = loop {
            let before = progress(&sandbox);
            let mut child = import(&sandbox, &["--mode", mode, "--resume"]);
            // It is about to write the next batch when the last one is done.
            while progress(&sandbox) == before && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            if child.try_wait().unwrap().is_none() {
                super::support::signal(&child, ["INT", "KILL", "TERM"][ends % 3]);
                ends += 1;
            }
            let ended = ran(child);
            if let Some(text) = ended.err.lines().find(|line| line.contains("interrupted")) {
                assert!(ended.err.contains("goes on, and writes nothing twice"), "{text}");
            }
            match ended.code {
                130 | 143 | -1 => {}
                _ => break ended.expect(3),
            }
        };
        assert!(ends >= 3, "it was ended {ends} times");
        assert_exact(&sandbox, &[], &last, 4_100, &failing);
        sandbox.run(&["verify"]).expect(0);
    }
}

#[test]
fn resuming_a_finished_import_writes_nothing_and_answers_as_it_did() {
    for mode in ["put", "insert"] {
        let sandbox = Sandbox::with_store();
        let (text, failing) = lines(800);
        sandbox.write(FILE, &text);
        let first = ran(import(&sandbox, &["--mode", mode])).expect(3);
        let state: Value = serde_json::from_str(&sandbox.read(PROGRESS)).unwrap();
        assert_eq!(state["is_finished"], true, "{state:#}");
        assert_eq!(state["source"]["bytes"], text.len());
        assert_eq!(state["source"]["sha256"].as_str().unwrap().len(), 64);
        for _ in 0..2 {
            let again = ran(import(&sandbox, &["--mode", mode, "--resume"])).expect(3);
            assert_eq!(again.out, first.out);
            assert!(again.err.contains("was imported already, at 20"), "{}", again.err);
            assert!(again.err.contains(&format!("all of them are in {REPORT}")), "{}", again.err);
            assert_exact(&sandbox, &[], &again, 800, &failing);
        }
        assert_eq!(serde_json::from_str::<Value>(&sandbox.read(PROGRESS)).unwrap(), state);
        // It says so, and does it: whoever imports a file twice has it twice.
        let twice = ran(import(&sandbox, &["--mode", mode])).expect(3);
        assert!(twice.err.contains("was imported before, at 20"), "{}", twice.err);
        assert!(written(&sandbox, &[]).values().all(|times| *times == 2));
    }
}

/// An import that was cut after its first batch.
fn interrupted() -> (Sandbox, Served) {
    let (sandbox, served) = serving();
    sandbox.write(FILE, lines(2_100).0);
    end_at(&served, &sandbox, "put", 2, Fault::RequestLost, End::Cut).expect(6);
    assert_eq!(progress(&sandbox), Some(BATCH as u64));
    (sandbox, served)
}

#[test]
fn an_interrupted_import_is_not_begun_anew_by_accident() {
    let (sandbox, served) = interrupted();
    let before = sandbox.read(PROGRESS);
    let server = ["--server", &served.url];
    let refused = ran(import(&sandbox, &server)).expect(4);
    assert!(refused.err.contains("was interrupted after line 1000"), "{}", refused.err);
    assert!(refused.err.contains("--resume") && refused.err.contains("--restart"));
    for other in [["--mode", "insert"], ["--space", "other"]] {
        let refused =
            ran(import(&sandbox, &[&server[..], &other, &["--resume"]].concat())).expect(2);
        assert!(refused.err.contains("it was --collection approval --mode put --space main"));
    }
    ran(import(&sandbox, &["--resume", "--restart"])).expect(2);
    assert_eq!(sandbox.read(PROGRESS), before);
    let restarted = ran(import(&sandbox, &[&server[..], &["--restart"]].concat())).expect(3);
    assert_eq!(restarted.value()["failed"], 2);
    assert_eq!(written(&sandbox, &server)[&1], 2);
}

#[test]
fn a_file_that_has_changed_is_not_resumed() {
    let (sandbox, served) = interrupted();
    let resume = ["--server", &served.url, "--resume"];
    let (progress, all) = (sandbox.read(PROGRESS), sandbox.read(FILE));
    let first = all.lines().next().unwrap().len();
    let changes = [
        ("a line in front", format!("{{}}\n{all}")),
        ("a line behind", format!("{all}{{}}\n")),
        ("shorter", all[..all.len() - first].to_owned()),
        ("what is done", all.replacen("ana", "eva", 1)),
        (
            "what comes",
            all[..all.len() - first].to_owned() + &all[all.len() - first..].replace("ana", "eva"),
        ),
        ("empty", String::new()),
    ];
    for (what, changed) in changes {
        sandbox.write(FILE, changed);
        let refused = ran(import(&sandbox, &resume)).expect(3);
        let says = "has changed since it began to be imported: it had ";
        assert!(refused.err.contains(says), "{what}: {}", refused.err);
        assert!(
            refused.err.contains("hint: 1000 lines of what it was are done"),
            "{}",
            refused.err
        );
        assert_eq!(sandbox.read(PROGRESS), progress, "{what}");
    }
    sandbox.write(FILE, &all);
    let last = ran(import(&sandbox, &resume)).expect(3);
    assert_exact(&sandbox, &resume[..2], &last, 2_100, &[700, 1_600]);
    sandbox.write(FILE, format!("{all}{{}}\n"));
    let grown = ran(import(&sandbox, &resume)).expect(3);
    assert!(grown.err.contains("has changed since it was imported"), "{}", grown.err);
}

/// A store that did not take the batch before cannot know whether it took the next one.
#[test]
fn another_store_is_not_taken_for_the_one_that_the_import_began_on() {
    let (sandbox, served) = interrupted();
    let progress = sandbox.read(PROGRESS);
    let (_other_sandbox, other) = serving();
    let refused = ran(import(&sandbox, &["--server", &other.url, "--resume"])).expect(4);
    assert!(refused.err.contains("after line 1000: the store does not keep"), "{}", refused.err);
    let was_on = "hint: the import was at work on http://127.0.0.1:";
    assert!(refused.err.contains(was_on), "{}", refused.err);
    assert_eq!(written(&sandbox, &["--server", &other.url]).len(), 0);
    assert_eq!(sandbox.read(PROGRESS), progress);
    let last = ran(import(&sandbox, &["--server", &served.url, "--resume"])).expect(3);
    assert_exact(&sandbox, &["--server", &served.url], &last, 2_100, &[700, 1_600]);
}

#[test]
fn one_file_is_imported_by_one_process_at_a_time() {
    let (sandbox, served) = serving();
    sandbox.write(FILE, lines(100).0);
    let proxy = Proxy::start(&served.url, 1, Fault::RequestLost, Then::Silence);
    let first = import(&sandbox, &["--server", &proxy.url]);
    proxy.wait();
    for more in ["--resume", "--restart"] {
        let second = ran(import(&sandbox, &["--server", &served.url, more])).expect(5);
        assert!(second.err.contains("another import of approvals.jsonl is running"));
    }
    super::support::signal(&first, "INT");
    let first = ran(first).expect(130);
    let says = "keyloom: interrupted\nhint: the same command with --resume goes on, and writes \
                nothing twice\n";
    assert_eq!(first.err, says);
    ran(import(&sandbox, &["--server", &served.url, "--resume"])).expect(0);
    assert_eq!(written(&sandbox, &["--server", &served.url]).len(), 100);
}

#[test]
fn a_progress_file_that_tells_nothing_is_neither_resumed_nor_written_over() {
    let sandbox = Sandbox::with_store();
    sandbox.write(FILE, lines(3).0);
    for text in ["", "{}", "of an earlier import\n", r#"{"format":2}"#] {
        sandbox.write(PROGRESS, text);
        for more in [&["--resume"][..], &[]] {
            let refused = ran(import(&sandbox, more)).expect(3);
            assert!(refused.err.contains("does not tell how far"), "{}", refused.err);
            assert_eq!(sandbox.read(PROGRESS), text);
        }
    }
    ran(import(&sandbox, &["--restart"])).expect(0);
    assert_eq!(written(&sandbox, &[]).len(), 3);
}

/// `--resume` where nothing was begun is an import from the first line, and what an earlier one
/// said is over.
#[test]
fn what_was_never_begun_is_resumed_from_its_first_line() {
    let sandbox = Sandbox::with_store();
    sandbox.write(REPORT, "of an earlier import\n");
    sandbox.write(FILE, "{\"status\":7}\n");
    let ran = ran(import(&sandbox, &["--resume"])).expect(3);
    assert!(ran.err.contains("nothing to resume: no import of approvals.jsonl was begun"));
    assert_eq!(sandbox.read(REPORT).lines().count(), 1);
    assert!(sandbox.read(REPORT).contains("\"line\":1"));
}

/// What is refused as a whole leaves the files beside the input as they were.
#[test]
fn an_import_that_is_refused_as_a_whole_leaves_nothing_behind() {
    let sandbox = Sandbox::with_store();
    sandbox.write(FILE, lines(3).0);
    sandbox.write(REPORT, "of an earlier import\n");
    let known = sandbox.names();
    let nowhere = ["import", FILE, "--server", "http://127.0.0.1:1"];
    let as_user = ["import", FILE, "--collection", "note", "--act-as", "ana"];
    let unknown = ["import", FILE, "--collection", "nothing"];
    let refused: [(&[&str], i32); 3] = [(&nowhere, 5), (&as_user, 7), (&unknown, 1)];
    for (args, code) in refused {
        let ran = sandbox.run(args).expect(code);
        assert!(!ran.err.contains("--resume"), "{}", ran.err);
        assert_eq!(sandbox.names(), known, "{args:?}");
        assert_eq!(sandbox.read(REPORT), "of an earlier import\n", "{args:?}");
    }
}

/// What can be read only once has no progress, and says how far it came.
#[test]
fn what_is_not_a_file_is_imported_and_not_resumed() {
    let (sandbox, served) = serving();
    let (text, _) = lines(1_400);
    let server = ["--server", &served.url];
    let import = ["import", "-", "--collection", "approval"];
    let refused = sandbox.run_with(&[&import[..], &["--resume"]].concat(), &[], &text).expect(2);
    assert!(refused.err.contains("cannot be read again"), "{}", refused.err);
    let proxy = Proxy::start(&served.url, 2, Fault::AnswerLost, Then::Cut);
    let cut = sandbox.run_with(&[&import[..], &["--server", &proxy.url]].concat(), &[], &text);
    let cut = cut.expect(6);
    assert!(cut.err.contains("lines 1 to 1000 are done, and some behind them may be"));
    let done = sandbox.run_with(&[&import[..], &server].concat(), &[], &text).expect(3);
    assert_eq!(done.value(), json!({ "written": 1_399, "failed": 1 }));
    assert_eq!(sandbox.names(), ["keyloom.toml"]);
}

/// A line of any length fails by itself.
#[test]
fn a_line_that_is_longer_than_any_record_does_not_stop_the_others() {
    let sandbox = Sandbox::with_store();
    let long = |letters: usize| format!("{{\"text\":\"{}\"}}", "x".repeat(letters));
    let (first, last) = (good(1), good(5));
    let text = format!("{first}\n{}\n{}\n\n{last}", long(1_500_000), long(5_000_000));
    sandbox.write(FILE, text);
    let done = ran(import(&sandbox, &[])).expect(3);
    assert_eq!(done.value(), json!({ "written": 2, "failed": 2 }), "{}", done.err);
    for says in ["line 2: the line has more than", "line 3: the line has more than"] {
        assert!(done.err.contains(says), "{}", done.err);
    }
    assert_eq!(written(&sandbox, &[]).into_keys().collect::<Vec<_>>(), [1, 5]);
}
