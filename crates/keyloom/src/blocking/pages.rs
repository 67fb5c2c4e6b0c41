//! Pages for programs without an async runtime.

use std::sync::Arc;

use super::runtime::Runtime;
use crate::error::Result;
use crate::query::Page;

/// [`Pages`](crate::Pages) for programs without an async runtime: an iterator that waits for a page
/// at each step.
#[must_use = "pages are read when they are asked for"]
pub struct Pages<R> {
    inner: crate::Pages<R>,
    runtime: Arc<Runtime>,
}

/// [`PagedRecords`](crate::PagedRecords) for programs without an async runtime: an iterator.
#[must_use = "records are read when they are asked for"]
pub struct PagedRecords<R> {
    inner: crate::PagedRecords<R>,
    runtime: Arc<Runtime>,
}

impl<R> Pages<R> {
    pub(crate) fn new(inner: crate::Pages<R>, runtime: Arc<Runtime>) -> Self {
        Pages { inner, runtime }
    }

    /// As [`Pages::cursor`](crate::Pages::cursor).
    pub fn cursor(&self) -> Option<&str> {
        self.inner.cursor()
    }

    /// As [`Pages::records`](crate::Pages::records).
    pub fn records(self) -> PagedRecords<R> {
        PagedRecords { inner: self.inner.records(), runtime: self.runtime }
    }
}

impl<R> Iterator for Pages<R> {
    type Item = Result<Page<R>>;

    /// As [`Pages::next`](crate::Pages::next).
    fn next(&mut self) -> Option<Self::Item> {
        match self.runtime.wait(self.inner.next()) {
            Ok(next) => next,
            Err(error) => self.inner.end_with(error),
        }
    }
}

impl<R> Iterator for PagedRecords<R> {
    type Item = Result<R>;

    /// As [`PagedRecords::next`](crate::PagedRecords::next).
    fn next(&mut self) -> Option<Self::Item> {
        match self.runtime.wait(self.inner.next()) {
            Ok(next) => next,
            Err(error) => self.inner.end_with(error),
        }
    }
}
