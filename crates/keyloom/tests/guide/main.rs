//! The guide's examples. Every schema in it loads, and every Rust example in it stands, line for
//! line, in one of the tests of this folder.

#![cfg(feature = "embedded")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod aggregates;
mod backup;
mod changes;
mod counters;
mod expiry;
mod getting_started;
mod history;
mod idempotency;
mod keys;
mod loading;
mod maintenance;
mod owners;
mod queries;
mod schema;
mod transactions;
mod typed;
mod updates;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};

use keyloom::{Schema, Store};

/// One fenced block of a page.
struct Block {
    page: String,
    line: usize,
    language: String,
    text: String,
}

#[test]
fn every_schema_loads() {
    let mut loaded = 0;
    for block in blocks().iter().filter(|block| block.language == "toml") {
        if block.text.contains("[collection.") {
            Schema::from_toml(&block.text)
                .unwrap_or_else(|error| panic!("{}:{}: {error}", block.page, block.line));
            loaded += 1;
        }
    }
    assert!(loaded > 3, "the guide has lost its schemas");
}

#[test]
fn every_example_is_one_that_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guide");
    let sources: Vec<String> =
        paths(&folder, "rs").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let examples: Vec<Block> =
        blocks().into_iter().filter(|block| block.language.starts_with("rust")).collect();
    assert!(examples.len() > 10, "the guide has lost its examples");
    for Block { page, line, text, .. } in &examples {
        let runs = sources.iter().any(|source| has_lines(source, text));
        assert!(runs, "{page}:{line}: this example is in no file of {}:\n{text}", folder.display());
    }
}

/// Whoever pastes the README's program into a new project has added what it uses.
#[test]
fn the_readme_adds_every_crate_of_its_program() {
    let blocks = blocks_of(&guide().join("../../README.md"));
    let of = |language: &str| {
        let found = blocks.iter().find(|block| block.language == language);
        found.unwrap_or_else(|| panic!("the README has no {language}"))
    };
    let (program, shell) = (&of("rust").text, &of("sh").text);
    let added: Vec<&str> = shell
        .lines()
        .filter_map(|line| line.strip_prefix("cargo add ")?.split(' ').next())
        .collect();
    let used: Vec<&str> = program
        .lines()
        .filter_map(|line| line.strip_prefix("use ").or(line.strip_prefix("#[")))
        .filter_map(|rest| Some(rest.split_once("::")?.0))
        .collect();
    assert_eq!(used, ["keyloom", "serde", "tokio"]);
    assert_eq!(added, used);
}

/// Whether the lines stand in the source one after the other, at any indentation.
fn has_lines(source: &str, wanted: &str) -> bool {
    let lines = |text: &str| text.lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>();
    let (source, wanted) = (lines(source), lines(wanted));
    source.windows(wanted.len()).any(|window| window == wanted)
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

fn paths(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let listing = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    listing.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Every fenced block of every page.
fn blocks() -> Vec<Block> {
    paths(&guide(), "md").iter().flat_map(|path| blocks_of(path)).collect()
}

fn blocks_of(path: &Path) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (place, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                is_open = true;
                blocks.push(Block {
                    page: path.file_name().unwrap().to_string_lossy().into_owned(),
                    line: place + 1,
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            None if is_open => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// All schemas of a page, as one.
fn schemas_of(page: &str) -> Schema {
    let blocks = blocks_of(&guide().join(page));
    let schemas = blocks.iter().filter(|block| block.text.contains("[collection."));
    schemas.fold(Schema::default(), |all, block| {
        all.merge(&Schema::from_toml(&block.text).unwrap()).unwrap()
    })
}

/// A store in memory with the schemas of a page.
async fn store_of(page: &str) -> Store {
    let store = Store::open("memory:").await.unwrap();
    store.apply(&schemas_of(page)).await.unwrap();
    store
}
