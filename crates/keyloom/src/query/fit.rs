//! Finds the indexes that answer a query, and ranks them.

use std::sync::Arc;

use super::checked::{CheckedQuery, ensures};
use super::filter::Filter;
use super::predicate::{Order, Query};
use crate::engine::Direction;
use crate::error::{Error, ErrorKind, Result};
use crate::json::same_value;
use crate::key::{Codec, Path, Segment, Span, Template, TemplatePart};
use crate::schema::{Collection, Holds, Index, IndexKind};
use crate::space::Loaded;
use crate::space::Session;

/// One way to answer a branch of a query.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The index; `None` for the records themselves.
    pub(super) index: Option<Arc<Index>>,
    /// How many leading segments are fixed.
    pub(super) equal: usize,
    /// Whether the next segment serves the range.
    pub(super) is_ranged: bool,
    pub(super) direction: Direction,
    /// Fields that the query does not ask for, but without which a record has no entry in the
    /// index.
    pub(super) presumed: Vec<Path>,
    /// Conditions that neither the segments nor the condition of the index guarantee.
    pub(super) filters: Vec<Filter>,
}

impl Fit {
    pub(super) fn template<'c>(&'c self, collection: &'c Collection) -> &'c Template {
        self.index.as_ref().map_or(&collection.key, |index| &index.key)
    }

    /// Better fits come first. First come fits that need no filters besides the query's own. Among
    /// these come first those that presume fewer fields, and so miss fewer records; then those with
    /// fewer reads per record.
    fn rank(&self, asked: &CheckedQuery) -> (usize, usize, u8) {
        let added = self.filters.iter().filter(|filter| !asked.filters.contains(filter)).count();
        let reads = match &self.index {
            None => 0,
            Some(index) if index.holds == Holds::Record => 1,
            Some(_) => 2,
        };
        (added, self.presumed.len(), reads)
    }
}

/// Every way to answer one branch, best first.
pub(super) fn fits(
    session: &Session,
    loaded: &Loaded,
    collection: &Arc<Collection>,
    query: &Query,
    asked: &CheckedQuery,
) -> Result<Vec<Fit>> {
    if let Some(name) = &asked.index {
        let index = collection.asked_index(name)?;
        session.check_readable(loaded, collection, index)?;
        session.confine(collection, Some(index))?;
        refuse_places(collection, index, asked)?;
        return Ok(fit(collection, Some(index), asked).into_iter().collect());
    }
    if asked.is_empty() {
        // The record keys list all records in order, and a page reads no more of them than it
        // returns. With a filter it might read all of them, which only a scan may do.
        let is_listed = asked.filters.is_empty();
        return Ok(fit(collection, None, asked).filter(|_| is_listed).into_iter().collect());
    }
    let mut fits: Vec<Fit> = fit(collection, None, asked).into_iter().collect();
    let mut unreadable = None;
    for index in collection.asked_indexes() {
        let condition = index.condition.as_ref();
        if !condition.is_none_or(|condition| asked.implies(collection, condition)) {
            continue;
        }
        let Some(found) = fit_unnamed(collection, index, asked) else { continue };
        if session.confine(collection, Some(index)).is_err() {
            continue;
        }
        match session.check_readable(loaded, collection, index) {
            Ok(()) => fits.push(found),
            Err(error) => unreadable = Some(error),
        }
    }
    match unreadable {
        Some(error) if fits.is_empty() && !query.scan => Err(error),
        _ => {
            fits.sort_by_key(|fit| fit.rank(asked));
            Ok(fits)
        }
    }
}

/// As [`fit`], for an index that the query does not name.
pub(super) fn fit_unnamed(
    collection: &Collection,
    index: &Arc<Index>,
    asked: &CheckedQuery,
) -> Option<Fit> {
    // An index over elements lists a record once for each element, so it serves only queries about
    // elements.
    let is_of_elements = index.star.is_some() && !asked.is_about_elements();
    // A sparse index has no records without the field, so it does not serve a query for them. If
    // the query also asks for a value of the field, nothing matches, and any index may say so.
    let is_wanted = |path: &Path| asked.paths().any(|asked| asked == path);
    let is_unknown = |path: &Path| asked.is_without(path) && !is_wanted(path);
    let is_of_others =
        index.sparse && index.key.segments().any(|segment| is_unknown(&segment.path));
    if index.kind == IndexKind::Geo || is_of_elements || is_of_others {
        return None;
    }
    fit(collection, Some(index), asked)
}

/// Refuses a condition on places for a geo index: its keys have cells, which hold many places each.
fn refuse_places(collection: &Collection, index: &Index, asked: &CheckedQuery) -> Result<()> {
    let is_place = |path: &Path| {
        let mut segments = index.key.segments().filter(|segment| segment.path == *path);
        segments.any(|segment| matches!(segment.codec, Codec::Geohash { .. }))
    };
    let equal = asked.equal.iter().any(|(path, value)| value.is_object() && is_place(path));
    let between =
        asked.range.iter().any(|(path, span)| matches!(span, Span::Between(..)) && is_place(path));
    if !equal && !between {
        return Ok(());
    }
    let message = "a geo index has cells, not places; search near a place instead";
    Err(Error::new(ErrorKind::InvalidQuery, message)
        .with("collection", &collection.name)
        .with("index", &index.name))
}

