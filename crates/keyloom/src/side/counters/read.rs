//! Reads records together with their counters, which are cells of their own.
//!
//! A collection without counters pays nothing: no address more is read, no text is looked at.

use bytes::Bytes;

use super::key::counter_address;
use crate::engine::{Address, Cell, Integers, Stamp};
use crate::error::Result;
use crate::record::{Document, shown};
use crate::schema::Collection;
use crate::space::Session;

/// What was counted beside a record, and the stamp of that state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) stamp: Stamp,
    pub(crate) values: Integers,
}

impl Counted {
    pub(crate) fn from_cell(cell: Cell) -> Option<Self> {
        // A cell of bytes is no counters. Increments are refused there, and verify tells.
        let values = cell.integers()?.clone();
        Some(Counted { stamp: cell.stamp, values })
    }
}

/// The cell of a record, and what was counted beside it.
pub(crate) struct Fetched {
    pub(crate) cell: Option<Cell>,
    pub(crate) counted: Option<Counted>,
}

/// The cells of records and their counters, in one round trip.
pub(crate) async fn fetch(
    session: &Session,
    collection: &Collection,
    keys: &[Bytes],
) -> Result<Vec<Fetched>> {
    let mut addresses: Vec<Address> =
        keys.iter().map(|key| Address::new(collection.area.clone(), key.clone())).collect();
    let beside: Vec<Option<Address>> =
        keys.iter().map(|key| counter_address(collection, key)).collect();
    addresses.extend(beside.iter().flatten().cloned());
    let mut records = session.live.get(&addresses).await?;
    let mut counters = records.split_off(keys.len().min(records.len())).into_iter();
    let fetched = records.into_iter().zip(beside).map(|(cell, beside)| {
        let counted = beside.and_then(|_| counters.next().flatten());
        Fetched { cell, counted: counted.and_then(Counted::from_cell) }
    });
    Ok(fetched.collect())
}

/// As [`fetch`], of one record.
pub(crate) async fn fetch_one(
    session: &Session,
    collection: &Collection,
    key: &Bytes,
) -> Result<Fetched> {
    let live = &session.live;
    let record = Address::new(collection.area.clone(), key.clone());
    let cells = match counter_address(collection, key) {
        Some(beside) => live.get(&[record, beside]).await?,
        None => live.get(std::slice::from_ref(&record)).await?,
    };
    let mut cells = cells.into_iter();
    let (cell, counted) = (cells.next().flatten(), cells.next().flatten());
    Ok(Fetched { cell, counted: counted.and_then(Counted::from_cell) })
}

/// Shows the counters of records that were read without them, by one more round trip for all.
pub(crate) async fn reveal<'d>(
    session: &Session,
    collection: &Collection,
    documents: impl Iterator<Item = &'d mut Document>,
) -> Result<()> {
    if collection.counters.is_empty() {
        return Ok(());
    }
    let documents: Vec<&mut Document> = documents.collect();
    let beside: Vec<Option<Address>> = documents
        .iter()
        .map(|document| counter_address(collection, document.key.bytes()))
        .collect();
    let addresses: Vec<Address> = beside.iter().flatten().cloned().collect();
    let mut cells = match addresses.is_empty() {
        true => Vec::new(),
        false => session.live.get(&addresses).await?,
    }
    .into_iter();
    for (document, beside) in documents.into_iter().zip(beside) {
        let cell = beside.and_then(|_| cells.next().flatten());
        let counted = cell.as_ref().and_then(Cell::integers);
        *document = shown(&collection.counters, document.clone(), counted);
    }
    Ok(())
}
