//! A typed query, and how far it has come.

use std::fmt;
use std::marker::PhantomData;

use super::answer::{Answer, Documents, Keys, Paging, Records};
use super::asking::Asking;
use super::pages::Pages;
use super::record::Record;
use super::select::{Ordered, Prefixed, Selects, Timelike};
use crate::key::Span;
use crate::query::{Order, Query};
use crate::record::{Document, Key};
use crate::schema::Test;
use crate::store::{Collection, Stored};

/// A query of the collection of `T`. `P` says what may still be added: [`Open`] before a segment
/// that is neither fixed nor bounded, [`Ranged`] after a range, [`Settled`] when nothing is left.
///
/// Nothing is read until a page, a count or an explanation is awaited. The same query can be
/// asked again.
#[must_use = "a query does nothing until a page of it is awaited"]
pub struct Asked<T, P> {
    asking: Asking<T>,
    place: PhantomData<fn() -> P>,
}

/// The next segment, of type `V`, may be bounded or ordered.
pub struct Open<V>(PhantomData<V>);

/// A segment of type `V` is bounded, and may be ordered.
pub struct Ranged<V>(PhantomData<V>);

/// Nothing can be bounded or ordered any more.
pub struct Settled(());

/// Where an order can be given.
#[diagnostic::on_unimplemented(
    message = "there is nothing left to order by",
    label = "every segment is fixed, or the order is given already"
)]
pub trait Place {
    /// The type of the segment that orders the answer.
    type Value;
}

impl<V> Place for Open<V> {
    type Value = V;
}

impl<V> Place for Ranged<V> {
    type Value = V;
}

impl<T, P> From<Asking<T>> for Asked<T, P> {
    fn from(asking: Asking<T>) -> Self {
        Asked { asking, place: PhantomData }
    }
}

impl<T, P> From<Asked<T, P>> for Asking<T> {
    fn from(asked: Asked<T, P>) -> Self {
        asked.asking
    }
}

impl<T, P> Asked<T, P> {
    /// Lowest first.
    pub fn ascending(&self) -> Asked<T, Settled>
    where
        P: Place<Value: Ordered>,
    {
        self.asking.clone().ordered(Order::Ascending).into()
    }

    /// Highest first.
    pub fn descending(&self) -> Asked<T, Settled>
    where
        P: Place<Value: Ordered>,
    {
        self.asking.clone().ordered(Order::Descending).into()
    }

    /// Latest first.
    pub fn newest(&self) -> Asked<T, Settled>
    where
        P: Place<Value: Timelike>,
    {
        self.descending()
    }

    /// Earliest first.
    pub fn oldest(&self) -> Asked<T, Settled>
    where
        P: Place<Value: Timelike>,
    {
        self.ascending()
    }
}

impl<T, V> Asked<T, Open<V>> {
    /// Bounds the next segment, whatever its name. Serves unions, whose sides may come from
    /// different indexes.
    pub fn range<S>(&self, range: S) -> Asked<T, Ranged<V>>
    where
        V: Ordered,
        S: Selects<V, Then<Asked<T, Settled>, Asked<T, Ranged<V>>> = Asked<T, Ranged<V>>>,
    {
        range.select::<T, Asked<T, Settled>, Asked<T, Ranged<V>>>(self.asking.clone())
    }

    /// Only those whose next segment begins with this text.
    pub fn starts_with(&self, text: &str) -> Asked<T, Ranged<V>>
    where
        V: Prefixed,
    {
        self.asking.clone().within(Span::Prefix(text.to_owned())).into()
    }
}

impl<T, P> Asked<T, P> {
    /// This or that, in one order and without duplicates: the union of two indexes whose
    /// remaining segments are the same.
    pub fn or(&self, other: impl AsRef<Asked<T, P>>) -> Self {
        self.asking.clone().or(&other.as_ref().asking).into()
    }

    /// Leaves out records that do not pass. What a filter drops was read; see
    /// [`limit`](Self::limit).
    pub fn filter(&self, field: &str, test: Test) -> Self {
        self.asking.clone().filtered(field, test).into()
    }

    /// The most records that are read, whether a filter keeps them or not.
    pub fn limit(&self, records: usize) -> Self {
        self.asking.clone().limited(records).into()
    }
}

impl<T: Record, P> Asked<T, P> {
    /// A page of up to so many records.
    pub fn page(&self, records: usize) -> Paging<T, Records> {
        Paging::new(&self.asking, records)
    }

    /// A page of records as they lie in the store: the JSON text, not looked at.
    pub fn documents(&self, records: usize) -> Paging<T, Documents> {
        Paging::new(&self.asking, records)
    }

    /// A page of keys. The records are not read.
    pub fn keys(&self, records: usize) -> Paging<T, Keys> {
        Paging::new(&self.asking, records)
    }

    /// All pages, each of up to so many records, one after the other.
    pub fn pages(&self, records: usize) -> Pages<Stored<T>> {
        self.all(records, Collection::pages)
    }

    /// As [`pages`](Self::pages), of records as they lie in the store.
    pub fn document_pages(&self, records: usize) -> Pages<Document> {
        self.all(records, Collection::document_pages)
    }

    /// As [`pages`](Self::pages), of keys. The records are not read.
    pub fn key_pages(&self, records: usize) -> Pages<Key> {
        self.all(records, Collection::key_pages)
    }

    fn all<R>(
        &self,
        records: usize,
        pages: impl Fn(&Collection<T>, &Query) -> crate::Pages<R>,
    ) -> Pages<R> {
        let Asking { of, runtime, .. } = &self.asking;
        let pages = match self.asking.query() {
            Ok(query) => pages(of, &query.take(records)),
            Err(error) => pages(of, &Query::new()).refused(error),
        };
        Pages::new(pages, runtime)
    }

    /// The first record.
    pub fn first(&self) -> Answer<Option<Stored<T>>> {
        let page = self.page(1);
        Answer::new(self.asking.runtime.clone(), async move {
            Ok(page.await?.records.into_iter().next())
        })
    }

    /// How many records there are. Reads every entry.
    pub fn count(&self) -> Answer<usize> {
        let (of, query) = (self.asking.of.clone(), self.asking.query());
        Answer::new(self.asking.runtime.clone(), async move { of.count(&query?).await })
    }

    /// How the query would be answered, in words.
    pub fn explain(&self) -> Answer<String> {
        let (of, query) = (self.asking.of.clone(), self.asking.query());
        Answer::new(self.asking.runtime.clone(), async move { of.explain(&query?).await })
    }
}

impl<T, P> AsRef<Asked<T, P>> for Asked<T, P> {
    fn as_ref(&self) -> &Asked<T, P> {
        self
    }
}

impl<T, P> Clone for Asked<T, P> {
    fn clone(&self) -> Self {
        self.asking.clone().into()
    }
}

impl<T, P> fmt::Debug for Asked<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.asking.fmt(f)
    }
}