/// How one contiguous range of an index, or of the records themselves, answers the query in its
/// order; `None` if it cannot. Conditions that the segments do not serve must be on fields that the
/// index's condition tests. Either that condition guarantees them, or they become filters.
fn fit(collection: &Collection, index: Option<&Arc<Index>>, asked: &CheckedQuery) -> Option<Fit> {
    let template = index.map_or(&collection.key, |index| &index.key);
    let condition = index.and_then(|index| index.condition.as_ref());
    let segments: Vec<&Segment> = template.segments().collect();
    let equal = segments.iter().take_while(|segment| asked.value(&segment.path).is_some()).count();
    let (fixed, next) = (&segments[..equal], segments.get(equal));
    let is_fixed = |path: &Path| fixed.iter().any(|segment| segment.path == *path);
    let is_first = |path: &Path, value| asked.value(path).is_some_and(|it| same_value(it, value));
    let mut left: Vec<Filter> = asked
        .equal
        .iter()
        .filter(|(path, value)| !(is_fixed(path) && is_first(path, value)))
        .map(|(path, value)| Filter::equal(path, value))
        .collect();
    let mut is_ranged = false;
    if let Some((path, span)) = &asked.range {
        is_ranged = next.is_some_and(|next| next.path == *path && serves(next, span));
        if !is_ranged {
            left.push(Filter::within(path, span)?);
        }
    }
    let is_tested = |filter: &Filter| {
        condition.is_some_and(|condition| condition.tests_of(&filter.path).next().is_some())
    };
    if !left.iter().all(is_tested) {
        return None;
    }
    let direction = match &asked.order {
        None => Direction::Forward,
        Some((path, _)) if asked.value(path).is_some() => Direction::Forward,
        Some((path, order)) => {
            let next = next.filter(|next| next.path == *path && next.codec.is_ordered())?;
            match (*order == Order::Descending) == next.desc {
                true => Direction::Forward,
                false => Direction::Backward,
            }
        }
    };
    let mut filters: Vec<Filter> = left.into_iter().chain(asked.filters.iter().cloned()).collect();
    if let Some(condition) = condition {
        filters.retain(|filter| !ensures(collection, condition, filter));
    }
    let presumed = presumed(collection, index, asked);
    Some(Fit { index: index.cloned(), equal, is_ranged, direction, presumed, filters })
}

fn serves(segment: &Segment, span: &Span) -> bool {
    match span {
        Span::Between(..) => segment.codec.is_ordered(),
        Span::Prefix(_) => segment.codec.has_prefixes() && !segment.desc,
    }
}

/// Fields that the query does not ask for, but without which a record has no entry in the index.
fn presumed(
    collection: &Collection,
    index: Option<&Arc<Index>>,
    asked: &CheckedQuery,
) -> Vec<Path> {
    let Some(index) = index.filter(|index| index.sparse) else { return Vec::new() };
    let is_certain = |path: &Path| {
        asked.paths().any(|asked| asked == path)
            || collection.fields.get(path).is_some_and(|field| field.required)
            || asked.demands(collection, path)
    };
    index
        .key
        .segments()
        .map(|segment| &segment.path)
        .filter(|path| !is_certain(path))
        .cloned()
        .collect()
}

/// One fit per branch, so that the branches can be merged: after the fixed segments, the templates
/// of all branches are the same and end in the record's key.
pub(super) fn agreeing(collection: &Collection, fits_by_branch: &[Vec<Fit>]) -> Option<Vec<Fit>> {
    let (first, others) = fits_by_branch.split_first()?;
    first.iter().find_map(|candidate| {
        let tail = tail(candidate.template(collection), candidate.equal);
        let can_be_merged = names_record(collection, tail) && is_once(tail);
        if !others.is_empty() && !can_be_merged {
            return None;
        }
        let rest = others.iter().map(|fits| {
            fits.iter().find(|fit| {
                fit.direction == candidate.direction
                    && self::tail(fit.template(collection), fit.equal) == tail
            })
        });
        let rest: Vec<Fit> = rest.map(|found| found.cloned()).collect::<Option<_>>()?;
        Some(std::iter::once(candidate.clone()).chain(rest).collect())
    })
}

/// The parts of a template from segment number `equal` on.
fn tail(template: &Template, equal: usize) -> &[TemplatePart] {
    let place = template
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| matches!(part, TemplatePart::Segment(_)))
        .nth(equal)
        .map_or(template.parts.len(), |(place, _)| place);
    &template.parts[place..]
}

fn names_record(collection: &Collection, tail: &[TemplatePart]) -> bool {
    collection.key_paths.iter().all(|path| {
        tail.iter()
            .any(|part| matches!(part, TemplatePart::Segment(segment) if segment.path == *path))
    })
}

/// Whether a record has at most one key before the tail. Otherwise a merge would find it again at
/// another position, and could not tell that it had been there before.
fn is_once(tail: &[TemplatePart]) -> bool {
    !tail
        .iter()
        .any(|part| matches!(part, TemplatePart::Segment(segment) if segment.path.star().is_some()))
}
