//! All pages of an answer, one after another.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::FusedStream;
use serde::de::DeserializeOwned;

use super::collection::Collection;
use super::fields::KeyFields;
use super::stored::Stored;
use crate::error::{Error, Result};
use crate::query::{Cursor, HistoryEntry, IntoCursor, Near, Nearby, Page, Query};
use crate::record::{Document, Key};

type Reading<R> = Pin<Box<dyn Future<Output = Result<Page<R>>> + Send>>;

/// The pages of an answer, one after another: a [`Stream`] whose items are `Result<Page<R>>`.
///
/// It reads one page at a time, and only when asked for it, so dropping it early wastes no read. It
/// continues where a page stopped, whatever the reason. A [`limit`](Query::limit) therefore bounds
/// each page, and not the whole.
///
/// The stream ends after the last page, and after an error. The pages before an error are valid,
/// and [`cursor`](Self::cursor) says where to continue.
///
/// ```
/// # use keyloom::{Query, Result, Store, Schema};
/// # use serde_json::json;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let store = Store::open("memory:").await?;
/// # store.apply(&Schema::from_toml("[collection.note]\nkey = \"note:{name}\"\nfields = { name = \"text\" }")?).await?;
/// # let notes = store.documents("note").await?;
/// # for name in ["a", "b", "c"] { notes.insert(&json!({ "name": name })).await?; }
/// let mut pages = notes.pages(&Query::new().scan().take(2));
/// let mut sizes = Vec::new();
/// while let Some(page) = pages.next().await {
///     sizes.push(page?.records.len());
/// }
/// assert_eq!(sizes, [2, 1]);
/// # Ok(())
/// # }
/// ```
#[must_use = "pages are read when they are asked for"]
pub struct Pages<R> {
    /// Reads the page at a cursor.
    read: Box<dyn Fn(Option<String>) -> Reading<R> + Send + Sync>,
    cursor: Option<String>,
    state: State<R>,
}

enum State<R> {
    /// The page at the cursor is to be read next.
    Due,
    Reading(Reading<R>),
    /// The query is invalid.
    Refused(Error),
    Over,
}

impl<R> Pages<R> {
    fn new(
        cursor: Option<String>,
        read: impl Fn(Option<String>) -> Reading<R> + Send + Sync + 'static,
    ) -> Self {
        Pages { read: Box::new(read), cursor, state: State::Due }
    }

    /// The same pages from a cursor on; `None` is the first page.
    pub(crate) fn starting_at(self, cursor: impl IntoCursor) -> Self {
        Pages { cursor: cursor.into_cursor(), ..self }
    }

    /// The pages of a query that is refused before anything is read.
    pub(crate) fn refused(self, error: Error) -> Self {
        Pages { state: State::Refused(error), ..self }
    }

    /// The next page; `None` after the last, and after an error.
    pub async fn next(&mut self) -> Option<Result<Page<R>>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Where the next page begins, to continue later or after an error with [`Query::from_cursor`].
    /// `None` before the first page was read, and after the last.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The records of all pages, one by one.
    pub fn records(self) -> PagedRecords<R> {
        PagedRecords { pages: self, ready: VecDeque::new() }
    }

    /// Ends with an error of the caller that wanted the next page.
    pub(crate) fn end_with(&mut self, error: Error) -> Option<Result<Page<R>>> {
        let is_over = self.is_terminated();
        self.state = State::Over;
        (!is_over).then_some(Err(error))
    }

    /// Whether it reads from its cursor towards the start.
    fn is_backward(&self) -> bool {
        self.cursor.as_deref().is_some_and(Cursor::is_towards_start)
    }

    /// Moves the cursor past a page that was read.
    fn pass(&mut self, page: &Page<R>) {
        let onward = if self.is_backward() { &page.previous } else { &page.next };
        self.cursor = onward.into_cursor();
        if self.cursor.is_some() {
            self.state = State::Due;
        }
    }
}

impl<R> Stream for Pages<R> {
    type Item = Result<Page<R>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let State::Due = self.state {
            self.state = State::Reading((self.read)(self.cursor.clone()));
        }
        let read = match &mut self.state {
            State::Reading(reading) => ready!(reading.as_mut().poll(context)),
            State::Due | State::Over => return Poll::Ready(None),
            State::Refused(_) => match std::mem::replace(&mut self.state, State::Over) {
                State::Refused(error) => Err(error),
                _ => return Poll::Ready(None),
            },
        };
        self.state = State::Over;
        if let Ok(page) = &read {
            self.pass(page);
        }
        Poll::Ready(Some(read))
    }
}

