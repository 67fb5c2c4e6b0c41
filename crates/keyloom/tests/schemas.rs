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

#[test]
fn several_files_are_one_schema() {
    let whole =
        Schema::from_files([folder("systems/approvals.toml"), folder("systems/flows.toml")])
            .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(whole.collection_names().collect::<Vec<_>>(), ["approval", "flow", "run"]);
}

#[test]
fn problems_of_several_files_name_their_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let fields = "[collection.note.fields]\nid = \"id\"\n";
    let a = write("a.toml", &format!("[collection.note]\nkey = \"note:{{id}}\"\n{fields}"));
    let b = write("b.toml", &format!("x = 1\n[collection.note]\nkey = \"n:{{id}}\"\n{fields}"));
    let json = r#"{"collection": {"memo": {"key": "note:{x}", "fields": {"x": "text"}}}, "y": 1}"#;
    let c = write("c.json", json);
    let error = Schema::from_files([&a, &b, &c]).unwrap_err();
    let at = |file: &Path, rest: &str| format!("{}{rest}", file.display());
    let clash = "`note:{id}` and `note:{x}` of collection.memo.key could both have the key \
                 `note:aaaaaaaaaaaaaaaaaaaaaaaaaa`; change one of them, or put it into another \
                 area";
    assert_eq!(
        problems(&error),
        [
            at(&a, &format!(":2:7: collection.note.key: {clash}")),
            at(&b, ":1:1: x: unknown key; a schema may have `collection`, `log`, `idempotency`"),
            at(&b, ":2:13: collection.note: is declared in another file already"),
            at(&c, ":1:72: y: unknown key; a schema may have `collection`, `log`, `idempotency`"),
        ]
    );
}

#[test]
fn a_file_that_is_none_is_told() {
    let missing = Schema::from_file("no/such/schema.toml").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::InvalidSchema);
    assert_eq!(missing.context_value("file"), Some("no/such/schema.toml"));
    let strange = Schema::from_file("schema.yaml").unwrap_err();
    assert_eq!(strange.message(), "a schema file ends in .toml or .json");
}

#[test]
fn the_examples_of_the_guide_compile() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/schema.md");
    let text = fs::read_to_string(guide).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() > 5, "the guide shows its examples as TOML");
    for example in examples {
        Schema::from_toml(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}
