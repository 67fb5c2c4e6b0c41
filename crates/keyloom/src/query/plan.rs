//! Turns a query into the ranges of keys that answer it, or refuses it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::after::begin_after;
use super::checked::{CheckedQuery, checked};
use super::filter::Filter;
use super::fit::{Fit, agreeing, fits};
use super::predicate::Query;
use crate::engine::{Direction, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{KeyRefusal, Path};
use crate::schema::{Collection, Index};
use crate::space::Loaded;
use crate::space::Session;

/// How a query is answered: one range per branch, merged by the keys after each branch's prefix.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The schema that the plan was made with and is valid for.
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) collection: Arc<Collection>,
    pub(crate) branches: Vec<Branch>,
    /// The direction of reading that gives the wanted order.
    pub(crate) direction: Direction,
}

/// One contiguous range of keys.
#[derive(Debug)]
pub(crate) struct Branch {
    /// The index; `None` for the records themselves.
    pub(crate) index: Option<Arc<Index>>,
    /// How many leading segments are fixed.
    pub(crate) equal: usize,
    pub(crate) range: Range,
    /// The common prefix of the branch's keys. Branches are merged by the rest of their keys.
    pub(crate) prefix: Bytes,
    /// Fields that the query does not ask for, but without which a record has no entry in the
    /// index.
    pub(crate) presumed: Vec<Path>,
    /// Tests of records that the range does not guarantee.
    pub(super) filters: Vec<Filter>,
}

impl Plan {
    /// The indexes in use, as a cursor names them.
    pub(crate) fn index_names(&self) -> String {
        let names = self
            .branches
            .iter()
            .map(|branch| branch.index.as_ref().map_or("", |index| &index.name));
        names.collect::<Vec<_>>().join(",")
    }

    /// Whether filters may drop records.
    pub(super) fn filters(&self) -> bool {
        self.branches.iter().any(|branch| !branch.filters.is_empty())
    }

    /// Refuses to answer from entries alone if a filter needs the records.
    pub(super) fn check_entries_tell(&self, message: &'static str) -> Result<()> {
        let mut filters = self.branches.iter().flat_map(|branch| &branch.filters);
        match filters.next() {
            None => Ok(()),
            Some(filter) => Err(Error::new(ErrorKind::InvalidQuery, message)
                .with("collection", &self.collection.name)
                .with("filter", filter)),
        }
    }
}

/// Plans a query. `pinned` are the indexes of the cursor, if there is one.
pub(crate) fn plan(
    session: &Session,
    loaded: &Arc<Loaded>,
    collection: &Arc<Collection>,
    query: &Query,
    pinned: Option<&str>,
) -> Result<Plan> {
    let mut plan = plan_from_start(session, loaded, collection, query, pinned)?;
    if let Some(key) = &query.after {
        begin_after(&mut plan, key)?;
    }
    Ok(plan)
}

fn plan_from_start(
    session: &Session,
    loaded: &Arc<Loaded>,
    collection: &Arc<Collection>,
    query: &Query,
    pinned: Option<&str>,
) -> Result<Plan> {
    let mut branches = checked(session, collection, query)?;
    if let Some((path, owner)) = session.forced(collection) {
        branches.iter_mut().for_each(|asked| asked.imply(path, &owner));
    }
    let pinned: Option<Vec<&str>> = pinned.map(|names| names.split(',').collect());
    let mut fits_by_branch = Vec::new();
    for (place, asked) in branches.iter().enumerate() {
        let mut fits = fits(session, loaded, collection, query, asked)?;
        if let Some(pinned) = &pinned {
            let wanted = pinned.get(place).copied().unwrap_or_default();
            fits.retain(|fit| fit.index.as_ref().map_or("", |index| &index.name) == wanted);
        }
        fits_by_branch.push(fits);
    }
    let Some(chosen) = agreeing(collection, &fits_by_branch) else {
        if pinned.is_some_and(|names| names.iter().any(|name| !name.is_empty())) {
            // A position in one index has no meaning in another.
            let message = "an index that the cursor goes by no longer serves the query; begin anew";
            return Err(
                Error::new(ErrorKind::InvalidCursor, message).with("collection", &collection.name)
            );
        }
        return refuse_or_scan(session, loaded, collection, query, &branches);
    };
    let direction = chosen[0].direction;
    let branches = chosen
        .into_iter()
        .zip(&branches)
        .map(|(fit, asked)| branch(collection, fit, asked))
        .collect::<Result<Vec<_>>>()?;
    let (loaded, collection) = (loaded.clone(), collection.clone());
    Ok(Plan { loaded, collection, branches, direction })
}

fn branch(collection: &Collection, fit: Fit, asked: &CheckedQuery) -> Result<Branch> {
    let template = fit.template(collection);
    let values: Vec<&Value> = template
        .segments()
        .take(fit.equal)
        .filter_map(|segment| asked.value(&segment.path))
        .collect();
    let span = asked.range.as_ref().filter(|_| fit.is_ranged).map(|(_, span)| span);
    let area = fit.index.as_ref().map_or(&collection.area, |index| &index.area);
    let refused = |refusal: KeyRefusal| {
        let error = refusal.into_query_error().with("collection", &collection.name);
        match &fit.index {
            Some(index) => error.with("index", &index.name),
            None => error,
        }
    };
    let range = template.range(&values, span).map_err(refused)?.in_area(area.clone());
    let prefix = template.prefix(&values).map_err(refused)?;
    let range = if asked.is_void { nothing_of(range) } else { range };
    let Fit { index, equal, presumed, filters, .. } = fit;
    Ok(Branch { index, equal, range, prefix, presumed, filters })
}

/// An empty range at the start of this one.
pub(super) fn nothing_of(range: Range) -> Range {
    Range { end: Some(range.start.clone()), ..range }
}

fn refuse_or_scan(
    session: &Session,
    loaded: &Arc<Loaded>,
    collection: &Arc<Collection>,
    query: &Query,
    branches: &[CheckedQuery],
) -> Result<Plan> {
    let [asked @ CheckedQuery { index: None, .. }] = branches else {
        return Err(super::explain::no_index(loaded, collection, branches));
    };
    if !query.scan {
        return Err(super::explain::no_index(loaded, collection, branches));
    }
    let refused =
        |message| Error::new(ErrorKind::InvalidQuery, message).with("collection", &collection.name);
    if asked.order.is_some() {
        return Err(refused("a scan gives records in the order of their keys only"));
    }
    let equal = asked.equal.iter().map(|(path, value)| Filter::equal(path, value));
    let mut filters: Vec<Filter> = asked.filters.iter().cloned().chain(equal).collect();
    if let Some((path, span)) = &asked.range {
        let within = Filter::within(path, span);
        filters.push(within.ok_or_else(|| refused("a scan cannot test how a text begins"))?);
    }
    let range = match session.confine(collection, None)? {
        Some(own) if asked.is_void => nothing_of(own),
        Some(own) => own,
        None => collection.record_range()?,
    };
    let (prefix, presumed) = (range.start.clone(), Vec::new());
    let branch = Branch { index: None, equal: 0, range, prefix, presumed, filters };
    let (loaded, collection) = (loaded.clone(), collection.clone());
    Ok(Plan { loaded, collection, branches: vec![branch], direction: Direction::Forward })
}
