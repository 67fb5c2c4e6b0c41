//! `keyloom schema`: the stored schema, and the state of its indexes.

use std::path::PathBuf;

use clap::Args;
use keyloom::{CollectionDeclaration, Schema, SchemaDeclaration};
use serde_json::{Value, json};

use super::check::print_keyspace;
use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure, USAGE};
use crate::output::{Screen, Table, cell, note};
use crate::schema_files::{load, tell_applied};
use crate::target::{Request, Target, open_store, runtime};

/// Print the schema in the store, or apply another
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PrintSchema {
    /// Apply this schema file or folder first, as `serve` does
    #[arg(long, value_name = "PATH")]
    apply: Option<PathBuf>,
    /// Print every kind of key instead
    #[arg(long)]
    keys: bool,
}

const EXAMPLES: &str = "\
Examples:
  keyloom schema
  keyloom schema --json > schema.json           a file that `serve --schema` takes
  keyloom schema --keys
  keyloom schema --apply keyloom.toml           on a folder that no server holds

Nothing is dropped by applying a schema: what only the store knows stays. New indexes over records
that are there must be built: `keyloom build COLLECTION INDEX`.";

impl PrintSchema {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        if let Some(path) = &self.apply {
            apply(place, path)?;
        }
        let answer = Target::open(place)?.value(Request::get(&["schema"]))?;
        let screen = Screen::of(place);
        if self.keys {
            let schema = Schema::from_json(&answer["schema"].to_string())?;
            return print_keyspace(screen, &schema);
        }
        if !screen.is_for_people() {
            return screen.json(&answer["schema"]);
        }
        print(screen, &answer)
    }
}

/// A table of collections and their indexes, with the state of each.
fn print(screen: Screen, answer: &Value) -> Result<(), Failure> {
    let mut table = Table::new(["collection", "kind", "name", "key", "state"]);
    let schema: SchemaDeclaration = serde_json::from_value(answer["schema"].clone())
        .map_err(|error| Failure::new(FAILED, format!("the schema cannot be read: {error}")))?;
    for (name, collection) in &schema.collections {
        table.row([name, "record", "", &collection.key, ""]);
        for (kind, index, key) in declared(collection) {
            table.row([name, kind, index, &key, &cell(&answer["indexes"][name][index])]);
        }
    }
    for (collection, failures) in answer["failures"].as_object().into_iter().flatten() {
        for (index, reason) in failures.as_object().into_iter().flatten() {
            note(&format!("{collection}.{index} failed: {}", cell(reason)));
        }
    }
    if table.is_empty() {
        note("there is no schema yet: `keyloom schema --apply PATH`, or `keyloom serve`");
    }
    screen.table(&table)
}

/// Every index and aggregate: its kind, its name, and its key or group, with its condition.
fn declared(collection: &CollectionDeclaration) -> Vec<(&'static str, &str, String)> {
    let CollectionDeclaration { index, unique, geo, count, sum, .. } = collection;
    let mut all = Vec::new();
    for (kind, indexes) in [("index", index), ("unique", unique), ("geo", geo)] {
        for (name, index) in indexes {
            all.push((kind, name.as_str(), met(&index.key, index.condition_text())));
        }
    }
    for (kind, aggregates) in [("count", count), ("sum", sum)] {
        for (name, aggregate) in aggregates {
            let group = cell(&json!(aggregate.group));
            all.push((kind, name.as_str(), met(&group, aggregate.condition_text())));
        }
    }
    all
}

/// The key or group of an index or aggregate, with its condition.
fn met(key: &str, condition: Option<String>) -> String {
    condition.map_or_else(|| key.to_owned(), |condition| format!("{key} where {condition}"))
}

fn apply(place: &GlobalOptions, path: &std::path::Path) -> Result<(), Failure> {
    if place.server().is_some() {
        let message = "a server takes its schema when it starts";
        return Err(
            Failure::new(USAGE, message).with_hint("restart it with `keyloom serve --schema PATH`")
        );
    }
    let schema = load(path)?;
    let runtime = runtime()?;
    let store = open_store(&runtime, &place.address(), true)?;
    let applied = runtime.block_on(async {
        let applied = store.space(&place.space)?.apply(&schema).await;
        store.close().await?;
        applied
    })?;
    tell_applied(&schema, &applied);
    for (collection, index) in &applied.to_build {
        note(&format!("to build: keyloom build {collection} {index}"));
    }
    Ok(())
}
