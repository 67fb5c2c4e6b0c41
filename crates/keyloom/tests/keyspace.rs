//! The documented keyspace: what it says is what lies in a store.
//!
//! `UPDATE_GOLDEN=1 cargo test --test keyspace` writes the pages in `keyspaces` anew, for a person
//! to read in the diff.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use keyloom::engine::{Area, Direction, EngineExt, Memory, Range, Space};
use keyloom::{Due, KeyPattern, Schema, Store, keyspace_markdown};
use serde_json::{Value, json};

const SYSTEMS: [(&str, &str); 6] = [
    ("approvals", include_str!("schemas/systems/approvals.toml")),
    ("executions", include_str!("../../../examples/executions/keyloom.toml")),
    ("flows", include_str!("../../../examples/flows/keyloom.toml")),
    ("patterns", include_str!("../../../examples/patterns/keyloom.toml")),
    ("reputation", include_str!("../../../examples/reputation/keyloom.toml")),
    ("everything", include_str!("keyspaces/everything.toml")),
];

#[test]
fn the_pages_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/keyspaces");
    let mut wrong = Vec::new();
    for (name, schema) in SYSTEMS {
        let page = keyspace_markdown(&Schema::from_toml(schema).unwrap());
        let path = folder.join(format!("{name}.md"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &page).unwrap();
        }
        if fs::read_to_string(&path).unwrap_or_default() != page {
            wrong.push(format!("{name}:\n{page}"));
        }
    }
    assert!(wrong.is_empty(), "other pages than expected:\n{}", wrong.join("\n"));
}

/// Every cell of a store: area, key and what it holds.
async fn cells(store: &Store) -> Vec<(String, String, String)> {
    let schema = store.schema().await.unwrap();
    let areas: BTreeSet<String> = schema.keyspace().into_iter().map(|it| it.area).collect();
    let mut all = Vec::new();
    for name in areas.iter().filter(|name| *name != "(log)") {
        let area = if name == "~" { Area::own() } else { Area::new(name).unwrap() };
        let range = Range::all(area);
        let rows = store.engine().scan_all(&Space::main(), &range, 100, Direction::Forward).await;
        for row in rows.unwrap() {
            let value = match (row.cell.bytes(), row.cell.integers()) {
                (Some(bytes), _) => String::from_utf8(bytes.to_vec()).unwrap(),
                (_, integers) => json!(integers).to_string(),
            };
            all.push((name.clone(), String::from_utf8(row.key.to_vec()).unwrap(), value));
        }
    }
    all
}

fn is_record(pattern: &KeyPattern) -> bool {
    pattern.index.is_none() && pattern.area != "~" && pattern.area != "(log)"
}

/// A record of each collection, written as its example, gives the keys and values of the examples
/// of all its entries.
#[tokio::test]
async fn examples_are_what_writes_leave() {
    for (name, schema) in SYSTEMS {
        let store = Store::on(Arc::new(Memory::new()));
        store.apply(&Schema::from_toml(schema).unwrap()).await.unwrap();
        let patterns = store.schema().await.unwrap().keyspace();
        for pattern in patterns.iter().filter(|pattern| is_record(pattern)) {
            let record: Value = serde_json::from_str(&pattern.example_value).unwrap();
            let of = store.documents(pattern.collection.as_ref().unwrap()).await.unwrap();
            let inserted = of.insert(&record).await.unwrap();
            assert_eq!(inserted.key, pattern.example_key, "{name}");
        }
        let there: BTreeSet<_> = cells(&store).await.into_iter().collect();
        let shown: BTreeSet<_> = patterns
            .iter()
            .filter(|it| it.area != "(log)")
            .map(|it| (it.area.clone(), it.example_key.clone(), it.example_value.clone()))
            .collect();
        // What a write always leaves is shown exactly; the rest differs by chance and time.
        let is_certain = |(area, key, _): &&(String, String, String)| {
            area != "~" || key.starts_with("expiry:") || key.starts_with("aggregate:")
        };
        // The one partial index has its entry for another state of the record.
        let is_partial = |it: &&(String, String, String)| it.1.starts_with("done:");
        let there: Vec<_> = there.iter().filter(is_certain).collect();
        let shown: Vec<_> = shown.iter().filter(is_certain).filter(|it| !is_partial(it)).collect();
        assert_eq!(there, shown, "{name}");
    }
}

/// Whatever lies in a store that does everything, in any area, is one of the patterns.
#[tokio::test]
async fn no_key_is_left_out() {
    let store = Store::on(Arc::new(Memory::new()));
    store.apply(&Schema::from_toml(SYSTEMS[5].1).unwrap()).await.unwrap();
    let patterns = store.schema().await.unwrap().keyspace();
    let example = patterns.iter().find(|it| it.template.starts_with("user:")).unwrap();
    let mut note: Value = serde_json::from_str(&example.example_value).unwrap();
    note["until"] = json!(9_999_999_999_999_u64);
    let notes = store.documents("note").await.unwrap();
    let notes = notes.with_idempotency_key("once").unwrap();
    notes.insert(&note).await.unwrap();
    let notes = store.documents("note").await.unwrap();
    let key = notes.key_named(&notes.name_of(&example.example_key).await.unwrap()).await.unwrap();
    notes.increment(key.clone(), [("hits", 1), ("stats.a", 2)]).await.unwrap();
    let leased = notes.lease(&Due::new("steps"), "w", Duration::from_secs(60)).await.unwrap();
    assert_eq!(leased.items.len(), 1);
    note["slug"] = json!("other");
    note["noteId"] = json!("00000000000040008000000000000000");
    notes.insert(&note).await.unwrap();
    let second = vec![key[0].clone(), note["noteId"].clone()];
    notes.increment(second, [("hits", 1)]).await.unwrap();
    notes.delete(key).await.unwrap();
    let mut met = BTreeSet::new();
    for (area, key, _) in cells(&store).await {
        // Literals up to the first placeholder tell the patterns of Keyloom's own area apart.
        let literal = |it: &KeyPattern| it.template.split('{').next().unwrap().to_owned();
        let fits = |it: &&KeyPattern| it.area == area && key.starts_with(&literal(it));
        let pattern = patterns.iter().filter(fits).max_by_key(|it| literal(it).len());
        let pattern = pattern.unwrap_or_else(|| panic!("{key:?} in {area:?} is no pattern's"));
        met.insert(pattern.template.clone());
    }
    // Marks come and go with a recount; no note is done, and the one record of settings is not there.
    let unmet = patterns.iter().filter(|it| !met.contains(&it.template) && it.area != "(log)");
    let unmet: Vec<&str> = unmet.map(|it| &*it.template).collect();
    let is_mark = |it: &&&str| it.starts_with("aggregate-mark:");
    assert_eq!(unmet.iter().filter(is_mark).count(), 3);
    let others: Vec<&&str> = unmet.iter().filter(|it| !is_mark(it)).collect();
    assert_eq!(others, [&"done:{userId}:{made desc}:{noteId}", &"settings"]);
}

#[test]
fn a_program_gets_it_as_data() {
    let schema = Schema::from_toml(SYSTEMS[0].1).unwrap();
    let json = serde_json::to_value(schema.keyspace()).unwrap();
    let code = json.as_array().unwrap().iter().find(|it| it["index"] == "code").unwrap();
    assert_eq!(code["template"], "approval:code:{code}");
    assert_eq!(code["read_by"], "get_by code");
    assert_eq!(code["holds"], "the field id as JSON");
    assert_eq!(schema.keyspace(), schema.keyspace(), "the same each time");
}
