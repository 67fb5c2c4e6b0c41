//! Removes the answers to keys whose time has passed.

use super::is_over;
use crate::engine::{Address, Area, Condition};
use crate::error::Result;
use crate::idempotency::{Kept, own_range};
use crate::purge::{PurgeOptions, Purged, purge};
use crate::session::Session;

pub(crate) async fn purge_idempotency_keys(
    session: &Session,
    options: &PurgeOptions,
) -> Result<Purged> {
    purge(session, options, &[own_range()], async |_, loaded, rows| {
        let (keep_ms, now) = (loaded.schema.idempotency_keep_ms, session.now());
        let over = rows.iter().filter(|row| {
            Kept::from_cell(&row.cell).is_some_and(|kept| is_over(&kept, keep_ms, now))
        });
        // A key that is over may be in use again.
        let removal = |row: &crate::engine::Row| {
            let address = Address::new(Area::own(), row.key.clone());
            (address, Some(Condition::Unchanged(row.cell.stamp)))
        };
        Ok(over.map(removal).collect())
    })
    .await
}
