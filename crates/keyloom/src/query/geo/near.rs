//! A query for records near a place, as a program states it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rank::Rank;
use super::search::Search;
use super::sphere::{DISTANCE_M_MAX, GeoPoint};
use crate::error::{Error, ErrorKind, Result};
use crate::query::checked::CheckedQuery;
use crate::query::cursor::{self, Binding, Cursor, IntoCursor};
use crate::query::page::Page;
use crate::query::predicate::TAKE_MAX;
use crate::record::Document;
use crate::schema::{Collection, Index, IndexKind};
use crate::side::reveal;
use crate::space::Loaded;
use crate::space::Session;

/// A query for records near a place.
///
/// ```
/// use keyloom::Near;
/// let cafes = Near::new(48.8566, 2.3522).within(1_500.0).take(10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    pub(super) place: GeoPoint,
    pub(super) radius_m: f64,
    pub(super) equal: Vec<(String, Value)>,
    index: Option<String>,
    pub(super) take: usize,
    pub(super) limit: Option<usize>,
    pub(super) bytes: Option<usize>,
    pub(crate) cursor: Option<String>,
}

impl Near {
    /// The records nearest to a place, given in degrees.
    pub fn new(lat: f64, lon: f64) -> Self {
        Near {
            place: GeoPoint { lat, lon },
            radius_m: DISTANCE_M_MAX,
            equal: Vec::new(),
            index: None,
            take: 20,
            limit: None,
            bytes: None,
            cursor: None,
        }
    }

    /// Only records within this distance, in metres. A record exactly that far away is included.
    #[must_use]
    pub fn within(mut self, radius_m: f64) -> Self {
        self.radius_m = radius_m;
        self
    }

    /// Fixes a field that comes before the geohash in the geo index.
    #[must_use]
    pub fn equal(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.equal.push((field.to_owned(), value.into()));
        self
    }

    /// Uses this geo index. Needed only if a collection has several.
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

    /// The most index entries that the page reads, including entries that turn out to be nearer or
    /// farther than the ring it searches. A page that reaches this limit ends with the records that
    /// it has, and its cursor continues. Fails with [`LimitExceeded`](ErrorKind::LimitExceeded) if
    /// the limit is too low to find even the nearest record.
    #[must_use]
    pub fn limit(mut self, entries: usize) -> Self {
        self.limit = Some(entries);
        self
    }

    /// Roughly the most bytes that the page returns, counting the keys and texts of its records.
    /// The page ends before the limit is exceeded, but always has at least one record, and its
    /// cursor continues.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Continues from the cursor of an earlier page of the same query; `None` is the first page.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl IntoCursor) -> Self {
        self.cursor = cursor.into_cursor();
        self
    }

    fn canonical(&self) -> String {
        let GeoPoint { lat, lon } = self.place;
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
        } else if self.limit == Some(0) {
            "a page reads at least one entry"
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
    /// Its distance from the place of the query, in metres on a sphere with the Earth's mean
    /// radius.
    pub distance_m: f64,
}

/// A page of records near a place.
pub(crate) async fn near(
    session: &Session,
    name: &str,
    near: &Near,
) -> Result<Page<Nearby<Document>>> {
    let mut attempts = session.live.reads();
    loop {
        if let Some(page) = attempts.settle(near_once(session, name, near).await).await? {
            return Ok(page);
        }
    }
}

async fn near_once(session: &Session, name: &str, near: &Near) -> Result<Page<Nearby<Document>>> {
    let decided = session.live.decide(|loaded| {
        let collection = loaded.schema.collection(name)?;
        near.check(collection)?;
        let mut asked = CheckedQuery::equalities(session, collection, &near.equal)?;
        if let Some((path, owner)) = session.forced(collection) {
            asked.imply(path, &owner);
        }
        let index = geo_index(session, loaded, collection, near.index.as_deref(), &asked)?;
        let binding = Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: session.live.space.name().to_owned(),
            actor: session.actor().map(str::to_owned),
            collection: collection.name.clone(),
            query: cursor::Question::Words(near.canonical()),
        };
        Ok((loaded.clone(), collection.clone(), index.clone(), asked, Arc::new(binding)))
    });
    let (loaded, collection, index, asked, binding) = decided.await?;
    let after = match &near.cursor {
        Some(text) => Some(Rank::read(&Cursor::open(text, &binding)?.key)?),
        None => None,
    };
    let search = Search::new(session, &loaded, &collection, &index, near, &asked)?;
    let mut page = search.page(after, binding).await?;
    reveal(session, &collection, page.records.iter_mut().map(|nearby| &mut nearby.record)).await?;
    Ok(page)
}

fn geo_index<'s>(
    session: &Session,
    loaded: &Loaded,
    collection: &'s Collection,
    name: Option<&str>,
    asked: &CheckedQuery,
) -> Result<&'s Arc<Index>> {
    let index = match name {
        Some(name) => collection.index(name)?,
        None => only_geo_index(collection, asked)?,
    };
    if index.kind != IndexKind::Geo {
        return Err(refused(collection, "this is not a geo index").with("index", &index.name));
    }
    session.check_readable(loaded, collection, index)?;
    session.confine(collection, Some(index))?;
    Ok(index)
}

/// The only geo index that has every record of the query.
fn only_geo_index<'s>(collection: &'s Collection, asked: &CheckedQuery) -> Result<&'s Arc<Index>> {
    let all = || collection.indexes.values().filter(|index| index.kind == IndexKind::Geo);
    let has_all = |index: &&Arc<Index>| match &index.condition {
        Some(condition) => asked.implies(collection, condition),
        None => true,
    };
    let mut whole = all().filter(has_all);
    match (whole.next(), whole.next()) {
        (Some(index), None) => Ok(index),
        (Some(_), Some(_)) => {
            Err(refused(collection, "the collection has several geo indexes; name one"))
        }
        (None, _) if all().next().is_none() => {
            Err(refused(collection, "the collection has no geo index"))
        }
        (None, _) => {
            let message = "a geo index has only some of the records; ask for those, or name it";
            Err(all().fold(refused(collection, message), |error, index| {
                let condition = index.condition.as_ref().map(|it| format!(" where {it}"));
                let condition = condition.unwrap_or_default();
                error.with("there is", format_args!("{}{condition}", index.name))
            }))
        }
    }
}

pub(super) fn refused(collection: &Collection, message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidQuery, message).with("collection", &collection.name)
}
