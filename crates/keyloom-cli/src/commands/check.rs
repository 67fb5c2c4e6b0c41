//! `keyloom check`: checks a schema, and shows which keys it makes and what it would change.

use std::path::PathBuf;

use clap::Args;
use keyloom::{Applied, Class, ErrorKind, KeyPattern, Schema, Store, keyspace_markdown};
use serde_json::{Value, json};

use crate::cli::GlobalOptions;
use crate::exit::{CONFLICT, FAILED, Failure};
use crate::output::{Screen, Table, counted, line, note, visible};
use crate::schema_files::{DEFAULT_SCHEMA, class_name, load};
use crate::target::{open_store, runtime};

/// Check a schema, and print every key that it makes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// The schema: a file, or a folder of .toml and .json files
    #[arg(default_value = DEFAULT_SCHEMA)]
    schema: PathBuf,
    /// Print the keys as a Markdown page
    #[arg(long, conflicts_with_all = ["json", "table"])]
    markdown: bool,
    /// Print nothing if the schema is correct
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  keyloom check
  keyloom check schemas/ --markdown > KEYS.md
  keyloom check keyloom.toml --store file:./keyloom-data      what it would change there

Every problem is told with its file, line and column. Ends with 3 if the schema is wrong, and
with 4 if it contradicts what the store of --store has.";

impl Check {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let schema = load(&self.schema)?;
        for warning in schema.warnings() {
            note(&format!("warning: {warning}"));
        }
        if place.store.is_some() {
            return compare(place, &schema);
        }
        let screen = Screen::of(place);
        match () {
            () if self.quiet => Ok(()),
            () if self.markdown => line(keyspace_markdown(&schema).trim_end()),
            () => print_keyspace(screen, &schema),
        }
    }
}

/// Prints a keyspace: a table for each collection, or a JSON line for each kind of key.
pub(super) fn print_keyspace(screen: Screen, schema: &Schema) -> Result<(), Failure> {
    let patterns = schema.keyspace();
    if !screen.is_for_people() {
        return patterns.iter().try_for_each(|pattern| screen.json(&json(pattern)?));
    }
    let mut collections: Vec<Option<&str>> = Vec::new();
    for pattern in &patterns {
        if collections.last() != Some(&pattern.collection.as_deref()) {
            collections.push(pattern.collection.as_deref());
        }
    }
    for collection in collections {
        let own = patterns.iter().filter(|found| found.collection.as_deref() == collection);
        let title = collection.unwrap_or("the space");
        let mut table = Table::new([title, "what", "example", "read by"]);
        let own: Vec<&KeyPattern> = own.collect();
        for pattern in &own {
            table.row([&placed(pattern), &pattern.what, &pattern.example_key, &pattern.read_by]);
        }
        match screen.fits(&table) {
            true => screen.table(&table)?,
            // Templates must be readable in full, so a narrow terminal gets a paragraph for each.
            false => print_paragraphs(screen, title, &own)?,
        }
        line("")?;
    }
    let count = schema.collection_names().count() as u64;
    let (collections, patterns) = (counted(count, "collection"), patterns.len() as u64);
    note(&format!("the schema is right: {collections}, {}", counted(patterns, "key pattern")));
    Ok(())
}

fn print_paragraphs(screen: Screen, title: &str, own: &[&KeyPattern]) -> Result<(), Failure> {
    line(&screen.bold(&visible(title)))?;
    for pattern in own {
        line(&visible(&format!("  {}", placed(pattern))))?;
        line(&screen.dim(&visible(&format!("      {}", pattern.what))))?;
        line(&screen.dim(&visible(&format!("      example: {}", pattern.example_key))))?;
        line(&screen.dim(&visible(&format!("      read by: {}", pattern.read_by))))?;
    }
    Ok(())
}

/// A template, with its area unless that is the default one.
fn placed(pattern: &KeyPattern) -> String {
    match pattern.area.as_str() {
        "" => pattern.template.clone(),
        area => format!("[{area}] {}", pattern.template),
    }
}

fn json(pattern: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(pattern).map_err(|error| Failure::new(FAILED, error.to_string()))
}

/// Prints what the schema would change in a store, without changing it: it puts the stored schema
/// into a store in memory and applies the new one there.
fn compare(place: &GlobalOptions, schema: &Schema) -> Result<(), Failure> {
    let runtime = runtime()?;
    let store = open_store(&runtime, &place.address(), false)?;
    let tried = runtime.block_on(async {
        let stored = store.space(&place.space)?.schema().await?;
        let trial = Store::open("memory:").await?;
        trial.apply(&stored).await?;
        let tried = trial.apply(schema).await;
        store.close().await?;
        tried
    });
    let screen = Screen::of(place);
    match tried {
        Ok(applied) => print_changes(screen, &applied),
        Err(error) if error.kind() == ErrorKind::IncompatibleSchema => {
            let told = error.context().filter(|(name, _)| ["change", "problem"].contains(name));
            let told: Vec<&str> = told.map(|(_, change)| change).collect();
            let rows = told.iter().map(|change| (Class::Incompatible, (*change).to_owned()));
            print_rows(screen, rows.collect())?;
            Err(Failure::new(CONFLICT, error.message())
                .with_hint("nothing was changed; a key layout is changed by a migration"))
        }
        Err(error) => Err(error.into()),
    }
}

fn print_changes(screen: Screen, applied: &Applied) -> Result<(), Failure> {
    let changes = applied.changes.iter().map(|change| (change.class, change.to_string()));
    if applied.changes.is_empty() {
        note("the store has exactly this schema");
    }
    print_rows(screen, changes.collect())
}

fn print_rows(screen: Screen, rows: Vec<(Class, String)>) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return rows.iter().try_for_each(|(class, change)| {
            screen.json(&json!({ "class": class_name(*class), "change": change }))
        });
    }
    let mut table = Table::new(["class", "change"]);
    for (class, change) in &rows {
        table.row([class_name(*class), change]);
    }
    screen.table(&table)
}
