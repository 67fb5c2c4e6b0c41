//! Adds up the cells of a group.

use crate::engine::{Cell, Row, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::schema::{Aggregate, COUNT, SUM};

/// The cells of one group, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) count: i128,
    pub(crate) sum: i128,
}

impl Total {
    /// Adds the content of a cell.
    pub(crate) fn add(&mut self, aggregate: &Aggregate, row: &Row) -> Result<()> {
        let of = Total::of(&row.cell).ok_or_else(|| unreadable_cell(aggregate, row))?;
        self.count += of.count;
        self.sum += of.sum;
        Ok(())
    }

    /// The content of a cell; `None` if the cell is not one of an aggregate.
    pub(crate) fn of(cell: &Cell) -> Option<Total> {
        let integers = cell.integers()?;
        let at = |name| i128::from(integers.get(name).copied().unwrap_or(0));
        Some(Total { count: at(COUNT), sum: at(SUM) })
    }

    pub(crate) fn count(&self) -> Result<i64> {
        narrow(self.count)
    }

    pub(crate) fn sum(&self, aggregate: &Aggregate) -> Result<Option<i64>> {
        aggregate.summed.as_ref().map(|_| narrow(self.sum)).transpose()
    }
}

fn narrow(sum: i128) -> Result<i64> {
    i64::try_from(sum).map_err(|_| {
        let message = "the sum of the group does not fit into 64 bits";
        Error::new(ErrorKind::LimitExceeded, message).with("sum", sum)
    })
}

pub(crate) fn unreadable_cell(aggregate: &Aggregate, row: &Row) -> Error {
    let message = "a cell of the aggregate cannot be read; run repair";
    aggregate.about(ErrorKind::Corrupt, message).with("key", ShowKey(&row.key))
}
