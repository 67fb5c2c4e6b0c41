//! Reads rings of growing radius around a place until a page is full.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::cover::ring;
use super::sphere::{DISTANCE_M_MAX, Place};
use crate::counted::reveal;
use crate::engine::Direction;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Codec, Segment, Span, shortened};
use crate::query::cursor::{Asked, Binding, Cursor, Position};
use crate::query::page::{Page, Problem, Stopped};
use crate::query::plan::{Branch, Plan, nothing_of};
use crate::query::predicate::TAKE_MAX;
use crate::query::reader::{Reader, Resolved, unreadable};
use crate::query::walk::{Walk, Want};
use crate::record::Document;
use crate::schema::{Collection, Index, IndexKind, Loaded};
use crate::session::Session;

/// How wide the first ring is, in metres.
const FIRST_STEP_M: f64 = 500.0;

/// A ring with more places than this is halved before its places are sorted.
const PLACES_MAX: usize = 2_000;

/// How many entries of each cell are read at once.
const CHUNK: usize = 200;

/// A ring that is narrower than this is not halved any more: its places are all but equally far.
const STEP_M_MIN: f64 = 0.5;

/// What is asked for around a place.
///
/// ```
/// use keyloom::Near;
/// let cafes = Near::new(48.8566, 2.3522).within(1_500.0).take(10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    place: Place,
    radius_m: f64,
    equal: Vec<(String, Value)>,
    index: Option<String>,
    take: usize,
    cursor: Option<String>,
}

impl Near {
    /// The records nearest to a place, given in degrees.
    pub fn new(lat: f64, lon: f64) -> Self {
        Near {
            place: Place { lat, lon },
            radius_m: DISTANCE_M_MAX,
            equal: Vec::new(),
            index: None,
            take: 20,
            cursor: None,
        }
    }

    /// Only those within this distance, in metres. A place exactly so far belongs to it.
    #[must_use]
    pub fn within(mut self, radius_m: f64) -> Self {
        self.radius_m = radius_m;
        self
    }

    /// Fixes a field that the geo index has before its geohash.
    #[must_use]
    pub fn equal(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.equal.push((field.to_owned(), value.into()));
        self
    }

    /// Uses this geo index. Needed only where a collection has several.
    #[must_use]
    pub fn index(mut self, name: &str) -> Self {
        self.index = Some(name.to_owned());
        self
    }

    /// The most records that the page returns; 20 unless set.
    #[must_use]
    pub fn take(mut self, records: usize) -> Self {
        self.take = records;
        self
    }

    /// Goes on from the cursor of an earlier page of the same question.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl ToString) -> Self {
        self.cursor = Some(cursor.to_string());
        self
    }

    fn canonical(&self) -> String {
        let Place { lat, lon } = self.place;
        json!(["near", lat, lon, self.radius_m, self.equal, self.index]).to_string()
    }

    fn check(&self, collection: &Collection) -> Result<()> {
        let message = if !(-90.0..=90.0).contains(&self.place.lat) {
            "a latitude is -90 to 90 degrees"
        } else if !(-180.0..=180.0).contains(&self.place.lon) {
            "a longitude is -180 to 180 degrees"
        } else if self.radius_m.is_nan() || self.radius_m < 0.0 {
            "a radius is 0 or more metres"
        } else if !(1..=TAKE_MAX).contains(&self.take) {
            "a page takes 1 to 10000 records"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidQuery, message)
            .with("collection", &collection.name)
            .with("latitude", self.place.lat)
            .with("longitude", self.place.lon)
            .with("radius", self.radius_m)
            .with("take", self.take))
    }
}

/// A record with its distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearby<R> {
    /// The record.
    pub record: R,
    /// Its distance from the place that was asked for, in metres on a sphere with the Earth's
    /// mean radius.
    pub distance_m: f64,
}

/// One page of what is near a place.
pub(crate) async fn near(
    session: &Session,
    name: &str,
    near: &Near,
) -> Result<Page<Nearby<Document>>> {
    let mut reads = 0;
    loop {
        match near_once(session, name, near).await {
            Err(error) => session.read_again_after(error, &mut reads).await?,
            page => return page,
        }
    }
}

async fn near_once(session: &Session, name: &str, near: &Near) -> Result<Page<Nearby<Document>>> {
    let decided = session.decide(|loaded| {
        let collection = loaded.schema.collection(name)?;
        near.check(collection)?;
        let index = geo_index(session, loaded, collection, near.index.as_deref())?;
        let binding = Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: session.space.name().to_owned(),
            actor: session.actor().map(str::to_owned),
            collection: collection.name.clone(),
            query: Asked::Words(near.canonical()),
        };
        Ok((loaded.clone(), collection.clone(), index.clone(), Arc::new(binding)))
    });
    let (loaded, collection, index, binding) = decided.await?;
    let after = match &near.cursor {
        Some(text) => Some(Rank::read(&Cursor::open(text, &binding)?.key)?),
        None => None,
    };
    let search = Search::new(session, &loaded, &collection, &index, near)?;
    let mut page = search.page(after, binding).await?;
    reveal(session, &collection, page.records.iter_mut().map(|nearby| &mut nearby.record)).await?;
    Ok(page)
}

