//! Removes what no aggregate uses any more: groups at zero, and the keys of generations and marks
//! that are over.

use std::sync::Arc;

use super::clean::is_used;
use super::total::Total;
use crate::engine::{Condition, Row};
use crate::error::Result;
use crate::own::{OwnKind, OwnRange, own_address};
use crate::schema::Aggregate;
use crate::space::Loaded;
use crate::space::Session;
use crate::space::{GoesOn, Judge, PurgeOptions, Purged, Removal, purge};

/// Marks before cells.
const KINDS: [OwnKind; 2] = [OwnKind::AggregateMark, OwnKind::AggregateCell];

pub(super) async fn purge_groups(
    session: &Session,
    options: &PurgeOptions,
    goes_on: GoesOn<'_>,
) -> Result<Purged> {
    purge(session, options, goes_on, &KINDS.map(OwnKind::range), &Unused).await
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
        Ok(rows.iter().filter_map(|row| removal(loaded, KINDS[place], row)).collect())
    }
}

/// How a cell goes, if it does. One of a group in use goes only if nothing was added since it was
/// read; nobody touches the others any more.
fn removal(loaded: &Loaded, kind: OwnKind, row: &Row) -> Option<Removal> {
    let (aggregate, generation) = owner(loaded, &row.key)?;
    let address = own_address(row.key.clone());
    if !is_used(loaded, aggregate, kind, generation) {
        return Some((address, None));
    }
    let is_empty = kind == OwnKind::AggregateCell && Total::of(&row.cell) == Some(Total::default());
    is_empty.then_some((address, Some(Condition::Unchanged(row.cell.stamp))))
}

/// The aggregate and the generation that a key belongs to; what belongs to none is told by
/// `verify`.
fn owner<'l>(loaded: &'l Loaded, key: &[u8]) -> Option<(&'l Arc<Aggregate>, u32)> {
    let OwnRange::Generation { collection, name, generation, .. } = OwnRange::generation_of(key)?
    else {
        return None;
    };
    let aggregate = loaded.schema.collections.get(collection)?.aggregates.get(name)?;
    Some((aggregate, generation))
}
