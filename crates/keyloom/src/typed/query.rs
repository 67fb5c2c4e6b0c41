//! Typed queries and their states.

use std::fmt;
use std::marker::PhantomData;

use super::answer::{Answer, Documents, Keys, Paging, Records};
use super::pages::Pages;
use super::parts::QueryParts;
use super::record::Record;
use super::select::{Ordered, Prefixed, Selects, Timelike};
use crate::key::Span;
use crate::query::{Order, Query};
use crate::record::{Document, Key};
use crate::schema::Test;
use crate::store::{Collection, Stored};

/// A query of the collection of `T`. `P` says what can still be added: [`Open`] before a segment
/// that is neither fixed nor bounded, [`Ranged`] after a range, [`Settled`] if nothing is left.
///
/// Nothing is read until a page, a count or an explanation is awaited. The same query can be used
/// again.
#[must_use = "a query does nothing until a page of it is awaited"]
pub struct TypedQuery<T, P> {
    parts: QueryParts<T>,
    state: PhantomData<fn() -> P>,
}

/// The next segment, of type `V`, may be bounded or ordered.
pub struct Open<V>(PhantomData<V>);

/// A segment of type `V` is bounded, and may be ordered.
pub struct Ranged<V>(PhantomData<V>);

/// Nothing can be bounded or ordered any more.
pub struct Settled(());

/// States in which an order can be given.
#[diagnostic::on_unimplemented(
    message = "there is nothing left to order by",
    label = "every segment is fixed, or the order is given already"
)]
pub trait TakesOrder {
    /// The type of the segment that orders the answer.
    type Value;
}

impl<V> TakesOrder for Open<V> {
    type Value = V;
}

impl<V> TakesOrder for Ranged<V> {
    type Value = V;
}

impl<T, P> From<QueryParts<T>> for TypedQuery<T, P> {
    fn from(parts: QueryParts<T>) -> Self {
        TypedQuery { parts, state: PhantomData }
    }
}

impl<T, P> From<TypedQuery<T, P>> for QueryParts<T> {
    fn from(query: TypedQuery<T, P>) -> Self {
        query.parts
    }
}

impl<T, P> TypedQuery<T, P> {
    /// Lowest first.
    pub fn ascending(&self) -> TypedQuery<T, Settled>
    where
        P: TakesOrder<Value: Ordered>,
    {
        self.parts.clone().ordered(Order::Ascending).into()
    }

    /// Highest first.
    pub fn descending(&self) -> TypedQuery<T, Settled>
    where
        P: TakesOrder<Value: Ordered>,
    {
        self.parts.clone().ordered(Order::Descending).into()
    }

    /// Latest first.
    pub fn newest(&self) -> TypedQuery<T, Settled>
    where
        P: TakesOrder<Value: Timelike>,
    {
        self.descending()
    }

    /// Earliest first.
    pub fn oldest(&self) -> TypedQuery<T, Settled>
    where
        P: TakesOrder<Value: Timelike>,
    {
        self.ascending()
    }
}

impl<T, V> TypedQuery<T, Open<V>> {
    /// Bounds the next segment, whatever its name is. Useful for unions, whose sides may come from
    /// different indexes.
    pub fn range<S>(&self, range: S) -> TypedQuery<T, Ranged<V>>
    where
        V: Ordered,
        S: Selects<
                V,
                Then<TypedQuery<T, Settled>, TypedQuery<T, Ranged<V>>> = TypedQuery<T, Ranged<V>>,
            >,
    {
        range.select::<T, TypedQuery<T, Settled>, TypedQuery<T, Ranged<V>>>(self.parts.clone())
    }

    /// Only records whose next segment begins with this text.
    pub fn starts_with(&self, text: &str) -> TypedQuery<T, Ranged<V>>
    where
        V: Prefixed,
    {
        self.parts.clone().within(Span::Prefix(text.to_owned())).into()
    }
}

impl<T, P> TypedQuery<T, P> {
    /// The union of two queries, in one order and without duplicates. Their indexes must have the
    /// same remaining segments.
    pub fn or(&self, other: impl AsRef<TypedQuery<T, P>>) -> Self {
        self.parts.clone().or(&other.as_ref().parts).into()
    }

    /// Drops records that do not pass a test. The page reads the records that it drops; see
    /// [`limit`](Self::limit).
    pub fn filter(&self, field: &str, test: Test) -> Self {
        self.parts.clone().filtered(field, test).into()
    }

    /// The most records that are read, whether or not a filter drops them.
    pub fn limit(&self, records: usize) -> Self {
        self.parts.clone().limited(records).into()
    }
}

impl<T: Record, P> TypedQuery<T, P> {
    /// A page of at most this many records.
    pub fn page(&self, records: usize) -> Paging<T, Records> {
        Paging::new(&self.parts, records)
    }

    /// A page of records as stored: their JSON text, not parsed.
    pub fn documents(&self, records: usize) -> Paging<T, Documents> {
        Paging::new(&self.parts, records)
    }

    /// A page of keys. The records are not read.
    pub fn keys(&self, records: usize) -> Paging<T, Keys> {
        Paging::new(&self.parts, records)
    }

    /// All pages, each of at most this many records, one after another.
    pub fn pages(&self, records: usize) -> Pages<Stored<T>> {
        self.all(records, Collection::pages)
    }

    /// As [`pages`](Self::pages), with records as stored.
    pub fn document_pages(&self, records: usize) -> Pages<Document> {
        self.all(records, Collection::document_pages)
    }

    /// As [`pages`](Self::pages), with keys only. The records are not read.
    pub fn key_pages(&self, records: usize) -> Pages<Key> {
        self.all(records, Collection::key_pages)
    }

    fn all<R>(
        &self,
        records: usize,
        pages: impl Fn(&Collection<T>, &Query) -> crate::Pages<R>,
    ) -> Pages<R> {
        let QueryParts { of, runtime, .. } = &self.parts;
        let pages = match self.parts.query() {
            Ok(query) => pages(of, &query.take(records)),
            Err(error) => pages(of, &Query::new()).refused(error),
        };
        Pages::new(pages, runtime)
    }

    /// The first record.
    pub fn first(&self) -> Answer<Option<Stored<T>>> {
        let page = self.page(1);
        Answer::new(self.parts.runtime.clone(), async move {
            Ok(page.await?.records.into_iter().next())
        })
    }

    /// How many records there are. Reads every entry.
    pub fn count(&self) -> Answer<usize> {
        let (of, query) = (self.parts.of.clone(), self.parts.query());
        Answer::new(self.parts.runtime.clone(), async move { of.count(&query?).await })
    }

    /// Explains in words how the query would be answered.
    pub fn explain(&self) -> Answer<String> {
        let (of, query) = (self.parts.of.clone(), self.parts.query());
        Answer::new(self.parts.runtime.clone(), async move { of.explain(&query?).await })
    }
}

impl<T, P> AsRef<TypedQuery<T, P>> for TypedQuery<T, P> {
    fn as_ref(&self) -> &TypedQuery<T, P> {
        self
    }
}

impl<T, P> Clone for TypedQuery<T, P> {
    fn clone(&self) -> Self {
        self.parts.clone().into()
    }
}

impl<T, P> fmt::Debug for TypedQuery<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.fmt(f)
    }
}