fn geo_index<'s>(
    session: &Session,
    loaded: &Loaded,
    collection: &'s Collection,
    name: Option<&str>,
) -> Result<&'s Arc<Index>> {
    let index = match name {
        Some(name) => collection.index(name)?,
        None => {
            let mut all = collection.indexes.values().filter(|index| index.kind == IndexKind::Geo);
            match (all.next(), all.next()) {
                (Some(index), None) => index,
                (None, _) => return Err(refused(collection, "the collection has no geo index")),
                (Some(_), Some(_)) => {
                    return Err(refused(
                        collection,
                        "the collection has several geo indexes; name one",
                    ));
                }
            }
        }
    };
    if index.kind != IndexKind::Geo {
        return Err(refused(collection, "this is not a geo index").with("index", &index.name));
    }
    session.check_readable(loaded, collection, index)?;
    session.confine(collection, Some(index))?;
    Ok(index)
}

fn refused(collection: &Collection, message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidQuery, message).with("collection", &collection.name)
}

/// The order of the answer: by distance, and by key among equals.
#[derive(Clone, Debug, PartialEq)]
struct Rank {
    distance_m: f64,
    key: Bytes,
}

impl Rank {
    fn is_after(&self, other: &Rank) -> bool {
        self.order(other).is_gt()
    }

    fn order(&self, other: &Rank) -> std::cmp::Ordering {
        self.distance_m.total_cmp(&other.distance_m).then_with(|| self.key.cmp(&other.key))
    }

    /// As a cursor keeps it: the distance's bits, then the key.
    fn write(&self) -> Bytes {
        [&self.distance_m.to_bits().to_be_bytes()[..], &self.key[..]].concat().into()
    }

    fn read(bytes: &Bytes) -> Result<Self> {
        match bytes.split_first_chunk::<8>() {
            Some((bits, _)) => Ok(Rank {
                distance_m: f64::from_bits(u64::from_be_bytes(*bits)),
                key: bytes.slice(8..),
            }),
            None => Err(Error::new(ErrorKind::InvalidCursor, "the cursor has another format")),
        }
    }
}

/// A search around one place.
struct Search<'s> {
    session: &'s Session,
    loaded: &'s Arc<Loaded>,
    collection: &'s Arc<Collection>,
    index: &'s Arc<Index>,
    near: &'s Near,
    /// The values before the geohash.
    fixed: Vec<Value>,
    geohash: &'s Segment,
    chars: u8,
    /// It asks for what the caller may not see, and is answered as if nothing were there.
    is_void: bool,
}

/// What one ring brought.
struct Ring {
    found: Vec<(Rank, Document)>,
    problems: Vec<Problem>,
    read: usize,
}

impl<'s> Search<'s> {
    fn new(
        session: &'s Session,
        loaded: &'s Arc<Loaded>,
        collection: &'s Arc<Collection>,
        index: &'s Arc<Index>,
        near: &'s Near,
    ) -> Result<Self> {
        let mut equal = near.equal.clone();
        let mut is_void = false;
        if let Some((path, owner)) = session.forced(collection) {
            let path = path.to_string();
            match equal.iter().any(|(field, _)| *field == path) {
                true => is_void = equal.iter().any(|(field, v)| *field == path && *v != owner),
                false => equal.push((path, owner)),
            }
        }
        let before = index.key.segments().take_while(|segment| chars_of(segment).is_none());
        let fixed = before
            .map(|segment| {
                let value = equal.iter().find(|(field, _)| *field == segment.path.to_string());
                value.map(|(_, value)| value.clone()).ok_or_else(|| {
                    refused(collection, "the geo index needs this field to be fixed")
                        .with("field", &segment.path)
                })
            })
            .collect::<Result<Vec<_>>>()?;
        if fixed.len() < equal.len() {
            return Err(refused(
                collection,
                "the geo index has only these fields before its geohash",
            )
            .with("key", &index.key.source));
        }
        let located = index.key.segments().find_map(|segment| Some((segment, chars_of(segment)?)));
        let Some((geohash, chars)) = located else {
            return Err(Error::new(ErrorKind::Internal, "a geo index has a geohash"));
        };
        Ok(Search { session, loaded, collection, index, near, fixed, geohash, chars, is_void })
    }

