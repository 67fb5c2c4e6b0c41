//! Reads groups one by one, in the order of their values.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Group;
use crate::engine::{Direction, Range, Row};
use crate::error::Result;
use crate::schema::{Aggregate, Generation};
use crate::side::{Total, unreadable_cell};
use crate::space::{Loaded, Session};

/// The most cells that one read asks for.
const CHUNK_CELLS: usize = 1_000;

/// Reads groups one by one.
pub(super) struct Walk<'s> {
    session: &'s Session,
    pub(super) aggregate: Arc<Aggregate>,
    generation: Generation,
    /// The schema that says which generation to read.
    loaded: Arc<Loaded>,
    left: Range,
    more: bool,
    /// Rows that were read and not given yet, the next one last.
    rows: Vec<Row>,
}

/// The next step of a walk.
pub(super) enum Next {
    /// The group's part of the key, and the group unless it is empty.
    Group(Bytes, Option<Group>),
    End,
}

impl<'s> Walk<'s> {
    /// A walk over these cells of a generation, under this schema.
    pub(super) fn new(
        session: &'s Session,
        aggregate: Arc<Aggregate>,
        generation: Generation,
        loaded: Arc<Loaded>,
        cells: Range,
    ) -> Self {
        Walk { session, aggregate, generation, loaded, left: cells, more: true, rows: Vec::new() }
    }

    /// The next group. Reads up to `ahead` cells ahead.
    pub(super) async fn next(&mut self, ahead: usize) -> Result<Next> {
        self.refill(ahead).await?;
        let Some(first) = self.rows.pop() else { return Ok(Next::End) };
        let (key, values) = self.read_key(&first)?;
        let mut total = Total::default();
        total.add(&self.aggregate, &first)?;
        loop {
            self.refill(ahead).await?;
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

    /// Reads more cells when all earlier ones are given. Under another schema, this generation may
    /// no longer exist.
    async fn refill(&mut self, ahead: usize) -> Result<()> {
        if !self.rows.is_empty() || !self.more || self.left.is_empty() {
            return Ok(());
        }
        let limit = ahead.saturating_add(1).min(CHUNK_CELLS);
        let cells = vec![self.left.clone()];
        let live = &self.session.live;
        let mut stretches = live.scan_under(&self.loaded, cells, limit, Direction::Forward).await?;
        self.more = false;
        if let Some(stretch) = stretches.pop() {
            self.more = stretch.more;
            self.rows = stretch.rows;
        }
        if let Some(last) = self.rows.last() {
            self.left = self.left.after(&last.key, Direction::Forward);
        }
        self.rows.reverse();
        Ok(())
    }

    fn read_key(&self, row: &Row) -> Result<(Bytes, Vec<Value>)> {
        self.aggregate
            .read_cell(self.generation, &row.key)
            .ok_or_else(|| unreadable_cell(&self.aggregate, row))
    }
}
