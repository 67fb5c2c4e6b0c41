//! Reads rings of growing radius around a place until a page is full.
//!
//! A ring is read by the index cells that it touches. If those hold many places, the search tries a
//! narrower ring, as long as it touches fewer cells: reading the same cells again would find
//! nothing new. Far away, even a narrow ring touches large cells; then it is covered by many small
//! ones instead. Places outside the ring are dropped as they are read, so only the page bounds the
//! memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::cover::{CELLS_MAX, cover, cover_finely};
use super::near::{Near, Nearby, refused};
use super::nearest::{Nearest, Room};
use super::rank::Rank;
use super::ring::Ring;
use super::sphere::{DISTANCE_M_MAX, GeoPoint};
use crate::engine::Direction;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Codec, Path, Segment, Span, shortened};
use crate::query::checked::{CheckedQuery, ensures};
use crate::query::cursor::{Binding, Cursor, Position};
use crate::query::filter::Filter;
use crate::query::page::{Page, Problem, Stopped, weight};
use crate::query::plan::{Branch, Plan, nothing_of};
use crate::query::reader::{Reader, Resolved, unreadable};
use crate::query::walk::{Found, Walk, Want};
use crate::record::Document;
use crate::schema::{Collection, Index};
use crate::space::Loaded;
use crate::space::Session;

/// If the cells of a ring hold more places than this, fewer or smaller cells are tried.
const PLACES_MAX: usize = 2_000;

/// Into how many attempts a page divides its limit.
const ATTEMPTS: usize = 16;

/// How many entries of each cell one read asks for.
const CHUNK_MIN: usize = 8;
const CHUNK_MAX: usize = 200;

/// How many entries of all cells together one read asks for, when the page has a limit of bytes.
const CHUNK_WEIGHED: usize = 64;

/// A narrower ring than this is not halved any more: all its places are about equally far away.
const STEP_M_MIN: f64 = 0.5;

/// A search around one place.
pub(super) struct Search<'s> {
    session: &'s Session,
    loaded: &'s Arc<Loaded>,
    collection: &'s Arc<Collection>,
    index: &'s Arc<Index>,
    near: &'s Near,
    /// The values before the geohash.
    fixed: Vec<Value>,
    /// Conditions on other fields that the index's condition does not guarantee.
    filters: Vec<Filter>,
    geohash: &'s Segment,
    chars: u8,
    /// The query asks for what the caller may not see, and finds nothing.
    is_void: bool,
}

/// The outcome of reading the cells of a ring.
enum Read {
    /// The nearest places of the ring.
    All { found: BTreeMap<Rank, Document>, is_cut: bool, problems: Vec<Problem> },
    /// The cells hold too many places; this ring has fewer or smaller cells: these.
    Narrower(Ring, Vec<String>),
    /// The limit is reached, and more entries follow.
    NothingLeft,
}

