//! Pinned snapshots of a store in memory.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use async_trait::async_trait;
use bytes::Bytes;

use super::super::pin::{is_pinned, wait_pinned};
use super::super::quantum::{pay_for, pay_for_log, rows_of};
use super::super::{
    Address, Area, Batch, Capabilities, Cell, Direction, Engine, Link, LogBounds, LogSlice,
    Outcome, Position, Range, Row, Space, Stretch, Trail,
};
use super::closed;
use super::state::State;
use crate::error::Result;

/// The pinned snapshots of a store, which end with it.
#[derive(Debug, Default)]
pub(super) struct Pins(RwLock<Vec<Weak<Moment>>>);

impl Pins {
    /// Pins a state until the store is closed.
    pub(super) fn add(&self, capabilities: &Capabilities, state: State) -> Arc<dyn Engine> {
        let moment = Arc::new(Moment(RwLock::new(Some(Arc::new(state)))));
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|moment| moment.strong_count() > 0);
        all.push(Arc::downgrade(&moment));
        Arc::new(Pinned { capabilities: capabilities.clone(), moment })
    }

    pub(super) fn end(&self) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).for_each(|moment| moment.end());
    }
}

/// A state that nobody changes; `None` once it is released.
#[derive(Debug)]
pub(super) struct Moment(RwLock<Option<Arc<State>>>);

impl Moment {
    fn state(&self) -> Result<Arc<State>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)
    }

    fn end(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A pinned snapshot as an engine.
#[derive(Debug)]
struct Pinned {
    capabilities: Capabilities,
    moment: Arc<Moment>,
}

#[async_trait]
impl Engine for Pinned {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        addresses.iter().try_for_each(Address::check)?;
        let cells = self.moment.state()?.get(space, addresses);
        pay_for(cells.len()).await;
        Ok(cells)
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        let stretches = self.moment.state()?.scan(space, ranges, limit, direction);
        pay_for(rows_of(&stretches)).await;
        Ok(stretches)
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        let stretches = self.moment.state()?.follow(space, trails, limit, direction);
        pay_for(rows_of(&stretches)).await;
        Ok(stretches)
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        Ok(self.moment.state()?.areas(space))
    }

    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        self.moment.state()?;
        let (capabilities, moment) = (self.capabilities.clone(), self.moment.clone());
        Ok(Arc::new(Pinned { capabilities, moment }))
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        self.moment.state()?;
        Err(is_pinned())
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        let slice = self.moment.state()?.read_log(space, from, entries_max, bytes_max)?;
        pay_for_log(&slice).await;
        Ok(slice)
    }

    async fn trim_log(&self, _: &Space, _: Position, _: usize) -> Result<LogBounds> {
        self.moment.state()?;
        Err(is_pinned())
    }

    async fn extend_log(&self, _: &Space, _: Position, _: &[Bytes]) -> Result<LogBounds> {
        self.moment.state()?;
        Err(is_pinned())
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        wait_pinned(space, self.moment.state()?.log_bounds(space), beyond)
    }

    async fn close(&self) -> Result<()> {
        self.moment.end();
        Ok(())
    }
}
