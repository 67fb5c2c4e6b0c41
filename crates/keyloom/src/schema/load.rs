//! Loads checked schemas from texts, files and declarations.

use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

use super::compile::compile;
use super::declaration::SchemaDeclaration;
use super::model::Schema;
use super::problem::{Places, Problems};
use super::{json, read, toml};
use crate::error::{Error, ErrorKind, Result};

/// The table of a schema about idempotency keys.
const IDEMPOTENCY: &str = "idempotency";

/// The language of a schema text.
#[derive(Clone, Copy)]
enum Language {
    Toml,
    Json,
}

impl Schema {
    /// Reads and checks a schema in TOML. If anything is wrong, the error's context has one
    /// `problem` for each fault, with its line and column.
    pub fn from_toml(text: &str) -> Result<Self> {
        Loader::default().text("", Language::Toml, text).finish()
    }

    /// Reads and checks a schema in JSON, which has the same names and nesting as TOML.
    pub fn from_json(text: &str) -> Result<Self> {
        Loader::default().text("", Language::Json, text).finish()
    }

    /// Reads and checks a schema file: TOML or JSON, according to its extension, `.toml` or
    /// `.json`.
    pub fn from_file(path: impl AsRef<FilePath>) -> Result<Self> {
        Self::from_files([path])
    }

    /// Reads several schema files as one schema. Each collection may be in only one file.
    pub fn from_files(paths: impl IntoIterator<Item = impl AsRef<FilePath>>) -> Result<Self> {
        let mut loader = Loader::default();
        for path in paths {
            let path = path.as_ref();
            let language = language_of(path)?;
            let text = fs::read_to_string(path).map_err(|source| {
                Error::new(ErrorKind::InvalidSchema, "the schema file cannot be read")
                    .with("file", path.display())
                    .with("reason", &source)
                    .with_source(source)
            })?;
            loader = loader.text(&path.display().to_string(), language, &text);
        }
        loader.finish()
    }

    /// Checks a declaration that a program made.
    pub fn from_declaration(declaration: SchemaDeclaration) -> Result<Self> {
        Loader { declaration, ..Loader::default() }.finish()
    }

    /// Merges both schemas. A collection or a log that both have must be the same in both.
    pub fn merge(&self, other: &Schema) -> Result<Self> {
        let mut merged = self.declaration();
        let mut problems = Problems::default();
        let other = other.declaration();
        if merged.log.is_some() && other.log.is_some() && merged.log != other.log {
            problems.add(vec!["log".to_owned()], "is declared differently in two schemas");
        }
        merged.log = merged.log.or(other.log);
        for (name, collection) in other.collections {
            match merged.collections.get(&name) {
                Some(existing) if *existing == collection => {}
                Some(_) => problems.add(trail_of(&name), "is declared differently in two schemas"),
                None => {
                    merged.collections.insert(name, collection);
                }
            }
        }
        match (&merged.idempotency, &other.idempotency) {
            (Some(one), Some(another)) if one != another => {
                problems
                    .add(vec![IDEMPOTENCY.to_owned()], "is declared differently in two schemas");
            }
            (None, another) => merged.idempotency = another.clone(),
            (Some(_), _) => {}
        }
        if problems.is_empty() {
            Self::from_declaration(merged)
        } else {
            Err(problems.into_error())
        }
    }
}

fn language_of(path: &FilePath) -> Result<Language> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => Ok(Language::Toml),
        Some("json") => Ok(Language::Json),
        _ => Err(Error::new(ErrorKind::InvalidSchema, "a schema file ends in .toml or .json")
            .with("file", path.display())),
    }
}

fn trail_of(collection: &str) -> Vec<String> {
    vec!["collection".to_owned(), collection.to_owned()]
}

/// Collects texts and their problems, until the texts are compiled together.
#[derive(Default)]
struct Loader {
    declaration: SchemaDeclaration,
    places: Places,
    problems: Problems,
}

impl Loader {
    fn text(mut self, source: &str, language: Language, text: &str) -> Self {
        let source: Arc<str> = source.into();
        let mut problems = Problems::default();
        let parsed = match language {
            Language::Toml => toml::parse(text, &source, &mut problems),
            Language::Json => json::parse(text, &source, &mut problems),
        };
        if let Some((value, places)) = parsed {
            let declaration = read::schema_as_far_as_possible(&value, &mut problems);
            for (name, collection) in declaration.collections {
                match self.declaration.collections.entry(name) {
                    Entry::Vacant(place) => {
                        place.insert(collection);
                    }
                    Entry::Occupied(place) => problems
                        .add_to_name(trail_of(place.key()), "is declared in another file already"),
                }
            }
            if self.declaration.log.is_some() && declaration.log.is_some() {
                let trail = vec!["log".to_owned()];
                problems.add_to_name(trail, "is declared in another file already");
            }
            self.declaration.log = self.declaration.log.or(declaration.log);
            match (&self.declaration.idempotency, declaration.idempotency) {
                (Some(_), Some(_)) => problems.add_to_name(
                    vec![IDEMPOTENCY.to_owned()],
                    "is declared in another file already",
                ),
                (_, None) => {}
                (None, declared) => self.declaration.idempotency = declared,
            }
            // Located now, since another text may have something else at the same path.
            problems.locate(&places);
            self.places.extend(places);
        }
        self.problems.extend(problems);
        self
    }

    fn finish(mut self) -> Result<Schema> {
        let schema = compile(&self.declaration, &mut self.problems);
        if self.problems.is_empty() {
            return Ok(schema);
        }
        self.problems.locate(&self.places);
        Err(self.problems.into_error())
    }
}
