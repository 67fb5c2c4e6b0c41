//! A query after parsing: its paths, its values, and what they say about a record.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::checks::Checks;
use super::filter::{Filter, tests_of};
use super::implication::proves;
use super::predicate::{Alternative, Order, Query};
use crate::error::Result;
use crate::key::{Kind, Path, Span};
use crate::schema::{Collection, Condition, FieldKind, Test};
use crate::space::Session;

/// One branch of a query. Its names are names that records can have, and its values fit the
/// declared types of their fields.
#[derive(Clone, Debug)]
pub(super) struct CheckedQuery {
    pub(super) equal: Vec<(Path, Value)>,
    pub(super) range: Option<(Path, Span)>,
    pub(super) order: Option<(Path, Order)>,
    /// Tests that apply after reading, whichever index answers.
    pub(super) filters: Vec<Filter>,
    /// The index that must answer.
    pub(super) index: Option<String>,
    /// The query asks for what the caller may not see, and finds nothing.
    pub(super) is_void: bool,
}

/// One query per branch of the union, or a single one without a union.
pub(super) fn checked(
    session: &Session,
    collection: &Collection,
    query: &Query,
) -> Result<Vec<CheckedQuery>> {
    let index = query.index.as_ref().and_then(|name| collection.indexes.get(name));
    let checks = Checks { session, collection, index: index.map(Arc::as_ref) };
    let pair = |field: &str, value: &Value| {
        let path = checks.path(field)?;
        checks.value(&path, value)?;
        Ok((path, value.clone()))
    };
    let equal = query.equal.iter().map(|(field, value)| pair(field, value));
    let range = query.range.as_ref().map(|(field, span)| -> Result<_> {
        let path = checks.path(field)?;
        checks.span(&path, span)?;
        Ok((path, span.clone()))
    });
    let order = query.order.as_ref().map(|(field, order)| -> Result<_> {
        let path = checks.path(field)?;
        checks.span(&path, &EVERYTHING)?;
        Ok((path, *order))
    });
    let filters = query.filters.iter().map(|(field, test)| {
        let path = checks.path(field)?;
        checks.test(&path, test)?;
        Ok(Filter { path, tests: vec![test.clone()] })
    });
    let base = CheckedQuery {
        equal: equal.collect::<Result<_>>()?,
        range: range.transpose()?,
        order: order.transpose()?,
        filters: filters.collect::<Result<_>>()?,
        index: query.index.clone(),
        is_void: false,
    };
    if query.any.is_empty() {
        return Ok(vec![base]);
    }
    let branch = |alternative: &Alternative| {
        let mut asked = base.clone();
        asked.equal.push(pair(&alternative.field, &alternative.value)?);
        asked.index = alternative.index.clone().or(asked.index);
        Ok(asked)
    };
    query.any.iter().map(branch).collect()
}

/// The range of a field that the query only orders by.
const EVERYTHING: Span = Span::Between(Bound::Unbounded, Bound::Unbounded);

impl CheckedQuery {
    /// A query with only equalities.
    pub(super) fn equalities(
        session: &Session,
        collection: &Collection,
        equal: &[(String, Value)],
    ) -> Result<Self> {
        let query = Query { equal: equal.to_vec(), ..Query::new() };
        checked(session, collection, &query).map(|mut branches| branches.swap_remove(0))
    }

    pub(super) fn value(&self, path: &Path) -> Option<&Value> {
        self.equal.iter().find(|(asked, _)| asked == path).map(|(_, value)| value)
    }

    /// Adds an equality that follows from the query.
    pub(super) fn imply(&mut self, path: &Path, value: &Value) {
        let mut asked = self.equal.iter().filter(|(asked, _)| asked == path).peekable();
        if asked.peek().is_none() {
            self.equal.push((path.clone(), value.clone()));
        } else {
            self.is_void = asked.any(|(_, asked)| asked != value);
        }
    }

    /// Whether it has no conditions and no order, apart from filters.
    pub(super) fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// The field that the answer is ordered by: that of the range or of the order.
    pub(super) fn along(&self) -> Option<&Path> {
        let ranged = self.range.as_ref().map(|(path, _)| path);
        ranged.or(self.order.as_ref().map(|(path, _)| path))
    }