    async fn page(
        &self,
        after: Option<Rank>,
        binding: Arc<Binding>,
    ) -> Result<Page<Nearby<Document>>> {
        let radius = self.near.radius_m.min(DISTANCE_M_MAX);
        let mut page = Page::nothing();
        let mut last: Option<Rank> = None;
        let mut inner = after.as_ref().map_or(0.0, |after| after.distance_m);
        // What lies exactly on the inner edge belongs to the first ring only.
        let mut first = true;
        let mut step = FIRST_STEP_M;
        loop {
            let outer = (inner + step).min(radius);
            let Some(mut ring) = self.ring(inner, outer, step > STEP_M_MIN).await? else {
                step /= 2.0;
                continue;
            };
            page.read += ring.read;
            page.problems.append(&mut ring.problems);
            ring.found.retain(|(rank, _)| {
                rank.distance_m <= outer
                    && (rank.distance_m > inner || first && rank.distance_m == inner)
                    && after.as_ref().is_none_or(|after| rank.is_after(after))
            });
            ring.found.sort_by(|(a, _), (b, _)| a.order(b));
            step *= if ring.found.is_empty() { 4.0 } else { 2.0 };
            for (rank, record) in ring.found {
                if page.records.len() == self.near.take {
                    page.stopped = Stopped::Take;
                    page.next = last.map(|last| self.cursor(&last, binding));
                    return Ok(page);
                }
                page.records.push(Nearby { record, distance_m: rank.distance_m });
                last = Some(rank);
            }
            if outer >= radius {
                page.problems.sort_by(|a, b| a.key.cmp(&b.key));
                page.problems.dedup();
                return Ok(page);
            }
            inner = outer;
            first = false;
        }
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

    /// Everything that the cells of a ring hold; `None` when it is too much to sort and the ring
    /// may be halved.
    async fn ring(&self, inner_m: f64, outer_m: f64, may_halve: bool) -> Result<Option<Ring>> {
        let plan = self.plan(ring(self.near.place, inner_m, outer_m, self.chars))?;
        let reader = Reader::new(self.session, &plan);
        let mut walk = Walk::new(self.session, &plan, Want::Records, None)?;
        let mut ring = Ring { found: Vec::new(), problems: Vec::new(), read: 0 };
        while let Some(entry) = walk.next(CHUNK).await? {
            ring.read += 1;
            if ring.read > PLACES_MAX && may_halve {
                return Ok(None);
            }
            match reader.resolve(entry).await? {
                Resolved::Gone => {}
                Resolved::Problem(problem) => ring.problems.push(problem),
                Resolved::Record(document) => match self.place_of(&document) {
                    Ok(place) => {
                        let rank = Rank {
                            distance_m: self.near.place.distance_m(place),
                            key: Bytes::copy_from_slice(document.key().as_bytes()),
                        };
                        ring.found.push((rank, document));
                    }
                    Err(problem) => ring.problems.push(problem),
                },
            }
        }
        // A multi-valued index may lead to one record through several cells.
        ring.found.sort_by(|(a, _), (b, _)| a.key.cmp(&b.key));
        ring.found.dedup_by(|(a, _), (b, _)| a.key == b.key);
        Ok(Some(ring))
    }

    fn plan(&self, cells: Vec<String>) -> Result<Plan> {
        let fixed: Vec<&Value> = self.fixed.iter().collect();
        let about = |error: Error| {
            error.with("collection", &self.collection.name).with("index", &self.index.name)
        };
        let prefix =
            self.index.key.prefix(&fixed).map_err(|refusal| about(refusal.into_query_error()))?;
        let branches = cells
            .into_iter()
            .map(|cell| {
                let range = self.index.key.range(&fixed, Some(&Span::Prefix(cell)));
                let range = range.map_err(|refusal| about(refusal.into_query_error()))?;
                let range = range.in_area(self.index.area.clone());
                Ok(Branch {
                    index: Some(self.index.clone()),
                    equal: fixed.len(),
                    range: if self.is_void { nothing_of(range) } else { range },
                    prefix: prefix.clone(),
                    presumed: Vec::new(),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Plan {
            loaded: self.loaded.clone(),
            collection: self.collection.clone(),
            branches,
            direction: Direction::Forward,
            filters: Vec::new(),
        })
    }

    fn place_of(&self, document: &Document) -> Result<Place, Problem> {
        let about = |reason: String| unreadable(document.key().as_bytes(), reason);
        let record: Value = document.json().map_err(|error| about(error.to_string()))?;
        let point = self.collection.value(&self.geohash.path, &record);
        let coordinates = point.and_then(|point| coordinates(&self.geohash.codec, point));
        coordinates.ok_or_else(|| {
            let shown = point.map_or_else(|| "nothing".to_owned(), shortened);
            about(format!("{} holds no place: {shown}", self.geohash.path))
        })
    }
}

fn chars_of(segment: &Segment) -> Option<u8> {
    match segment.codec {
        Codec::Geohash { chars, .. } => Some(chars),
        _ => None,
    }
}

fn coordinates(codec: &Codec, point: &Value) -> Option<Place> {
    let Codec::Geohash { lat, lon, .. } = codec else { return None };
    Some(Place { lat: point.get(lat)?.as_f64()?, lon: point.get(lon)?.as_f64()? })
}
