//! The table of problems, the contract and the library's kinds agree.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use keyloom::{Error, ErrorKind};

use super::kinds::{KINDS, OF_ERRORS, named};
use super::*;

const CONTRACT: &str = include_str!("../../../../docs/formats/http.md");
const KINDS_OF_ERRORS: &str = include_str!("../../../keyloom/src/error.rs");

/// The types in the table of the contract, with their statuses.
fn contract() -> BTreeMap<String, u16> {
    let table = CONTRACT.split("## Problems").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `") || line.starts_with("| |"));
    let mut found = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // Two tables stand side by side: types and status, twice.
        for pair in [(1, 2), (4, 5)] {
            let (Some(types), Some(status)) = (cells.get(pair.0), cells.get(pair.1)) else {
                continue;
            };
            let Some(Ok(status)) = status.get(..3).map(str::parse) else { continue };
            for name in types
                .split('`')
                .skip(1)
                .step_by(2)
                .filter(|name| *name != "Allow" && *name != "Host")
            {
                found.insert(name.to_owned(), status);
            }
        }
    }
    found
}

#[test]
fn every_type_is_in_the_contract_with_its_status() {
    let known: BTreeMap<String, u16> =
        KINDS.iter().map(|kind| (kind.name.to_owned(), kind.status)).collect();
    assert_eq!(known, contract());
    assert_eq!(known.len(), KINDS.len(), "a type stands twice");
}

#[test]
fn every_page_says_something() {
    for kind in KINDS {
        assert!(!kind.title.is_empty() && kind.meaning.ends_with('.'), "{}", kind.name);
        assert!(kind.advice.ends_with('.'), "{}", kind.name);
    }
}

#[test]
fn every_kind_of_error_has_a_type() {
    let declared = KINDS_OF_ERRORS.split("pub enum ErrorKind {").nth(1).unwrap();
    let declared = declared.split("\n}").next().unwrap();
    let is_variant = |line: &&str| line.starts_with(|c: char| c.is_ascii_uppercase());
    let variants = declared.lines().map(str::trim).filter(is_variant);
    let variants: Vec<&str> = variants.map(|line| line.trim_end_matches(',')).collect();
    let mapped: Vec<String> = OF_ERRORS.iter().map(|(kind, _)| format!("{kind:?}")).collect();
    assert_eq!(mapped, variants);
    for (kind, name) in OF_ERRORS {
        let known = named(name).unwrap();
        let problem = Problem::from(Error::new(*kind, "something"));
        assert_eq!((problem.kind, problem.status.as_u16()), (known.name, known.status));
    }
}

#[test]
fn what_may_have_happened_is_told_alike() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Contention, ErrorKind::Closed] {
        let error = Error::new(kind, "something").with_fate(Fate::MayHaveHappened);
        let problem = Problem::from(error);
        assert_eq!((problem.kind, problem.status.as_u16()), ("outcome-unknown", 504));
        assert_eq!(problem.to_json()["outcome"], "may_have_happened");
    }
}

#[test]
fn no_problem_tells_where_the_store_lies() {
    for (kind, _) in OF_ERRORS {
        let error = Error::new(*kind, "something")
            .with("path", "/var/secret")
            .with("file", "/var/secret")
            .with("collection", "note")
            .with_source("/var/secret");
        let json = Problem::from(error).to_json().to_string();
        assert!(!json.contains("secret"), "{json}");
        assert!(json.contains("note"), "{json}");
    }
    let error = Error::new(ErrorKind::Corrupt, "something").with("key", "user:bob:secret");
    assert!(!Problem::from(error).to_json().to_string().contains("bob"));
}

/// Everything that is logged while a closure runs.
fn logged(run: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(subscriber, run);
    let bytes = log.0.lock().unwrap();
    String::from_utf8(bytes.clone()).unwrap()
}

/// Whatever the library says of keys, values and places stays out of the log, and names stay in.
#[test]
fn the_log_tells_no_keys_no_values_and_no_places() {
    let names =
        ["key", "stored key", "value", "path", "file", "address", "holder", "found", "range"];
    for (kind, _) in OF_ERRORS {
        for fate in [Fate::DidNotHappen, Fate::MayHaveHappened] {
            let error = Error::new(*kind, "something").with("collection", "note").with_fate(fate);
            let error = names.iter().fold(error, |error, name| error.with(name, "user:bob:secret"));
            let error = error
                .with("reason", "cannot open /var/secret")
                .with("last conflict", "user:bob:secret")
                .with_source("file:/var/secret");
            let status = named_of(&error).status;
            let is_of_server = status >= 500 && status != 501;
            let log = logged(|| drop(Problem::from(error)));
            assert!(!log.contains("secret") && !log.contains("bob"), "{kind:?}: {log}");
            assert_eq!(log.contains("ERROR"), is_of_server, "{kind:?}: {log}");
            assert_eq!(log.contains("collection: note"), is_of_server, "{kind:?}: {log}");
        }
    }
    let full = "No space left on device (os error 28)";
    for kind in [ErrorKind::Unavailable, ErrorKind::ReadOnly] {
        let error = Error::new(kind, "the store failed to write").with("reason", full);
        assert!(logged(|| drop(Problem::from(error))).contains(full), "{kind:?}");
    }
    let quoted = Error::new(ErrorKind::Corrupt, "no JSON").with("reason", "found bob");
    assert!(!logged(|| drop(Problem::from(quoted))).contains("bob"));
}

fn named_of(error: &Error) -> &'static Kind {
    let name = match error.fate() {
        Fate::MayHaveHappened => "outcome-unknown",
        Fate::DidNotHappen => OF_ERRORS.iter().find(|(kind, _)| *kind == error.kind()).unwrap().1,
    };
    named(name).unwrap()
}

/// Whoever may not read a record learns from a refused write which field was in the way, and
/// nothing of what is in it.
#[test]
fn a_writer_who_may_not_read_is_told_names_only() {
    for (kind, _) in OF_ERRORS {
        let error = Error::new(*kind, "something")
            .with("collection", "note")
            .with("field", "state")
            .with("from", "secret")
            .with("value", "secret");
        let told = to_writer(error, Sent::Part).to_json().to_string();
        let is_about_stored = matches!(
            kind,
            ErrorKind::VersionConflict
                | ErrorKind::UniqueConflict
                | ErrorKind::IllegalTransition
                | ErrorKind::OutOfBounds
                | ErrorKind::InvalidRecord
        );
        assert!(!is_about_stored || !told.contains("secret"), "{kind:?}: {told}");
        assert!(!is_about_stored || told.contains("state"), "{kind:?}: {told}");
    }
    // What is wrong with a whole record is what its sender wrote.
    let error = Error::new(ErrorKind::InvalidRecord, "something").with("value", "sent");
    assert!(to_writer(error, Sent::Whole).to_json().to_string().contains("sent"));
}

#[test]
fn repeated_context_becomes_an_array() {
    let error = Error::new(ErrorKind::UniqueConflict, "taken")
        .with("value", "\"a\"")
        .with("value", 3)
        .with("held by", "x");
    let context = &Problem::from(error).to_json()["context"];
    assert_eq!(*context, json!({ "value": ["a", 3], "held_by": "x" }));
}
