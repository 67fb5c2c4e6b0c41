//! The keys of one template, chunk by chunk.

use crate::engine::{Direction, Range, Row};
use crate::error::Result;
use crate::key::Template;
use crate::space::Live;

/// Reads a range chunk by chunk, and jumps over keys of other templates.
pub(crate) struct Rows<'t> {
    template: &'t Template,
    left: Range,
    more: bool,
}

impl<'t> Rows<'t> {
    pub(crate) fn new(template: &'t Template, range: Range) -> Self {
        Rows { template, left: range, more: true }
    }

    /// The next keys of the template, at most as many as asked for; `None` when there are none.
    pub(crate) async fn next(&mut self, live: &Live, count: usize) -> Result<Option<Vec<Row>>> {
        while self.more && !self.left.is_empty() {
            let stretch = live.scan_one(&self.left, count, Direction::Forward).await?;
            self.more = stretch.more;
            let mut rows = Vec::with_capacity(stretch.rows.len());
            for row in stretch.rows {
                // A jump may have gone beyond keys that were read already.
                if !self.left.contains(&row.key) {
                    continue;
                }
                if self.template.decode(&row.key).is_none() {
                    self.left = self.template.skip(&self.left, &row.key, Direction::Forward);
                    continue;
                }
                self.left = self.left.after(&row.key, Direction::Forward);
                rows.push(row);
            }
            if !rows.is_empty() {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }
}
