//! One moment of a store in a folder, as an engine.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::super::log::Allowance;
use super::super::pin::{is_pinned, wait_pinned};
use super::super::quantum::pay_for_log;
use super::super::{
    Address, Area, Batch, Capabilities, Cell, Direction, Engine, Link, LogBounds, LogSlice,
    Outcome, Position, Range, Row, Space, Stretch, Trail,
};
use super::log;
use super::view::View;
use crate::error::Result;

/// A view that stays at its moment.
pub(super) struct Pinned {
    capabilities: Capabilities,
    view: Arc<View>,
}

impl Pinned {
    pub(super) fn new(capabilities: &Capabilities, view: Arc<View>) -> Self {
        Pinned { capabilities: capabilities.clone(), view }
    }
}

#[async_trait]
impl Engine for Pinned {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        addresses.iter().try_for_each(Address::check)?;
        self.view.moment()?.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.view.moment()?.scan(space, ranges, limit, direction).await
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        self.view.moment()?.follow(space, trails, limit, direction).await
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        self.view.moment()?.areas(space)
    }

    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        self.view.moment()?;
        Ok(Arc::new(Pinned::new(&self.capabilities, self.view.clone())))
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        self.view.moment()?;
        Err(is_pinned())
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        let allowance = Allowance::new(entries_max, bytes_max);
        let slice = log::read(&self.view.moment()?, space, from, allowance)?;
        pay_for_log(&slice).await;
        Ok(slice)
    }

    async fn trim_log(&self, _: &Space, _: Position, _: usize) -> Result<LogBounds> {
        self.view.moment()?;
        Err(is_pinned())
    }

    async fn extend_log(&self, _: &Space, _: Position, _: &[Bytes]) -> Result<LogBounds> {
        self.view.moment()?;
        Err(is_pinned())
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        wait_pinned(space, log::bounds(&self.view.moment()?, space)?, beyond)
    }

    async fn close(&self) -> Result<()> {
        self.view.close();
        Ok(())
    }
}