impl<R> FusedStream for Pages<R> {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Over)
    }
}

impl<R> fmt::Debug for Pages<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

/// The records of all pages of an answer, one by one: a [`Stream`] whose items are `Result<R>`.
/// Made by [`Pages::records`].
///
/// A record that a page could not decode ([`Page::problems`]) is an error of kind
/// [`Corrupt`](crate::ErrorKind::Corrupt) with its key. It comes after the records of that page,
/// and the stream continues. So `?` never skips a record silently, and a program that wants to skip
/// it can. Every other error ends the stream.
///
/// From a cursor that leads backwards, all records come in the opposite order, across pages too.
#[must_use = "records are read when they are asked for"]
pub struct PagedRecords<R> {
    pages: Pages<R>,
    /// Records of the last page that nobody has taken yet.
    ready: VecDeque<Result<R>>,
}

impl<R> PagedRecords<R> {
    /// The next record; `None` after the last, and after an error that ends the stream.
    pub async fn next(&mut self) -> Option<Result<R>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<R> PagedRecords<R> {
    /// Ends with an error of the caller that wanted the next record.
    pub(crate) fn end_with(&mut self, error: Error) -> Option<Result<R>> {
        let is_over = self.is_terminated();
        self.ready.clear();
        self.pages.state = State::Over;
        (!is_over).then_some(Err(error))
    }
}

/// Only futures are ever pinned, and they are boxed.
impl<R> Unpin for PagedRecords<R> {}

impl<R> Stream for PagedRecords<R> {
    type Item = Result<R>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Poll::Ready(Some(next));
            }
            let is_backward = self.pages.is_backward();
            let mut page = match ready!(Pin::new(&mut self.pages).poll_next(context)) {
                Some(Ok(page)) => page,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            if is_backward {
                page.records.reverse();
                page.problems.reverse();
            }
            self.ready.extend(page.records.into_iter().map(Ok));
            self.ready.extend(page.problems.into_iter().map(|problem| Err(problem.into())));
        }
    }
}

impl<R> FusedStream for PagedRecords<R> {
    fn is_terminated(&self) -> bool {
        self.ready.is_empty() && self.pages.is_terminated()
    }
}

impl<R> fmt::Debug for PagedRecords<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagedRecords").field("pages", &self.pages).finish_non_exhaustive()
    }
}

/// All pages of an answer, one after another.
impl<T: 'static> Collection<T> {
    /// As [`documents`](Self::documents), all pages from the query's on.
    pub fn document_pages(&self, query: &Query) -> Pages<Document> {
        let (of, query) = (self.clone(), query.clone());
        Pages::new(query.cursor.clone(), move |cursor| {
            let (of, query) = (of.clone(), query.clone().from_cursor(cursor));
            Box::pin(async move { of.documents(&query).await })
        })
    }

    /// As [`keys`](Self::keys), all pages from the query's on.
    pub fn key_pages(&self, query: &Query) -> Pages<Key> {
        let (of, query) = (self.clone(), query.clone());
        Pages::new(query.cursor.clone(), move |cursor| {
            let (of, query) = (of.clone(), query.clone().from_cursor(cursor));
            Box::pin(async move { of.keys(&query).await })
        })
    }
}

impl<T: DeserializeOwned + 'static> Collection<T> {
    /// As [`page`](Self::page), all pages from the query's on, each of the query's size.
    pub fn pages(&self, query: &Query) -> Pages<Stored<T>> {
        let (of, query) = (self.clone(), query.clone());
        Pages::new(query.cursor.clone(), move |cursor| {
            let (of, query) = (of.clone(), query.clone().from_cursor(cursor));
            Box::pin(async move { of.page(&query).await })
        })
    }

    /// As [`near`](Self::near), all pages from the query's on, from near to far.
    pub fn near_pages(&self, near: &Near) -> Pages<Nearby<Stored<T>>> {
        let (of, near) = (self.clone(), near.clone());
        Pages::new(near.cursor.clone(), move |cursor| {
            let (of, near) = (of.clone(), near.clone().from_cursor(cursor));
            Box::pin(async move { of.near(&near).await })
        })
    }

    /// As [`history`](Self::history), all pages, each of at most `take` versions.
    pub fn history_pages(&self, key: impl KeyFields, take: usize) -> Pages<HistoryEntry<T>> {
        let (of, key) = (self.clone(), key.into_values());
        Pages::new(None, move |cursor| {
            let (of, key) = (of.clone(), key.clone());
            Box::pin(async move { of.history(key, take, cursor.as_deref()).await })
        })
    }
}
