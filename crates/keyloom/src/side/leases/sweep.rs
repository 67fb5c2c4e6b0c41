//! Removes what is left of leases whose work is gone.
//!
//! A worker that completes its work ends the lease in the same batch. One that crashed, or that
//! changed the record outside of the lease, leaves the lease's cell behind. It harms nobody, and
//! goes when it has run out and its entry is no more.

use super::cell::{LeaseContent, entry};
use crate::engine::{Address, Batch, Condition, Effect, Outcome, Row};
use crate::error::Result;
use crate::own::{OwnKind, own_address};
use crate::space::{Loaded, Session, Stage, Walk};

/// How many leases are looked at together.
const CHUNK: usize = 64;

/// Sweeps the leases of a space until it is told to stop; gives how many were removed.
pub(crate) async fn sweep_leases(
    session: &Session,
    goes_on: &(dyn Fn() -> bool + Send + Sync),
) -> Result<u64> {
    let loaded = session.live.loaded().await?;
    let now = session.now();
    let chunk = CHUNK.min(session.live.engine.capabilities().batch_entries_max.max(1));
    let mut walk = Walk::new(vec![Stage::all(vec![OwnKind::Lease.range()])], chunk);
    let mut removed = 0;
    while goes_on()
        && let Some(chunk) = walk.next(&session.live).await?
    {
        let gone = gone(session, &loaded, chunk.rows, now).await?;
        removed += remove(session, &gone).await?;
    }
    Ok(removed)
}

/// Those leases that have run out and whose entry is no more.
async fn gone(session: &Session, loaded: &Loaded, rows: Vec<Row>, now: u64) -> Result<Vec<Row>> {
    let mut gone = Vec::new();
    let mut ran_out = Vec::new();
    for row in rows {
        match LeaseContent::of(&row.cell) {
            Some(content) if content.until > now => {}
            Some(content) => match entry(&loaded.schema, &row.key, &content) {
                Some(address) => ran_out.push((row, address)),
                None => gone.push(row),
            },
            // It is no lease, and keeps nobody from anything.
            None => gone.push(row),
        }
    }
    let addresses: Vec<Address> = ran_out.iter().map(|(_, entry)| entry.clone()).collect();
    if !addresses.is_empty() {
        let entries = session.live.get(&addresses).await?;
        let without = ran_out.into_iter().zip(entries).filter(|(_, entry)| entry.is_none());
        gone.extend(without.map(|((row, _), _)| row));
    }
    Ok(gone)
}

/// Removes leases together, or each by itself if one of them changed meanwhile.
async fn remove(session: &Session, leases: &[Row]) -> Result<u64> {
    if leases.is_empty() || commit(session, leases).await? {
        return Ok(leases.len().try_into().unwrap_or(u64::MAX));
    }
    let mut removed = 0;
    for lease in leases {
        removed += u64::from(commit(session, std::slice::from_ref(lease)).await?);
    }
    Ok(removed)
}

async fn commit(session: &Session, leases: &[Row]) -> Result<bool> {
    let mut batch = Batch::new(session.live.space.clone());
    for Row { key, cell } in leases {
        let address = own_address(key.clone());
        batch.push(address, Some(Condition::Unchanged(cell.stamp)), Some(Effect::Delete));
    }
    Ok(matches!(session.commit_under_any_schema(batch).await?, Outcome::Committed(_)))
}
