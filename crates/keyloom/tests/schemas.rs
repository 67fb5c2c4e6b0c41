//! Golden tests of the schema language: every problem has a file that shows its message and
//! place, and the schemas of the five systems compile.
//!
//! A file in `schemas/problems` is a schema, with the problems that it must give at its end, in
//! lines that begin with `#> `. `UPDATE_GOLDEN=1 cargo test --test schemas` writes them anew, for
//! a person to read in the diff.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use keyloom::engine::{Capabilities, Reading};
use keyloom::{Error, ErrorKind, Schema, SchemaDeclaration};

const MARK: &str = "#> ";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas").join(name)
}

fn files(name: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {name}");
    files
}

fn problems(error: &Error) -> Vec<&str> {
    error.context().filter(|(name, _)| *name == "problem").map(|(_, value)| value).collect()
}

#[test]
fn every_problem_is_told_with_its_place() {
    let mut wrong = Vec::new();
    for file in files("problems") {
        let text = fs::read_to_string(&file).unwrap();
        let (schema, expected): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| !line.starts_with(MARK));
        let error = Schema::from_toml(&text).expect_err(&file.display().to_string());
        assert_eq!(error.kind(), ErrorKind::InvalidSchema);
        let found: Vec<String> =
            problems(&error).iter().map(|problem| format!("{MARK}{problem}")).collect();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let schema = schema.join("\n");
            fs::write(&file, format!("{}\n\n{}\n", schema.trim_end(), found.join("\n"))).unwrap();
        } else if found != expected {
            wrong.push(format!("{}\n{}", file.display(), found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "other problems than expected:\n{}", wrong.join("\n\n"));
}

#[test]
fn the_schemas_of_the_systems_compile() {
    for file in files("systems") {
        Schema::from_file(&file).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_declaration_survives_json() {
    for file in files("systems") {
        let schema = Schema::from_file(&file).unwrap();
        let json = serde_json::to_string(&schema.declaration()).unwrap();
        let declaration: SchemaDeclaration = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&declaration).unwrap(), json);
        let again = Schema::from_json(&json).unwrap();
        assert_eq!(again, schema);
        // Equality looks at declarations; the compiled templates and codecs must agree too.
        assert_eq!(format!("{again:?}"), format!("{schema:?}"));
    }
}

#[test]
fn a_file_names_itself_its_line_and_its_column() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keyloom.toml");
    fs::write(&file, "[collection.note]\nkey = \"note:{id}\"\nages = 1\n").unwrap();
    let error = Schema::from_file(&file).unwrap_err();
    let place = format!("{}:3:1: collection.note.ages: unknown key", file.display());
    assert!(problems(&error)[0].starts_with(&place), "{error}");
}
