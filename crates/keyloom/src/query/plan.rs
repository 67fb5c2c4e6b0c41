//! Picks the index that answers a query by one contiguous range, or refuses.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::after::begin_after;
use super::predicate::{Order, Query};
use crate::engine::{Direction, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Codec, KeyRefusal, Path, Segment, Span, Template, TemplatePart};
use crate::schema::{Collection, Condition, Holds, Index, IndexKind, Loaded, Test};
use crate::session::Session;

/// How a query is answered: one range per branch, merged by what follows the branch's prefix.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The schema that it was made by, and holds under.
    pub(crate) loaded: Arc<Loaded>,
    pub(crate) collection: Arc<Collection>,
    pub(crate) branches: Vec<Branch>,
    /// The direction in which keys are read for the order that was asked for.
    pub(crate) direction: Direction,
    /// Tests on records that the ranges do not guarantee. Those of one filter must all hold for
    /// one value of the field.
    pub(crate) filters: Vec<(Path, Vec<Test>)>,
}

/// One contiguous range of keys.
#[derive(Debug)]
pub(crate) struct Branch {
    /// The index; `None` for the records themselves.
    pub(crate) index: Option<Arc<Index>>,
    /// How many leading segments are fixed.
    pub(crate) equal: usize,
    pub(crate) range: Range,
    /// What all keys of the branch begin with. Branches are merged by what follows it.
    pub(crate) prefix: Bytes,
    /// Fields that nobody asked for, and without which a record has no entry in the index.
    pub(crate) presumed: Vec<Path>,
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
}

/// A query whose paths are read and that stands for one branch.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) equal: Vec<(Path, Value)>,
    pub(super) range: Option<(Path, Span)>,
    pub(super) order: Option<(Path, Order)>,
    /// It asks for what the caller may not see, and is answered as if nothing were there.
    is_void: bool,
}

impl Asked {
    fn value(&self, path: &Path) -> Option<&Value> {
        self.equal.iter().find(|(asked, _)| asked == path).map(|(_, value)| value)
    }

    /// Adds an equality that the question implies.
    fn imply(&mut self, path: &Path, value: &Value) {
        let mut asked = self.equal.iter().filter(|(asked, _)| asked == path).peekable();
        if asked.peek().is_none() {
            self.equal.push((path.clone(), value.clone()));
        } else {
            self.is_void = asked.any(|(_, asked)| asked != value);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// The field whose order the question runs along, by its range or its order.
    pub(super) fn along(&self) -> Option<&Path> {
        let ranged = self.range.as_ref().map(|(path, _)| path);
        ranged.or(self.order.as_ref().map(|(path, _)| path))
    }

    /// Whether a scan of all records would answer it. Scans have one order, and do not look at
    /// how texts begin.
    pub(super) fn can_be_scanned_for(&self) -> bool {
        self.order.is_none() && !matches!(self.range, Some((_, Span::Prefix(_))))
    }

    /// Every field that the question is about.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let fixed = self.equal.iter().map(|(path, _)| path);
        let ranged = self.range.iter().map(|(path, _)| path);
        fixed.chain(ranged).chain(self.order.iter().map(|(path, _)| path))
    }

    /// Whether it is about elements of an array or a map.
    pub(super) fn is_about_elements(&self) -> bool {
        self.paths().any(|path| path.star().is_some())
    }
}

/// A way to answer one branch.
#[derive(Clone, Debug)]
struct Fit {
    index: Option<Arc<Index>>,
    equal: usize,
    direction: Direction,
    presumed: Vec<Path>,
}

impl Fit {
    fn template<'c>(&'c self, collection: &'c Collection) -> &'c Template {
        self.index.as_ref().map_or(&collection.key, |index| &index.key)
    }

    /// Better fits are less: those that presume fewer fields, and so miss fewer records; then
    /// those with fewer reads per record.
    fn rank(&self) -> (usize, u8) {
        let reads = match &self.index {
            None => 0,
            Some(index) if index.holds == Holds::Record => 1,
            Some(_) => 2,
        };
        (self.presumed.len(), reads)
    }
}

/// Plans a query. `pinned` are the indexes that a cursor was made with.
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
    let mut branches = asked(collection, query)?;
    if let Some((path, owner)) = session.forced(collection) {
        branches.iter_mut().for_each(|asked| asked.imply(path, &owner));
    }
    let filters = query
        .filters
        .iter()
        .map(|(field, test)| Ok((read_path(collection, field)?, vec![test.clone()])))
        .collect::<Result<Vec<_>>>()?;
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
            // A position in an index means nothing anywhere else.
            let message = "an index that the cursor goes by no longer serves the query; begin anew";
            return Err(
                Error::new(ErrorKind::InvalidCursor, message).with("collection", &collection.name)
            );
        }
        return refuse_or_scan(session, loaded, collection, query, &branches, filters);
    };
    let direction = chosen[0].direction;
    let branches = chosen
        .iter()
        .zip(&branches)
        .map(|(fit, asked)| branch(collection, fit, asked))
        .collect::<Result<Vec<_>>>()?;
    let (loaded, collection) = (loaded.clone(), collection.clone());
    Ok(Plan { loaded, collection, branches, direction, filters })
}

