//! Plans and refusals in words.

use std::fmt;
use std::sync::Arc;

use super::plan::{Asked, Plan};
use super::predicate::{Order, Query};
use crate::engine::{Direction, ShowKey};
use crate::error::{Error, ErrorKind};
use crate::key::{Path, Segment, Template};
use crate::schema::{Collection, Holds, Index, Loaded, Test};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.branches.len() > 1 {
            writeln!(f, "merge {} ranges in one order, each record once", self.branches.len())?;
        }
        for branch in &self.branches {
            let template = branch.index.as_ref().map_or(&self.collection.key, |index| &index.key);
            match &branch.index {
                None => writeln!(f, "records of {}: {}", self.collection.name, template.source)?,
                Some(index) => {
                    writeln!(
                        f,
                        "index {}.{}: {}",
                        self.collection.name, index.name, template.source
                    )?;
                }
            }
            let fixed: Vec<String> = template
                .segments()
                .take(branch.equal)
                .map(|segment| segment.path.to_string())
                .collect();
            if !fixed.is_empty() {
                writeln!(f, "  fixed: {}", fixed.join(", "))?;
            }
            if !branch.presumed.is_empty() {
                let presumed: Vec<String> = branch.presumed.iter().map(Path::to_string).collect();
                writeln!(f, "  only records that have: {}", presumed.join(", "))?;
            }
            let end = branch
                .range
                .end
                .as_ref()
                .map_or_else(|| "(end)".to_owned(), |end| ShowKey(end).to_string());
            writeln!(f, "  range: {} .. {end}", ShowKey(&branch.range.start))?;
            writeln!(f, "  read: {}", access(&self.collection, branch.index.as_ref()))?;
        }
        let direction = match self.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        write!(f, "direction: {direction}")?;
        for (path, tests) in &self.filters {
            let tests: Vec<String> = tests.iter().map(Test::to_string).collect();
            write!(f, "\nfilter: {path} {}", tests.join(" and "))?;
        }
        Ok(())
    }
}

fn access(_collection: &Collection, index: Option<&Arc<Index>>) -> &'static str {
    match index {
        None => "scan, 1 round trip",
        Some(index) if index.holds == Holds::Record => {
            "scan of entries that carry the record, 1 round trip"
        }
        Some(index) if index.recipe.is_some() => "follow, 1 round trip",
        Some(_) => "scan and get, 2 round trips",
    }
}

/// The refusal of a query that no index serves, with what there is and what would serve.
pub(super) fn no_index(
    loaded: &Loaded,
    collection: &Collection,
    query: &Query,
    branches: &[Asked],
) -> Error {
    let message = match branches.len() {
        1 => "no index serves this query",
        _ => "no indexes serve this union in one order",
    };
    let mut error = Error::new(ErrorKind::NoIndex, message).with("collection", &collection.name);
    if let Some(index) = &query.index {
        error = error.with("index", index);
    }
    for asked in branches {
        error = error
            .with("asked", describe(asked))
            .with("would serve", would_serve(collection, asked));
    }
    if branches.len() > 1 && branches.iter().any(Asked::is_about_elements) {
        let note = "a union gives each record once, so that it cannot range over elements";
        error = error.with("note", note);
    }
    error = error.with("there is", &collection.key.source);
    for index in collection.asked_indexes() {
        let state = loaded.state(&collection.name, &index.name);
        error =
            error.with("there is", format_args!("{} ({}, {state})", index.key.source, index.name));
    }
    match (&query.index, branches.len()) {
        (Some(_), _) => error.with("or", "do not insist on an index"),
        (None, 1) => error.with("or", "ask for a scan of the whole collection"),
        (None, _) => error.with("or", "ask each alternative by itself"),
    }
}

fn describe(asked: &Asked) -> String {
    let mut words: Vec<String> = asked
        .equal
        .iter()
        .map(|(path, value)| format!("{path} = {}", crate::key::shortened(value)))
        .collect();
    words.extend(asked.range.iter().map(|(path, _)| format!("a range of {path}")));
    words.extend(asked.order.iter().map(|(path, order)| format!("{path} {}", order_word(*order))));
    if words.is_empty() { "everything".to_owned() } else { words.join(", ") }
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Ascending => "ascending",
        Order::Descending => "descending",
    }
}

/// A template that would serve: what is fixed, then what is ranged or ordered, then the rest of
/// the record's key.
fn would_serve(collection: &Collection, asked: &Asked) -> String {
    let mut paths: Vec<String> = asked.equal.iter().map(|(path, _)| path.to_string()).collect();
    let ranged = asked.range.as_ref().map(|(path, _)| path);
    let ordered = asked.order.as_ref().map(|(path, order)| (path, *order));
    if let Some(path) = ranged.or(ordered.map(|(path, _)| path)) {
        let desc = matches!(ordered, Some((_, Order::Descending)));
        paths.push(if desc { format!("{path} desc") } else { path.to_string() });
    }
    let key = missing_key_paths(&collection.key, &paths);
    paths.extend(key);
    let placeholders: Vec<String> = paths.iter().map(|path| format!("{{{path}}}")).collect();
    format!("{}:index:NAME:{}", collection.name, placeholders.join(":"))
}

fn missing_key_paths(key: &Template, paths: &[String]) -> Vec<String> {
    let used = |segment: &&Segment| {
        paths.iter().any(|path| path.split(' ').next() == Some(segment.path.to_string().as_str()))
    };
    key.segments()
        .filter(|segment| !used(segment))
        .map(|segment| segment.path.to_string())
        .collect()
}
