//! Pages and lists that end before they become too large.
//!
//! Most pages fit into the memory that every request holds. A larger one waits for the memory of
//! the largest answer, and continues aside.

use keyloom::{Error, Page, Stopped};

use crate::app::App;
use crate::guard::Arrival;
use crate::memory::PAGE_BYTES;
use crate::problem::Problem;

/// Reads a page of at most this many bytes. If the limit stopped it, reads it again after taking
/// memory for a large page.
pub(super) async fn page<R, Fut>(
    app: &App,
    arrival: &Arrival,
    read: impl Fn(usize) -> Fut,
) -> Result<Page<R>, Problem>
where
    Fut: Future<Output = Result<Page<R>, Error>>,
{
    let bytes_max = app.config().limits.answer_bytes_max;
    let small = PAGE_BYTES.min(bytes_max);
    let page = read(small).await?;
    if page.stopped != Stopped::Bytes || small == bytes_max {
        return Ok(page);
    }
    drop(page);
    arrival.go_aside().await;
    arrival.expect_large(app.memory(), bytes_max).await;
    Ok(read(bytes_max).await?)
}

/// How many rows of a list are read at once: each may have the largest size.
pub(super) const ROWS: usize = 8;

/// A list that is collected by several reads, each from the cursor of the one before.
pub(super) struct Growing<'a> {
    app: &'a App,
    arrival: &'a Arrival,
    /// How many rows it may still have.
    rows_left: usize,
    bytes: usize,
    is_large: bool,
    text: Vec<u8>,
}

impl<'a> Growing<'a> {
    /// A list of at most this many rows, whose text begins with `begin`.
    pub(super) fn new(app: &'a App, arrival: &'a Arrival, rows: usize, begin: &str) -> Self {
        let text = begin.as_bytes().to_vec();
        Growing { app, arrival, rows_left: rows, bytes: 0, is_large: false, text }
    }

    /// How many rows to read next.
    pub(super) fn rows(&self) -> usize {
        self.rows_left.min(ROWS)
    }

    /// Adds rows that were read. An answer that becomes large first takes memory for it.
    pub(super) async fn add(&mut self, rows: usize, texts: impl IntoIterator<Item = String>) {
        self.rows_left = self.rows_left.saturating_sub(rows);
        for text in texts {
            if self.bytes > 0 {
                self.text.push(b',');
            }
            self.bytes += text.len() + 1;
            self.text.extend_from_slice(text.as_bytes());
        }
        if self.bytes > PAGE_BYTES && !self.is_large {
            self.is_large = true;
            self.arrival.go_aside().await;
            let bytes_max = self.app.config().limits.answer_bytes_max;
            self.arrival.expect_large(self.app.memory(), bytes_max).await;
        }
    }

    /// Why it takes no more rows; `None` while it does.
    pub(super) fn stopped(&self) -> Option<&'static str> {
        match self.rows_left {
            0 => Some("take"),
            _ if self.bytes >= self.app.config().limits.answer_bytes_max => Some("bytes"),
            _ => None,
        }
    }

    /// The text of the list, up to and without its end.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }
}
