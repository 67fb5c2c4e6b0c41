//! The parts of a typed query, before it becomes a [`Query`].

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::blocking::Runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Span;
use crate::query::{Alternative, Order, Query};
use crate::schema::Test;
use crate::store::Collection;

/// The parts of a typed query. [`TypedQuery`](super::TypedQuery) and the types that
/// `#[derive(Record)]` makes add to them step by step.
pub struct QueryParts<T> {
    pub(super) of: Collection<T>,
    pub(super) runtime: Option<Arc<Runtime>>,
    /// The only branch, or those of a union.
    branches: Vec<Branch>,
    /// The segments that are not fixed yet.
    rest: &'static [&'static str],
    range: Option<(&'static str, Span)>,
    order: Option<(&'static str, Order)>,
    filters: Vec<(String, Test)>,
    limit: Option<usize>,
    scan: bool,
    /// Why the sides of a union do not fit together.
    disagreement: Option<&'static str>,
}

/// One index with the values of its first segments.
#[derive(Clone, Debug)]
struct Branch {
    /// The index; `None` for the record's own key.
    index: Option<&'static str>,
    equal: Vec<(&'static str, Value)>,
}

impl<T> QueryParts<T> {
    pub(super) fn new(
        of: Collection<T>,
        runtime: Option<Arc<Runtime>>,
        index: Option<&'static str>,
        paths: &'static [&'static str],
    ) -> Self {
        QueryParts {
            of,
            runtime,
            branches: vec![Branch { index, equal: Vec::new() }],
            rest: paths,
            range: None,
            order: None,
            filters: Vec::new(),
            limit: None,
            scan: false,
            disagreement: None,
        }
    }

    /// All records, in the order of their keys.
    pub(super) fn whole(of: Collection<T>, runtime: Option<Arc<Runtime>>) -> Self {
        QueryParts { scan: true, ..QueryParts::new(of, runtime, None, &[]) }
    }

    /// Fixes the next segment to a value.
    #[must_use]
    pub fn fix(mut self, value: Value) -> Self {
        if let Some((path, rest)) = self.rest.split_first() {
            for branch in &mut self.branches {
                branch.equal.push((path, value.clone()));
            }
            self.rest = rest;
        }
        self
    }

    /// Bounds the next segment.
    pub(super) fn within(mut self, span: Span) -> Self {
        self.range = self.rest.first().map(|path| (*path, span));
        self
    }

    /// Orders by the next segment.
    pub(super) fn ordered(mut self, order: Order) -> Self {
        self.order = self.rest.first().map(|path| (*path, order));
        self
    }

    pub(super) fn filtered(mut self, field: &str, test: Test) -> Self {
        self.filters.push((field.to_owned(), test));
        self
    }

    pub(super) fn limited(mut self, records: usize) -> Self {
        self.limit = Some(records);
        self
    }

    /// The union of two queries. Everything but the fixed segments must be the same in both.
    pub(super) fn or(mut self, other: &Self) -> Self {
        if self.rest != other.rest {
            self.disagreement = Some("the sides of a union must have the same segments left");
        } else if self.range != other.range {
            self.disagreement = Some("the sides of a union must have the same range");
        } else if self.order != other.order {
            self.disagreement = Some("the sides of a union must have the same order");
        } else if self.filters != other.filters || self.limit != other.limit {
            self.disagreement = Some("filters and limits of a union belong behind its last side");
        }
        self.disagreement = self.disagreement.or(other.disagreement);
        self.branches.extend(other.branches.iter().cloned());
        self
    }

    /// The same query for the untyped API.
    pub(super) fn query(&self) -> Result<Query> {
        let mut query = match &*self.branches {
            [Branch { index, equal }] => {
                let query = equal
                    .iter()
                    .fold(Query::new(), |query, (path, value)| query.equal(path, value.clone()));
                match index {
                    Some(name) => query.index(name),
                    None => query,
                }
            }
            _ => self.union()?,
        };
        query.range = self.range.clone().map(|(path, span)| (path.to_owned(), span));
        query.order = self.order.map(|(path, order)| (path.to_owned(), order));
        query.filters = self.filters.clone();
        query.limit = self.limit;
        query.scan = self.scan;
        Ok(query)
    }

    /// The query of a union. Equalities that all branches share become conditions of the whole
    /// query; each branch adds the one equality of its own.
    fn union(&self) -> Result<Query> {
        let refused =
            |reason| Error::new(ErrorKind::InvalidQuery, reason).with("collection", self.of.name());
        if let Some(reason) = self.disagreement {
            return Err(refused(reason));
        }
        let everywhere = |pair: &&(&'static str, Value)| {
            self.branches.iter().all(|branch| branch.equal.contains(pair))
        };
        let shared = self.branches.first().into_iter().flat_map(|branch| &branch.equal);
        let mut query = shared
            .filter(everywhere)
            .fold(Query::new(), |query, (path, value)| query.equal(path, value.clone()));
        for branch in &self.branches {
            let own: Vec<_> = branch.equal.iter().filter(|pair| !everywhere(pair)).collect();
            let [(path, value)] = own[..] else {
                return Err(refused("the sides of a union must differ in one field each"));
            };
            let (field, value) = ((*path).to_owned(), value.clone());
            let index = branch.index.map(str::to_owned);
            query.any.push(Alternative { field, value, index });
        }
        Ok(query)
    }
}

impl<T> Clone for QueryParts<T> {
    fn clone(&self) -> Self {
        QueryParts {
            of: self.of.clone(),
            runtime: self.runtime.clone(),
            branches: self.branches.clone(),
            rest: self.rest,
            range: self.range.clone(),
            order: self.order,
            filters: self.filters.clone(),
            limit: self.limit,
            scan: self.scan,
            disagreement: self.disagreement,
        }
    }
}

impl<T> fmt::Debug for QueryParts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.of.name(), self.query())
    }
}
