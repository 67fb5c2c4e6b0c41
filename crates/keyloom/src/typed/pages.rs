//! All pages of a typed query.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::blocking::{self, Runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::query::{IntoCursor, Page};
use crate::store::{self, PagedRecords};

/// The pages of a typed query, one after another, as described at [`keyloom::Pages`](crate::Pages):
/// a [`Stream`], or, if the store is a [`blocking`](crate::blocking) one, an iterator after
/// [`wait`](Self::wait).
#[must_use = "pages are read when they are asked for"]
pub struct Pages<R> {
    inner: store::Pages<R>,
    runtime: Option<Arc<Runtime>>,
}

impl<R> Pages<R> {
    pub(super) fn new(inner: store::Pages<R>, runtime: &Option<Arc<Runtime>>) -> Self {
        Pages { inner, runtime: runtime.clone() }
    }

    /// Starts at a cursor of an earlier page of the same query, and continues in the cursor's
    /// direction. `None` is the first page.
    pub fn after(self, cursor: impl IntoCursor) -> Self {
        Pages { inner: self.inner.starting_at(cursor), ..self }
    }

    /// As [`Pages::next`](crate::Pages::next).
    pub async fn next(&mut self) -> Option<Result<Page<R>>> {
        self.inner.next().await
    }

    /// As [`Pages::cursor`](crate::Pages::cursor).
    pub fn cursor(&self) -> Option<&str> {
        self.inner.cursor()
    }

    /// As [`Pages::records`](crate::Pages::records).
    pub fn records(self) -> PagedRecords<R> {
        self.inner.records()
    }

    /// The same pages as an iterator; each step waits for a page. Only for pages of a
    /// [`blocking::Store`](crate::blocking::Store).
    pub fn wait(self) -> Result<blocking::Pages<R>> {
        match self.runtime {
            Some(runtime) => Ok(blocking::Pages::new(self.inner, runtime)),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                "these pages come from an async store, so they are awaited; \
                 `wait` is for a blocking store",
            )),
        }
    }
}

impl<R> Stream for Pages<R> {
    type Item = Result<Page<R>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.inner).poll_next(context)
    }
}

impl<R> fmt::Debug for Pages<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
