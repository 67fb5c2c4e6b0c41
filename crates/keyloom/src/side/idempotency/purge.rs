//! Removes the answers to keys whose time has passed.

use super::kept::Kept;
use crate::engine::{Condition, Row};
use crate::error::Result;
use crate::own::{OwnKind, own_address};
use crate::space::Loaded;
use crate::space::Session;
use crate::space::{GoesOn, Judge, PurgeOptions, Purged, Removal, purge};

pub(super) async fn purge_answers(
    session: &Session,
    options: &PurgeOptions,
    goes_on: GoesOn<'_>,
) -> Result<Purged> {
    purge(session, options, goes_on, &[OwnKind::Answer.range()], &Over).await
}

/// What was kept for as long as it is declared.
struct Over;

impl Judge for Over {
    async fn removals(
        &self,
        session: &Session,
        loaded: &Loaded,
        _: usize,
        rows: &[Row],
    ) -> Result<Vec<Removal>> {
        let (keep_ms, now) = (loaded.schema.idempotency_keep_ms, session.now());
        let over = rows.iter().filter(|row| {
            Kept::from_cell(&row.cell).is_some_and(|kept| is_over(&kept, keep_ms, now))
        });
        // A key that is over may be in use again.
        let removal =
            |row: &Row| (own_address(row.key.clone()), Some(Condition::Unchanged(row.cell.stamp)));
        Ok(over.map(removal).collect())
    }
}

/// Whether the time for which an answer is kept has passed.
pub(crate) fn is_over(kept: &Kept, keep_ms: u64, now: u64) -> bool {
    kept.at.saturating_add(keep_ms) <= now
}
