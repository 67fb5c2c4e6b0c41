//! docs/guide/schema.md

use keyloom::Result;

/// Compiles, and is not run: its files are the reader's.
#[allow(dead_code, unused_variables, reason = "the example only shows the ways to load a schema")]
fn ways_to_load(text: &str) -> Result<()> {
    let schema = keyloom::Schema::from_file("keyloom.toml")?;
    let schema = keyloom::Schema::from_files(["approvals.toml", "flows.toml"])?; // one schema
    let schema = keyloom::Schema::from_toml(text)?;
    let schema = keyloom::Schema::from_json(text)?;
    Ok(())
}