/// One question per branch of the union; one in all where there is no union.
fn asked(collection: &Collection, query: &Query) -> Result<Vec<Asked>> {
    let pair =
        |(field, value): &(String, Value)| Ok((read_path(collection, field)?, value.clone()));
    let base = Asked {
        equal: query.equal.iter().map(pair).collect::<Result<_>>()?,
        range: match &query.range {
            Some((field, span)) => Some((read_path(collection, field)?, span.clone())),
            None => None,
        },
        order: match &query.order {
            Some((field, order)) => Some((read_path(collection, field)?, *order)),
            None => None,
        },
        is_void: false,
    };
    if query.any.is_empty() {
        return Ok(vec![base]);
    }
    query
        .any
        .iter()
        .map(|alternative| {
            let mut asked = base.clone();
            asked.equal.push(pair(alternative)?);
            Ok(asked)
        })
        .collect()
}

fn read_path(collection: &Collection, field: &str) -> Result<Path> {
    let refused = |message| {
        Error::new(ErrorKind::InvalidQuery, message)
            .with("collection", &collection.name)
            .with("field", field)
    };
    let path = Path::parse(field)
        .map_err(|reason| refused("a field's name cannot be read").with("reason", reason))?;
    if collection.counters.is_asked_by(&path) {
        return Err(refused("this is a counter, which neither indexes nor filters see"));
    }
    Ok(path)
}

/// Every way to answer one branch, the best first.
fn fits(
    session: &Session,
    loaded: &Loaded,
    collection: &Arc<Collection>,
    query: &Query,
    asked: &Asked,
) -> Result<Vec<Fit>> {
    if let Some(name) = &query.index {
        let index = collection.asked_index(name)?;
        session.check_readable(loaded, collection, index)?;
        session.confine(collection, Some(index))?;
        refuse_places(collection, index, asked)?;
        return Ok(fit(collection, Some(index), asked).into_iter().collect());
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let mut fits: Vec<Fit> = fit(collection, None, asked).into_iter().collect();
    let mut unreadable = None;
    for index in collection.asked_indexes().filter(|index| index.kind != IndexKind::Geo) {
        // It has a record once for each element, which is an answer to no other question.
        if index.star.is_some() && !asked.is_about_elements() {
            continue;
        }
        if !index.condition.as_ref().is_none_or(|condition| implies(asked, condition)) {
            continue;
        }
        let Some(found) = fit(collection, Some(index), asked) else { continue };
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
            fits.sort_by_key(Fit::rank);
            Ok(fits)
        }
    }
}

