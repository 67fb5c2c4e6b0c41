//! The table of problems, the contract and the library's kinds agree.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;

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

#[test]
fn repeated_context_becomes_an_array() {
    let error = Error::new(ErrorKind::UniqueConflict, "taken")
        .with("value", "\"a\"")
        .with("value", 3)
        .with("held by", "x");
    let context = &Problem::from(error).to_json()["context"];
    assert_eq!(*context, json!({ "value": ["a", 3], "held_by": "x" }));
}
