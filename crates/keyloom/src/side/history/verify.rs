//! Whether a cell of a history is what its key says, and whether a record's key leads to it.

use serde_json::Value;

use super::keys::{
    Trace, trace_address, trace_of, traces_of, version_address, version_of, versions_of,
};
use super::past::Past;
use crate::engine::{Address, Area, Cell, Direction, Row};
use crate::error::Result;
use crate::own::own_address;
use crate::record::Version;
use crate::side::finding::{FindingKind, Flaw};
use crate::space::{Live, Loaded};

/// How many traces are looked at together.
const TRACES: usize = 64;

/// The cells that tell whether the cell of a row is right, itself first.
pub(super) fn witnesses(loaded: &Loaded, row: &Row) -> Vec<Address> {
    let own = own_address(row.key.clone());
    let Some((name, version)) = version_of(&row.key) else { return vec![own] };
    let Some((collection, past)) =
        loaded.schema.collections.get(name).zip(Past::from_cell(&row.cell))
    else {
        return vec![own];
    };
    let next = version.at_revision(version.revision().saturating_add(1));
    let key = past.key.as_bytes();
    let holder = match past.kind.is_end() {
        true => trace_address(name, key, Trace { at: past.at, version }),
        false => Address::new(collection.area.clone(), key.to_vec()),
    };
    vec![own, version_address(name, next), holder]
}

/// The witnesses of a version that seems to be lost. Versions between it and what leads to it may
/// be gone, because they could not be read: any later version of the same record will do, and any
/// trace that it left later under the key.
pub(super) async fn search(
    live: &Live,
    row: &Row,
    mut witnesses: Vec<Address>,
) -> Result<Vec<Address>> {
    let Some(((name, version), past)) = version_of(&row.key).zip(Past::from_cell(&row.cell)) else {
        return Ok(witnesses);
    };
    let [_, next, holder] = &mut witnesses[..] else { return Ok(witnesses) };
    let later = versions_of(name, version, version.revision().saturating_add(1), u64::MAX);
    let found = live.scan_one(&later, 1, Direction::Forward).await?;
    if let Some(found) = found.rows.first() {
        *next = own_address(found.key.clone());
        return Ok(witnesses);
    }
    let mut traces = traces_of(name, past.key.as_bytes(), None);
    while !traces.is_empty() {
        let stretch = live.scan_one(&traces, TRACES, Direction::Forward).await?;
        for found in &stretch.rows {
            if trace_of(&found.key).is_some_and(|(_, trace)| {
                trace.version.is_same_incarnation(version) && trace.version > version
            }) {
                *holder = own_address(found.key.clone());
                return Ok(witnesses);
            }
        }
        let Some(last) = stretch.rows.last().filter(|_| stretch.more) else { break };
        traces = traces.after(&last.key, Direction::Forward);
    }
    Ok(witnesses)
}

/// What is wrong with a cell, given it and its other witnesses; `None` when nothing is.
pub(super) fn judge(
    loaded: &Loaded,
    witnesses: &[Address],
    cells: &[Option<Cell>],
) -> Option<Flaw> {
    let key = &witnesses.first()?.key;
    let cell = cells.first()?.as_ref()?;
    let name = version_of(key).map(|(name, _)| name).or_else(|| Some(trace_of(key)?.0));
    let keeps = |name: &str| loaded.schema.collections.get(name)?.history;
    let (kind, reason) = if name.and_then(keeps).is_none() {
        (FindingKind::Unknown, "it begins like a history and belongs to none")
    } else if !is_readable(key, cell) {
        (FindingKind::Unreadable, "the cell of a history cannot be read")
    } else {
        let (_, version) = version_of(key)?;
        (FindingKind::Dangling, lost(version, cell, witnesses.get(2)?, cells.get(1..)?)?)
    };
    let (collection, record) = (name.map(str::to_owned), Past::from_cell(cell).map(|it| it.key));
    Some(Flaw { collection, record, ..Flaw::new(kind, reason) })
}

fn is_readable(key: &[u8], cell: &Cell) -> bool {
    match trace_of(key) {
        None => Past::from_cell(cell).is_some(),
        Some((name, trace)) => {
            let record = cell.bytes().and_then(|text| serde_json::from_slice(text).ok());
            matches!(record, Some(Value::String(record))
                if trace_address(name, record.as_bytes(), trace).key[..] == *key)
        }
    }
}

/// Why no key leads to a version: the last of its record is followed by nothing, is not of the
/// record that is there, and left no trace.
fn lost(
    version: Version,
    cell: &Cell,
    holder_address: &Address,
    others: &[Option<Cell>],
) -> Option<&'static str> {
    let [next, holder] = others else { return None };
    let is_end = Past::from_cell(cell)?.kind.is_end();
    let is_trace = holder_address.area == Area::own() && trace_of(&holder_address.key).is_some();
    let is_held = |holder: &Cell| {
        let record = Version::from_stamp(holder.stamp);
        is_trace || (record.is_same_incarnation(version) && record >= version)
    };
    if next.is_some() || holder.as_ref().is_some_and(is_held) {
        return None;
    }
    Some(match is_end {
        true => "a record ended here, and left no trace under its key",
        false => "neither its record nor a later version is there",
    })
}
