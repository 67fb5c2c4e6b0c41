//! Queries that are ready to run: `.await` them, or call `.wait()` if the store is a
//! [`blocking`](crate::blocking) one.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::parts::QueryParts;
use super::record::Record;
use crate::blocking::Runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::query::{IntoCursor, Page, Query};
use crate::record::{Document, Key};
use crate::store::{Collection, Stored};

type Boxed<A> = Pin<Box<dyn Future<Output = Result<A>> + Send>>;

/// An answer that is read when it is awaited.
#[must_use = "an answer is read when it is awaited"]
pub struct Answer<A> {
    future: Boxed<A>,
    runtime: Option<Arc<Runtime>>,
}

impl<A> Answer<A> {
    pub(super) fn new(
        runtime: Option<Arc<Runtime>>,
        future: impl Future<Output = Result<A>> + Send + 'static,
    ) -> Self {
        Answer { future: Box::pin(future), runtime }
    }

    /// Waits for the answer. Only for answers of a [`blocking::Store`](crate::blocking::Store):
    /// others must be awaited.
    pub fn wait(self) -> Result<A> {
        match self.runtime {
            Some(runtime) => runtime.run(self.future),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                "this answer comes from an async store, so it is awaited; \
                 `wait` is for a blocking store",
            )),
        }
    }
}

impl<A> Future for Answer<A> {
    type Output = Result<A>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<A>> {
        self.future.as_mut().poll(context)
    }
}

impl<A> fmt::Debug for Answer<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

/// A page that is read when it is awaited. `R` says what the page has: [`Records`], [`Documents`]
/// or [`Keys`].
#[must_use = "a page is read when it is awaited"]
pub struct Paging<T, R> {
    of: Collection<T>,
    runtime: Option<Arc<Runtime>>,
    query: Result<Query>,
    reads: PhantomData<fn() -> R>,
}

impl<T, R> Paging<T, R> {
    pub(super) fn new(parts: &QueryParts<T>, take: usize) -> Self {
        Paging {
            of: parts.of.clone(),
            runtime: parts.runtime.clone(),
            query: parts.query().map(|query| query.take(take)),
            reads: PhantomData,
        }
    }

    /// Continues from a cursor of an earlier page of the same query, in the cursor's direction:
    /// `page.next` leads onward, `page.previous` leads back. `None` is the first page.
    pub fn after(mut self, cursor: impl IntoCursor) -> Self {
        if let Some(text) = cursor.into_cursor() {
            self.query = self.query.map(|query| query.from_cursor(text));
        }
        self
    }
}

impl<T: Record, R: Reads<T>> Paging<T, R> {
    fn answer(self) -> Answer<Page<R::Item>> {
        let Paging { of, query, runtime, .. } = self;
        Answer::new(runtime, async move { R::read(of, query?).await })
    }

    /// Waits for the page. Only for pages of a [`blocking::Store`](crate::blocking::Store).
    pub fn wait(self) -> Result<Page<R::Item>> {
        self.answer().wait()
    }
}

impl<T: Record, R: Reads<T>> IntoFuture for Paging<T, R> {
    type Output = Result<Page<R::Item>>;
    type IntoFuture = Answer<Page<R::Item>>;

    fn into_future(self) -> Self::IntoFuture {
        self.answer()
    }
}

impl<T, R> fmt::Debug for Paging<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.of.name(), self.query)
    }
}

/// Pages of records.
pub struct Records(());

/// Pages of records as stored.
pub struct Documents(());

/// Pages of keys.
pub struct Keys(());

/// What the pages of a query have.
pub trait Reads<T>: 'static {
    /// The type of each item.
    type Item: 'static;

    /// Reads the page.
    fn read(
        of: Collection<T>,
        query: Query,
    ) -> impl Future<Output = Result<Page<Self::Item>>> + Send;
}

impl<T: Record> Reads<T> for Records {
    type Item = Stored<T>;

    async fn read(of: Collection<T>, query: Query) -> Result<Page<Stored<T>>> {
        of.page(&query).await
    }
}

impl<T: Record> Reads<T> for Documents {
    type Item = Document;

    async fn read(of: Collection<T>, query: Query) -> Result<Page<Document>> {
        of.documents(&query).await
    }
}

impl<T: Record> Reads<T> for Keys {
    type Item = Key;

    async fn read(of: Collection<T>, query: Query) -> Result<Page<Key>> {
        of.keys(&query).await
    }
}
