//! Removes what no aggregate uses any more: groups at zero, and the keys of generations and marks
//! that are over.

use std::sync::Arc;

use super::clean::is_used;
use crate::engine::{Address, Area, Condition, Range, Row};
use crate::error::Result;
use crate::query::Total;
use crate::schema::{Aggregate, CELLS, MARKS};
use crate::space::Loaded;
use crate::space::Session;
use crate::space::{GoesOn, Judge, PurgeOptions, Purged, Removal, purge};

pub(crate) async fn purge_groups(
    session: &Session,
    options: &PurgeOptions,
    goes_on: GoesOn<'_>,
) -> Result<Purged> {
    let ranges = [MARKS, CELLS].map(|kind| Range::prefix(Area::own(), kind));
    purge(session, options, goes_on, &ranges, &Unused).await
}

/// What no aggregate uses.
struct Unused;

impl Judge for Unused {
    async fn removals(
        &self,
        _: &Session,
        loaded: &Loaded,
        place: usize,
        rows: &[Row],
    ) -> Result<Vec<Removal>> {
        let kind = if place == 0 { MARKS } else { CELLS };
        Ok(rows.iter().filter_map(|row| removal(loaded, kind, row)).collect())
    }
}

/// How a cell goes, if it does. One of a group in use goes only if nothing was added since it was
/// read; nobody touches the others any more.
fn removal(loaded: &Loaded, kind: &str, row: &Row) -> Option<Removal> {
    let (aggregate, generation) = owner(loaded, kind, &row.key)?;
    let address = Address::new(Area::own(), row.key.clone());
    if !is_used(loaded, aggregate, kind, generation) {
        return Some((address, None));
    }
    let is_empty = kind == CELLS && Total::of(&row.cell) == Some(Total::default());
    is_empty.then_some((address, Some(Condition::Unchanged(row.cell.stamp))))
}

/// The aggregate and the generation that a key belongs to; what belongs to none is told by
/// `verify`.
fn owner<'l>(loaded: &'l Loaded, kind: &str, key: &[u8]) -> Option<(&'l Arc<Aggregate>, u32)> {
    let mut names = key.strip_prefix(kind.as_bytes())?.split(|&byte| byte == b':');
    let mut name = || std::str::from_utf8(names.next()?).ok();
    let aggregate = loaded.schema.collections.get(name()?)?.aggregates.get(name()?)?;
    Some((aggregate, aggregate.generation_of(kind, key)?))
}
