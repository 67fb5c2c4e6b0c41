//! Reads that hold under one state of the schema only: those of index entries, which nobody
//! maintains once another process has disabled the index.
//!
//! Beside the catalog lies a small cell, the epoch, with the catalog's stamp. It is read in the
//! same call as the entries, so that it costs no round trip, and tells whether the schema at that
//! moment was the one that the question was decided by. Where answers mix moments it is read after
//! the entries instead: if the schema is still the same then, it was so before.

use super::{Live, Loaded};
use crate::engine::{
    Address, Cell, Direction, Link, Range, Reading, Recipe, Row, Stretch, Trail, successor,
};
use crate::error::{Error, ErrorKind, Result};
use crate::own::OwnKey;

pub(crate) fn epoch_address() -> Address {
    OwnKey::Epoch.address()
}

/// Where the epoch lies, in the forms that the calls of an engine take.
pub(super) struct Epoch {
    pub(super) address: Address,
    range: Range,
    /// The epoch leads to no record.
    recipe: Recipe,
}

impl Epoch {
    pub(super) fn new() -> Self {
        let address = epoch_address();
        let (area, start) = (address.area.clone(), address.key.clone());
        let recipe = Recipe { area: area.clone(), cuts: Vec::new(), parts: Vec::new() };
        Epoch { range: Range { area, end: Some(successor(&start)), start }, recipe, address }
    }
}

impl Live {
    /// Reads cells under this state of the schema.
    pub(crate) async fn get_under(
        &self,
        loaded: &Loaded,
        addresses: &[Address],
    ) -> Result<Vec<Option<Cell>>> {
        if !self.reads_moments() {
            let cells = self.engine.get(&self.space, addresses).await?;
            self.check_epoch(loaded).await?;
            return Ok(cells);
        }
        let wanted = [addresses, std::slice::from_ref(&self.epoch.address)].concat();
        let mut cells = self.engine.get(&self.space, &wanted).await?;
        loaded.check_current(cells.pop().flatten().as_ref())?;
        Ok(cells)
    }

    /// Scans ranges under this state of the schema.
    pub(crate) async fn scan_under(
        &self,
        loaded: &Loaded,
        mut ranges: Vec<Range>,
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        if !self.reads_moments() {
            let stretches = self.engine.scan(&self.space, &ranges, limit, direction).await?;
            self.check_epoch(loaded).await?;
            return Ok(stretches);
        }
        ranges.push(self.epoch.range.clone());
        let mut stretches = self.engine.scan(&self.space, &ranges, limit, direction).await?;
        let epoch = stretches.pop().and_then(|mut epoch| epoch.rows.pop());
        loaded.check_current(epoch.map(|row| row.cell).as_ref())?;
        Ok(stretches)
    }

    /// Follows entries under this state of the schema.
    pub(crate) async fn follow_under<'t>(
        &'t self,
        loaded: &Loaded,
        mut trails: Vec<Trail<'t>>,
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        if !self.reads_moments() {
            let stretches = self.engine.follow(&self.space, &trails, limit, direction).await?;
            self.check_epoch(loaded).await?;
            return Ok(stretches);
        }
        trails.push(Trail { range: self.epoch.range.clone(), recipe: &self.epoch.recipe });
        let mut stretches = self.engine.follow(&self.space, &trails, limit, direction).await?;
        let epoch = stretches.pop().and_then(|mut epoch| epoch.rows.pop());
        loaded.check_current(epoch.map(|link| link.entry.cell).as_ref())?;
        Ok(stretches)
    }

    /// Whether this state of the schema is the one in the store.
    pub(crate) async fn is_current(&self, loaded: &Loaded) -> Result<bool> {
        match self.check_epoch(loaded).await {
            Err(error) if error.kind() == ErrorKind::StaleSchema => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    async fn check_epoch(&self, loaded: &Loaded) -> Result<()> {
        let epoch = std::slice::from_ref(&self.epoch.address);
        loaded.check_current(self.engine.get(&self.space, epoch).await?.pop().flatten().as_ref())
    }

    /// Whether everything that one call reads is of one moment.
    fn reads_moments(&self) -> bool {
        self.engine.capabilities().reading == Reading::Snapshot
    }
}

impl Loaded {
    /// Fails if the epoch, as it was read, is not the one of this state of the schema.
    fn check_current(&self, epoch: Option<&Cell>) -> Result<()> {
        if epoch.map(|epoch| epoch.stamp) == self.version.map(|version| version.stamp()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::StaleSchema, "the schema kept changing under the read"))
    }
}