/// Refuses to take the places of a cell for one place.
fn refuse_places(collection: &Collection, index: &Index, asked: &Asked) -> Result<()> {
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

/// Whether keys of the index, or of the records themselves, answer what is asked by one
/// contiguous range in its order.
fn fit(collection: &Collection, index: Option<&Arc<Index>>, asked: &Asked) -> Option<Fit> {
    let template = index.map_or(&collection.key, |index| &index.key);
    let segments: Vec<&Segment> = template.segments().collect();
    let equal = segments.iter().take_while(|segment| asked.value(&segment.path).is_some()).count();
    if equal < asked.equal.len() {
        return None;
    }
    let next = segments.get(equal);
    if let Some((path, span)) = &asked.range {
        let next = next.filter(|next| next.path == *path)?;
        let served = match span {
            Span::Between(..) => next.codec.is_ordered(),
            Span::Prefix(_) => next.codec.has_prefixes() && !next.desc,
        };
        if !served {
            return None;
        }
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
    let presumed = presumed(collection, index, asked);
    Some(Fit { index: index.cloned(), equal, direction, presumed })
}

/// Fields that nobody asked for, and without which a record has no entry in the index.
fn presumed(collection: &Collection, index: Option<&Arc<Index>>, asked: &Asked) -> Vec<Path> {
    let Some(index) = index.filter(|index| index.sparse) else { return Vec::new() };
    let is_certain = |path: &Path| {
        asked.paths().any(|asked| asked == path)
            || collection.fields.get(path).is_some_and(|field| field.required)
    };
    index
        .key
        .segments()
        .map(|segment| &segment.path)
        .filter(|path| !is_certain(path))
        .cloned()
        .collect()
}

/// Whether every record that is asked for meets the condition of a partial index.
fn implies(asked: &Asked, condition: &Condition) -> bool {
    condition
        .tests
        .iter()
        .all(|(path, test)| asked.value(path).is_some_and(|value| test.holds(Some(value))))
}

/// One fit per branch such that all can be merged: what follows the fixed segments is the same
/// everywhere and ends in the record's key.
fn agreeing(collection: &Collection, fits_by_branch: &[Vec<Fit>]) -> Option<Vec<Fit>> {
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

/// Whether a record has one key at most with what precedes the tail. Otherwise it would come again
/// at another position, where nothing tells that it was there before.
fn is_once(tail: &[TemplatePart]) -> bool {
    !tail
        .iter()
        .any(|part| matches!(part, TemplatePart::Segment(segment) if segment.path.star().is_some()))
}

fn branch(collection: &Collection, fit: &Fit, asked: &Asked) -> Result<Branch> {
    let template = fit.template(collection);
    let values: Vec<&Value> = template
        .segments()
        .take(fit.equal)
        .filter_map(|segment| asked.value(&segment.path))
        .collect();
    let span = asked.range.as_ref().map(|(_, span)| span);
    let area = fit.index.as_ref().map_or(&collection.area, |index| &index.area);
    let refused = |refusal: KeyRefusal| {
        let error = refusal.into_query_error().with("collection", &collection.name);
        match &fit.index {
            Some(index) => error.with("index", &index.name),
            None => error,
        }
    };
    let range = template.range(&values, span).map_err(refused)?.in_area(area.clone());
    Ok(Branch {
        index: fit.index.clone(),
        equal: fit.equal,
        range: if asked.is_void { nothing_of(range) } else { range },
        prefix: template.prefix(&values).map_err(refused)?,
        presumed: fit.presumed.clone(),
    })
}

/// No key of a range.
pub(super) fn nothing_of(range: Range) -> Range {
    Range { end: Some(range.start.clone()), ..range }
}

fn refuse_or_scan(
    session: &Session,
    loaded: &Arc<Loaded>,
    collection: &Arc<Collection>,
    query: &Query,
    branches: &[Asked],
    mut filters: Vec<(Path, Vec<Test>)>,
) -> Result<Plan> {
    let ([asked], true, None) = (branches, query.scan, &query.index) else {
        return Err(super::explain::no_index(loaded, collection, query, branches));
    };
    if query.order.is_some() {
        return Err(Error::new(
            ErrorKind::InvalidQuery,
            "a scan gives records in the order of their keys only",
        )
        .with("collection", &collection.name));
    }
    filters.extend(
        asked.equal.iter().map(|(path, value)| (path.clone(), vec![Test::Equals(value.clone())])),
    );
    if let Some((path, span)) = &asked.range {
        filters.push((path.clone(), span_tests(collection, span)?));
    }
    let range = match session.confine(collection, None)? {
        Some(own) if asked.is_void => nothing_of(own),
        Some(own) => own,
        None => collection.record_range()?,
    };
    let (prefix, presumed) = (range.start.clone(), Vec::new());
    let branch = Branch { index: None, equal: 0, range, prefix, presumed };
    Ok(Plan {
        loaded: loaded.clone(),
        collection: collection.clone(),
        branches: vec![branch],
        direction: Direction::Forward,
        filters,
    })
}

/// What a value between two bounds fulfils. Without bounds it is there, as in an index.
fn span_tests(collection: &Collection, span: &Span) -> Result<Vec<Test>> {
    use std::ops::Bound;
    let Span::Between(lower, upper) = span else {
        return Err(Error::new(ErrorKind::InvalidQuery, "a scan cannot test how a text begins")
            .with("collection", &collection.name));
    };
    let lower = match lower {
        Bound::Included(value) => Some(Test::AtLeast(value.clone())),
        Bound::Excluded(value) => Some(Test::Greater(value.clone())),
        Bound::Unbounded => None,
    };
    let upper = match upper {
        Bound::Included(value) => Some(Test::AtMost(value.clone())),
        Bound::Excluded(value) => Some(Test::Less(value.clone())),
        Bound::Unbounded => None,
    };
    let bounds: Vec<Test> = lower.into_iter().chain(upper).collect();
    Ok(if bounds.is_empty() { vec![Test::Present] } else { bounds })
}