    /// Whether a scan of all records can answer it. A scan has only one order, and does not test
    /// text prefixes.
    pub(super) fn can_be_scanned_for(&self) -> bool {
        self.order.is_none() && !matches!(self.range, Some((_, Span::Prefix(_))))
    }

    /// Every field that the query names, apart from filters.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let fixed = self.equal.iter().map(|(path, _)| path);
        let ranged = self.range.iter().map(|(path, _)| path);
        fixed.chain(ranged).chain(self.order.iter().map(|(path, _)| path))
    }

    /// Whether it names elements of an array or a map.
    pub(super) fn is_about_elements(&self) -> bool {
        self.paths().any(|path| path.star().is_some())
    }

    /// All its conditions as tests of records; `None` if no test expresses one of them.
    pub(super) fn filters_all(&self) -> Option<Vec<Filter>> {
        let equal = self.equal.iter().map(|(path, value)| Filter::equal(path, value));
        let mut all: Vec<Filter> = equal.chain(self.filters.iter().cloned()).collect();
        if let Some((path, span)) = &self.range {
            all.push(Filter::within(path, span)?);
        }
        let order = self.order.iter();
        all.extend(
            order.map(|(path, _)| Filter { path: path.clone(), tests: vec![Test::Present] }),
        );
        Some(all)
    }

    /// Whether every record that the query selects meets a condition, judged by the query and the
    /// declared types of its fields.
    pub(super) fn implies(&self, collection: &Collection, condition: &Condition) -> bool {
        condition.tests.iter().all(|(path, test)| {
            let known = self.known(collection, path);
            let known: Vec<&Test> = known.iter().map(Cow::as_ref).collect();
            proves(&known, kind_of(collection, path), test)
        })
    }

    /// Whether every record that the query selects has a value at a path without `*`.
    pub(super) fn demands(&self, collection: &Collection, path: &Path) -> bool {
        self.known(collection, path).iter().any(|test| **test != Test::Missing)
    }

    /// Whether the query selects records without a value at a path.
    pub(super) fn is_without(&self, path: &Path) -> bool {
        let is_missing = |filter: &Filter| filter.path == *path && filter.tests == [Test::Missing];
        self.filters.iter().any(is_missing)
    }

    /// Tests that every record of the query passes at a path without `*`.
    fn known(&self, collection: &Collection, path: &Path) -> Vec<Cow<'_, Test>> {
        let fixed = self.equal.iter().filter(|(asked, _)| asked == path);
        let fixed = fixed.map(|(_, value)| Cow::Owned(Test::Equals(value.clone())));
        let range = self.range.iter().filter(|(asked, _)| asked == path);
        let range = range.flat_map(|(_, span)| tests_of(span)).map(Cow::Owned);
        let filters = self.filters.iter().filter(|filter| filter.path == *path);
        let filters = filters.flat_map(|filter| &filter.tests).map(Cow::Borrowed);
        // An answer in the order of a field has only records with that field, and a key has all its
        // fields. A required field proves nothing: older records may lack it.
        let is_ordered = self.order.as_ref().is_some_and(|(ordered, _)| ordered == path);
        let is_present = is_ordered || collection.key_paths.contains(path);
        let present = is_present.then_some(Cow::Owned(Test::Present));
        fixed.chain(range).chain(filters).chain(present).collect()
    }
}

/// Whether every record that meets a condition passes a filter.
pub(super) fn ensures(collection: &Collection, condition: &Condition, filter: &Filter) -> bool {
    let known: Vec<&Test> = condition.tests_of(&filter.path).collect();
    let kind = kind_of(collection, &filter.path);
    filter.tests.iter().all(|test| proves(&known, kind, test))
}

fn kind_of<'c>(collection: &'c Collection, path: &Path) -> Option<&'c Kind> {
    match &collection.fields.get(path)?.kind {
        FieldKind::Key(kind) => Some(kind),
        FieldKind::RecordPoint { .. } | FieldKind::Map => None,
    }
}
