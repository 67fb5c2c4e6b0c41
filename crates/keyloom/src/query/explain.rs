//! Explains plans and refusals in words.

use std::fmt;
use std::sync::Arc;

use super::checked::CheckedQuery;
use super::filter::Filter;
use super::fit::fit_unnamed;
use super::plan::{Branch, Plan};
use super::predicate::Order;
use crate::engine::{Direction, ShowKey};
use crate::error::{Error, ErrorKind};
use crate::key::{Kind, Path, Span};
use crate::schema::{Collection, FieldKind, Holds, Index, nearest};
use crate::space::Loaded;

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
            if let Some(condition) = branch.index.as_ref().and_then(|it| it.condition.as_ref()) {
                writeln!(f, "  where: {condition}")?;
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
            writeln!(f, "  read: {}", access(branch.index.as_ref()))?;
            if self.shared_filters().is_none() {
                branch.filters.iter().try_for_each(|it| writeln!(f, "  filter: {it}"))?;
            }
        }
        let direction = match self.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        write!(f, "direction: {direction}")?;
        let shared = self.shared_filters().into_iter().flatten();
        shared.into_iter().try_for_each(|filter| write!(f, "\nfilter: {filter}"))
    }
}

impl Plan {
    /// The filters of all branches, if every branch has the same.
    fn shared_filters(&self) -> Option<&[Filter]> {
        let (first, others) = self.branches.split_first()?;
        let is_same = |branch: &Branch| branch.filters == first.filters;
        others.iter().all(is_same).then_some(&first.filters)
    }
}

fn access(index: Option<&Arc<Index>>) -> &'static str {
    match index {
        None => "scan, 1 round trip",
        Some(index) if index.holds == Holds::Record => {
            "scan of entries that carry the record, 1 round trip"
        }
        Some(index) if index.recipe.is_some() => "follow, 1 round trip",
        Some(_) => "scan and get, 2 round trips",
    }
}

/// The error for a query that no index serves: it lists the existing indexes and one that would
/// serve.
pub(super) fn no_index(
    loaded: &Loaded,
    collection: &Collection,
    branches: &[CheckedQuery],
) -> Error {
    let message = match branches.len() {
        1 => "no index serves this query",
        _ => "no indexes serve this union in one order",
    };
    let mut error = Error::new(ErrorKind::NoIndex, message).with("collection", &collection.name);
    let named = branches.iter().find_map(|asked| asked.index.as_ref());
    if let Some(index) = named {
        error = error.with("index", index);
    }
    for asked in branches {
        error = error.with("asked", describe(asked));
        for path in asked.paths().filter(|path| !collection.fields.contains_key(path)) {
            error = error.with("first", declare(collection, path));
        }
        if !asked.is_empty() {
            error = error.with("would serve", would_serve(collection, asked));
        }
        for index in nearly(collection, asked) {
            error = error.with("nearly", index);
        }
    }
    if branches.len() > 1 && branches.iter().any(CheckedQuery::is_about_elements) {
        let note = "a union gives each record once, so that it cannot range over elements";
        error = error.with("note", note);
    }
    error = error.with("there is", &collection.key.source);
    for index in collection.asked_indexes() {
        let state = loaded.state(&collection.name, &index.name);
        let condition = index.condition.as_ref().map(|it| format!(" where {it}"));
        let (source, condition) = (&index.key.source, condition.unwrap_or_default());
        error =
            error.with("there is", format_args!("{source}{condition} ({}, {state})", index.name));
    }
    match (named, branches.len()) {
        (Some(_), _) => error.with("or", "do not insist on an index"),
        (None, 1) if branches.iter().all(CheckedQuery::can_be_scanned_for) => {
            error.with("or", "ask for a scan of the whole collection")
        }
        (None, 1) => error,
        (None, _) => error.with("or", "ask each alternative by itself"),
    }
}

/// How to declare a field that is not declared yet.
fn declare(collection: &Collection, path: &Path) -> String {
    let known: Vec<String> = collection.fields.keys().map(Path::to_string).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match nearest(&path.to_string(), &known) {
        Some(near) => format!("declare the field {path}; or did you mean {near}?"),
        None => format!("declare the field {path}"),
    }
}

/// The partial indexes that would serve if the query implied their conditions.
fn nearly(collection: &Collection, asked: &CheckedQuery) -> Vec<String> {
    if asked.is_empty() || asked.index.is_some() {
        return Vec::new();
    }
    let of_index = |index: &Arc<Index>| {
        let condition = index.condition.as_ref()?;
        let lacks = !asked.implies(collection, condition);
        fit_unnamed(collection, index, asked).filter(|_| lacks)?;
        let name = &index.name;
        Some(format!("{name} serves records whose {condition}; ask for that, or name the index"))
    };
    collection.asked_indexes().filter_map(of_index).collect()
}

fn describe(asked: &CheckedQuery) -> String {
    let mut words: Vec<String> = asked
        .equal
        .iter()
        .map(|(path, value)| format!("{path} = {}", crate::key::shortened(value)))
        .collect();
    words.extend(asked.range.iter().map(|(path, _)| format!("a range of {path}")));
    words.extend(asked.order.iter().map(|(path, order)| format!("{path} {}", order_word(*order))));
    if words.is_empty() {
        words.push("everything".to_owned());
        words.extend(asked.filters.iter().map(|filter| format!("filtered by {}", filter.path)));
    }
    words.join(", ")
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Ascending => "ascending",
        Order::Descending => "descending",
    }
}

/// A template that would serve the query: first the fixed fields, then the field of the range or
/// the order, then the rest of the record's key.
fn would_serve(collection: &Collection, asked: &CheckedQuery) -> String {
    let fixed = asked.equal.iter().map(|(path, _)| path);
    let along = asked.along();
    let used: Vec<&Path> = fixed.clone().chain(along).collect();
    let rest = collection.key.segments().map(|segment| &segment.path);
    let rest = rest.filter(|path| !used.contains(path));
    let placeholders: Vec<String> = fixed
        .map(|path| format!("{{{path}}}"))
        .chain(along.map(|path| along_which(collection, path, asked)))
        .chain(rest.map(|path| format!("{{{path}}}")))
        .collect();
    format!("{}:index:NAME:{}", collection.name, placeholders.join(":"))
}

/// The placeholder of the field with the range or the order. Plain text can be searched by prefix,
/// but has no order unless it is `sorted`. A `desc` segment has no prefixes.
fn along_which(collection: &Collection, path: &Path, asked: &CheckedQuery) -> String {
    let kind = collection.fields.get(path).map(|field| &field.kind);
    let is_text = kind == Some(&FieldKind::Key(Kind::Text));
    let is_prefix = matches!(asked.range, Some((_, Span::Prefix(_))));
    let is_desc = matches!(asked.order, Some((_, Order::Descending)));
    let sorted = if is_text && (asked.order.is_some() || !is_prefix) { " sorted" } else { "" };
    let desc = if is_desc && !is_prefix { " desc" } else { "" };
    format!("{{{path}{sorted}{desc}}}")
}
