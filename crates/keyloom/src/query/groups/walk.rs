//! Reading groups one by one, in the order of their values.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Group;
use super::total::{Total, unreadable};
use crate::engine::{Address, Direction, Fence, Range, Row, successor};
use crate::error::Result;
use crate::schema::{Aggregate, Generation};
use crate::space::Session;
use crate::space::catalog_address;

/// How many cells are read at once, at most.
const CHUNK_CELLS: usize = 1_000;

/// Reads groups one by one.
pub(super) struct Walk<'s> {
    session: &'s Session,
    pub(super) aggregate: Arc<Aggregate>,
    generation: Generation,
    /// The schema by which the generation is the one to read.
    fence: Option<Fence>,
    left: Range,
    more: bool,
    /// What was read and not given yet, the next one last.
    rows: Vec<Row>,
}

/// What a walk comes to next.
pub(super) enum Next {
    /// A group as it is in keys, and what it comes to unless it is empty.
    Group(Bytes, Option<Group>),
    End,
    StaleSchema,
}

impl<'s> Walk<'s> {
    /// A walk over these cells of a generation, while the fence stands.
    pub(super) fn new(
        session: &'s Session,
        aggregate: Arc<Aggregate>,
        generation: Generation,
        fence: Option<Fence>,
        cells: Range,
    ) -> Self {
        Walk { session, aggregate, generation, fence, left: cells, more: true, rows: Vec::new() }
    }

    /// The next group. Reads ahead for so many.
    pub(super) async fn next(&mut self, ahead: usize) -> Result<Next> {
        if !self.refill(ahead).await? {
            return Ok(Next::StaleSchema);
        }
        let Some(first) = self.rows.pop() else { return Ok(Next::End) };
        let (key, values) = self.read_key(&first)?;
        let mut total = Total::default();
        total.add(&self.aggregate, &first)?;
        loop {
            if !self.refill(ahead).await? {
                return Ok(Next::StaleSchema);
            }
            let Some(row) = self.rows.pop() else { break };
            if self.read_key(&row)?.0 != key {
                self.rows.push(row);
                break;
            }
            total.add(&self.aggregate, &row)?;
        }
        let count = total.count()?;
        let sum = total.sum(&self.aggregate)?;
        Ok(Next::Group(key, (count != 0).then_some(Group { values, count, sum })))
    }

    /// Reads on if everything that was read is given; `false` when the schema changed, so that
    /// this generation may be no more.
    async fn refill(&mut self, ahead: usize) -> Result<bool> {
        if !self.rows.is_empty() || !self.more || self.left.is_empty() {
            return Ok(true);
        }
        let live = &self.session.live;
        let Address { area, key } = catalog_address();
        let catalog = Range { area, end: Some(successor(&key)), start: key };
        let ranges = [self.left.clone(), catalog];
        let limit = ahead.saturating_add(1).min(CHUNK_CELLS);
        let mut stretches = live.scan(&ranges, limit, Direction::Forward).await?;
        let catalog = stretches.pop().and_then(|mut stretch| stretch.rows.pop());
        let stamp = catalog.map(|row| row.cell.stamp);
        if stamp != self.fence.as_ref().map(|fence| fence.stamp) {
            return Ok(false);
        }
        self.more = false;
        if let Some(stretch) = stretches.pop() {
            self.more = stretch.more;
            self.rows = stretch.rows;
        }
        if let Some(last) = self.rows.last() {
            self.left = self.left.after(&last.key, Direction::Forward);
        }
        self.rows.reverse();
        Ok(true)
    }

    fn read_key(&self, row: &Row) -> Result<(Bytes, Vec<Value>)> {
        self.aggregate
            .read_cell(self.generation, &row.key)
            .ok_or_else(|| unreadable(&self.aggregate, row))
    }
}
