//! Typed searches near a place.

use std::sync::Arc;

use serde_json::Value;

use super::answer::Answer;
use super::pages::Pages;
use super::record::Record;
use super::values::Point;
use crate::blocking::Runtime;
use crate::query::{IntoCursor, Near, Nearby, Page};
use crate::store::{Collection, Stored};

/// A search around a place, nearest first.
#[must_use = "a search does nothing until a page of it is awaited"]
pub struct TypedNear<T> {
    of: Collection<T>,
    runtime: Option<Arc<Runtime>>,
    near: Near,
}

impl<T: Record> TypedNear<T> {
    pub(super) fn new(
        of: Collection<T>,
        runtime: Option<Arc<Runtime>>,
        index: &'static str,
        place: Point,
    ) -> Self {
        TypedNear { of, runtime, near: Near::new(place.lat, place.lon).index(index) }
    }

    /// Only records whose field has this value. The derive uses it for the segments before the
    /// geohash.
    pub fn equal(mut self, field: &str, value: Value) -> Self {
        self.near = self.near.equal(field, value);
        self
    }

    /// Only records within this distance, in metres.
    pub fn within(mut self, radius_m: f64) -> Self {
        self.near = self.near.within(radius_m);
        self
    }

    /// The most entries that a page reads; see [`Near::limit`].
    pub fn limit(mut self, entries: usize) -> Self {
        self.near = self.near.limit(entries);
        self
    }

    /// Continues from a cursor of an earlier page of the same search; `None` is the first page.
    pub fn after(mut self, cursor: impl IntoCursor) -> Self {
        if let Some(text) = cursor.into_cursor() {
            self.near = self.near.from_cursor(text);
        }
        self
    }

    /// A page of at most this many records, nearest first, with their distances.
    pub fn page(self, records: usize) -> Answer<Page<Nearby<Stored<T>>>> {
        let TypedNear { of, runtime, near } = self;
        let near = near.take(records);
        Answer::new(runtime, async move { of.near(&near).await })
    }
    /// All pages, each of at most this many records, from near to far.
    pub fn pages(self, records: usize) -> Pages<Nearby<Stored<T>>> {
        Pages::new(self.of.near_pages(&self.near.take(records)), &self.runtime)
    }
}