impl<'s> Search<'s> {
    pub(super) fn new(
        session: &'s Session,
        loaded: &'s Arc<Loaded>,
        collection: &'s Arc<Collection>,
        index: &'s Arc<Index>,
        near: &'s Near,
        asked: &CheckedQuery,
    ) -> Result<Self> {
        let before = index.key.segments().take_while(|segment| chars_of(segment).is_none());
        let before: Vec<&Segment> = before.collect();
        let fixed = before
            .iter()
            .map(|segment| {
                asked.value(&segment.path).cloned().ok_or_else(|| {
                    refused(collection, "the geo index needs this field to be fixed")
                        .with("field", &segment.path)
                        .with("index", &index.name)
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let is_before = |path: &Path| before.iter().any(|segment| segment.path == *path);
        let left = asked.equal.iter().filter(|(path, _)| !is_before(path));
        let mut filters: Vec<Filter> =
            left.map(|(path, value)| Filter::equal(path, value)).collect();
        let condition = index.condition.as_ref();
        let is_tested = |filter: &&Filter| {
            condition.is_some_and(|condition| condition.tests_of(&filter.path).next().is_some())
        };
        if let Some(other) = filters.iter().find(|filter| !is_tested(filter)) {
            let message = "the geo index has only these fields before its geohash";
            return Err(refused(collection, message)
                .with("field", &other.path)
                .with("index", &index.name)
                .with("key", &index.key.source));
        }
        filters.retain(|filter| !condition.is_some_and(|it| ensures(collection, it, filter)));
        let located = index.key.segments().find_map(|segment| Some((segment, chars_of(segment)?)));
        let Some((geohash, chars)) = located else {
            return Err(Error::new(ErrorKind::Internal, "a geo index has a geohash"));
        };
        let is_void = asked.is_void;
        Ok(Search {
            session,
            loaded,
            collection,
            index,
            near,
            fixed,
            filters,
            geohash,
            chars,
            is_void,
        })
    }

    /// The next places after a rank, ring by ring.
    pub(super) async fn page(
        &self,
        after: Option<Rank>,
        binding: Arc<Binding>,
    ) -> Result<Page<Nearby<Document>>> {
        let radius = self.near.radius_m.min(DISTANCE_M_MAX);
        let mut page = Page::nothing();
        let mut last: Option<Rank> = None;
        let mut bytes_left = self.near.bytes.unwrap_or(usize::MAX);
        let mut ring = Ring::first(after, radius);
        let mut cells = self.cells(&ring);
        loop {
            let left = self.near.limit.unwrap_or(usize::MAX).saturating_sub(page.read);
            let room = Room {
                records: self.near.take - page.records.len(),
                bytes: bytes_left,
                is_empty: page.records.is_empty(),
            };
            let (mut found, is_cut, problems) =
                match self.read(&ring, &cells, room, left, &mut page.read).await? {
                    Read::All { found, is_cut, problems } => (found, is_cut, problems),
                    Read::Narrower(narrower, fewer) => {
                        (ring, cells) = (narrower, fewer);
                        continue;
                    }
                    Read::NothingLeft => {
                        // A page without results whose cursor is where it began would never end.
                        let edge = ring.edge().ok_or_else(|| self.too_many(page.read))?;
                        page.stopped = Stopped::Limit;
                        page.next = Some(self.cursor(&edge, binding));
                        return Ok(tidy(page));
                    }
                };
            page.problems.extend(problems);
            let is_full = found.len() > room.records;
            let is_empty = found.is_empty();
            if is_full {
                found.pop_last();
            }
            for (rank, record) in found {
                bytes_left = bytes_left.saturating_sub(weight(&record));
                page.records.push(Nearby { record, distance_m: rank.distance_m });
                last = Some(rank);
            }
            if is_full || is_cut {
                page.stopped = if is_full { Stopped::Take } else { Stopped::Bytes };
                page.next = last.map(|last| self.cursor(&last, binding));
                return Ok(tidy(page));
            }
            if ring.outer_m >= radius {
                return Ok(tidy(page));
            }
            ring = ring.next(if is_empty { 4.0 } else { 2.0 });
            cells = self.cells(&ring);
        }
    }

    fn too_many(&self, read: usize) -> Error {
        let message = "the nearest places share a cell of the geo index with more than may be read";
        Error::new(ErrorKind::LimitExceeded, message)
            .with("collection", &self.collection.name)
            .with("index", &self.index.name)
            .with("read", read)
            .with("instead", "allow more reads, or give the index a longer geohash")
    }

    fn cursor(&self, rank: &Rank, binding: Arc<Binding>) -> Cursor {
        let position = Position {
            indexes: self.index.name.clone(),
            key: rank.write(),
            towards_start: false,
            inclusive: false,
        };
        Cursor::new(position, binding)
    }

    fn cells(&self, ring: &Ring) -> Vec<String> {
        let cover = if ring.is_fine { cover_finely } else { cover };
        cover(self.near.place, ring.inner_m, ring.outer_m, self.chars)
    }

    /// A ring from the same inner edge that reads less than these cells, if there is one.
    fn narrower(&self, ring: &Ring, cells: &[String]) -> Option<(Ring, Vec<String>)> {
        let chars = |cells: &[String]| cells.first().map_or(0, String::len);
        let halved = (ring.step_m > STEP_M_MIN).then(|| ring.halved());
        let fine = (!ring.is_fine).then(|| ring.fine());
        halved.into_iter().chain(fine).find_map(|narrower| {
            let fewer = self.cells(&narrower);
            let reads_less = chars(&fewer) > chars(cells) || fewer.len() * 4 <= cells.len() * 3;
            reads_less.then_some((narrower, fewer))
        })
    }

    /// Reads the cells of a ring, and keeps as many places as the page takes and one more.
    async fn read(
        &self,
        ring: &Ring,
        cells: &[String],
        room: Room,
        reads_max: usize,
        reads: &mut usize,
    ) -> Result<Read> {
        let enough = PLACES_MAX.min(self.near.limit.map_or(usize::MAX, |limit| limit / ATTEMPTS));
        let (mut nearest, mut problems) = (Nearest::new(room), Vec::new());
        let mut read = 0;
        for cells_at_once in cells.chunks(CELLS_MAX) {
            let plan = self.plan(cells_at_once)?;
            let reader = Reader::new(self.session, &plan);
            let mut walk = Walk::new(self.session, &plan, Want::Records, None)?;
            let ahead = match self.near.bytes {
                Some(_) => (CHUNK_WEIGHED / cells_at_once.len()).max(1),
                None => (enough / cells_at_once.len()).clamp(CHUNK_MIN, CHUNK_MAX),
            };
            while let Some(entry) = walk.next(ahead).await? {
                if read == reads_max {
                    return Ok(Read::NothingLeft);
                }
                if read == enough
                    && let Some((narrower, fewer)) = self.narrower(ring, cells)
                {
                    return Ok(Read::Narrower(narrower, fewer));
                }
                read += 1;
                *reads += 1;
                match self.ranked(&reader, entry).await? {
                    Ok(None) => {}
                    Ok(Some((rank, document))) if ring.holds(&rank) => {
                        nearest.take_in(rank, document);
                    }
                    Ok(Some(_)) => {}
                    Err(problem) => problems.push(problem),
                }
            }
        }
        let (found, is_cut) = nearest.into_found();
        Ok(Read::All { found, is_cut, problems })
    }

    /// The record of an entry with its rank; `None` if it is gone, or if a filter drops it.
    async fn ranked(
        &self,
        reader: &Reader<'_>,
        entry: Found<'_>,
    ) -> Result<Result<Option<(Rank, Document)>, Problem>> {
        let branch = entry.branch;
        let document = match reader.resolve(entry).await? {
            Resolved::Gone => return Ok(Ok(None)),
            Resolved::Problem(problem) => return Ok(Err(problem)),
            Resolved::Record(document) => document,
        };
        match reader.passes(branch, &document) {
            Ok(true) => {}
            Ok(false) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(unreadable(document.key.bytes(), error))),
        }
        Ok(self.place_of(&document).map(|place| {
            let distance_m = self.near.place.distance_m(place);
            let key = document.key.bytes().clone();
            Some((Rank { distance_m, key }, document))
        }))
    }

    fn plan(&self, cells: &[String]) -> Result<Plan> {
        let fixed: Vec<&Value> = self.fixed.iter().collect();
        let about = |error: Error| {
            error.with("collection", &self.collection.name).with("index", &self.index.name)
        };
        let prefix =
            self.index.key.prefix(&fixed).map_err(|refusal| about(refusal.into_query_error()))?;
        let branches = cells
            .iter()
            .map(|cell| {
                let range = self.index.key.range(&fixed, Some(&Span::Prefix(cell.clone())));
                let range = range.map_err(|refusal| about(refusal.into_query_error()))?;
                let range = range.in_area(self.index.area.clone());
                Ok(Branch {
                    index: Some(self.index.clone()),
                    equal: fixed.len(),
                    range: if self.is_void { nothing_of(range) } else { range },
                    prefix: prefix.clone(),
                    presumed: Vec::new(),
                    filters: self.filters.clone(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Plan {
            loaded: self.loaded.clone(),
            collection: self.collection.clone(),
            branches,
            direction: Direction::Forward,
        })
    }

    fn place_of(&self, document: &Document) -> Result<GeoPoint, Problem> {
        let about = |reason: String| unreadable(document.key.bytes(), reason);
        let record: Value = document.json().map_err(|error| about(error.to_string()))?;
        let point = self.collection.value(&self.geohash.path, &record);
        let coordinates = point.and_then(|point| coordinates(&self.geohash.codec, point));
        coordinates.ok_or_else(|| {
            let shown = point.map_or_else(|| "nothing".to_owned(), shortened);
            about(format!("{} holds no place: {shown}", self.geohash.path))
        })
    }
}

/// Removes duplicate problems: neighbouring rings may read the same cells.
fn tidy(mut page: Page<Nearby<Document>>) -> Page<Nearby<Document>> {
    page.problems.sort_by(|a, b| a.key.cmp(&b.key));
    page.problems.dedup();
    page
}

fn chars_of(segment: &Segment) -> Option<u8> {
    match segment.codec {
        Codec::Geohash { chars, .. } => Some(chars),
        _ => None,
    }
}

fn coordinates(codec: &Codec, point: &Value) -> Option<GeoPoint> {
    let Codec::Geohash { lat, lon, .. } = codec else { return None };
    Some(GeoPoint { lat: point.get(lat)?.as_f64()?, lon: point.get(lon)?.as_f64()? })
}
