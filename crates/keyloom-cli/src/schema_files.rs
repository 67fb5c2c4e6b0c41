//! Loads schemas from files and folders, and reports what they changed in a store.

use std::fs;
use std::path::{Path, PathBuf};

use keyloom::{Applied, Class, Schema};

use crate::exit::{Failure, WRONG_INPUT};
use crate::output::note;

/// The schema file that is used unless another is named.
pub(crate) const DEFAULT_SCHEMA: &str = "keyloom.toml";

/// The schema at a path: a file, or every `.toml` and `.json` file of a folder as one schema.
pub(crate) fn load(path: &Path) -> Result<Schema, Failure> {
    if !path.is_dir() {
        return Ok(Schema::from_file(path)?);
    }
    let files = files_of(path)?;
    if files.is_empty() {
        let message = format!("the folder {} has no .toml or .json file", path.display());
        return Err(
            Failure::new(WRONG_INPUT, message).with_hint("--schema names a file or a folder")
        );
    }
    Ok(Schema::from_files(files)?)
}

/// The named schema, or the default one if it exists.
pub(crate) fn load_named(path: Option<&Path>) -> Result<Option<Schema>, Failure> {
    match path {
        Some(path) => load(path).map(Some),
        None if Path::new(DEFAULT_SCHEMA).exists() => load(Path::new(DEFAULT_SCHEMA)).map(Some),
        None => Ok(None),
    }
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error| crate::input::unreadable(&folder.display().to_string(), &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_schema = path.extension().is_some_and(|end| end == "toml" || end == "json");
        if is_schema && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Prints what an applied schema changed, and warns about declarations that are probably not meant.
pub(crate) fn tell_applied(schema: &Schema, applied: &Applied) {
    for change in applied.changes.iter().filter(|change| change.class != Class::Kept) {
        note(&format!("schema: {change}"));
    }
    for misfits in &applied.misfits {
        note(&format!("warning: {misfits}; they stay, and `keyloom verify` tells all of them"));
    }
    for warning in schema.warnings() {
        note(&format!("warning: {warning}"));
    }
}

/// The class of a change, as a word.
pub(crate) fn class_name(class: Class) -> &'static str {
    match class {
        Class::Kept => "kept",
        Class::Safe => "safe",
        Class::NeedsBuild => "needs build",
        Class::Incompatible => "incompatible",
    }
}
