//! Finds out up to when a collection is free of expired records.

use std::sync::Arc;

use crate::engine::{Direction, EngineExt};
use crate::error::Result;
use crate::schema::{Collection, EXPIRY_INDEX};
use crate::space::Loaded;
use crate::space::Session;

/// As [`swept_until`], for the collection with this name.
pub(super) async fn swept(session: &Session, name: &str) -> Result<Option<u64>> {
    let find = |loaded: &Arc<Loaded>| Ok((loaded.clone(), loaded.schema.collection(name)?.clone()));
    let (loaded, collection) = session.live.decide(find).await?;
    swept_until(session, &loaded, &collection).await
}

/// The time up to which all expired records of the collection were swept, in milliseconds since
/// 1970; `None` if its records do not expire. It is zero while the index over the ends is not
/// complete, and for a user who may not learn when the records of others expire.
///
/// Nothing has to be stored for it: the index over the ends lists all unswept records by the time
/// at which they expire.
pub(crate) async fn swept_until(
    session: &Session,
    loaded: &Loaded,
    collection: &Collection,
) -> Result<Option<u64>> {
    let Some(expiry) = &collection.expiry else { return Ok(None) };
    let index = collection.index(EXPIRY_INDEX)?;
    let tells_of_others = session.forced(collection).is_some();
    if tells_of_others || loaded.check_readable(collection, index).is_err() {
        return Ok(Some(0));
    }
    let now = session.now();
    let first = session
        .live
        .engine
        .scan_one(&session.live.space, &index.entry_range()?, 1, Direction::Forward)
        .await?;
    let Some(row) = first.rows.first() else { return Ok(Some(now)) };
    let ends = index.key.decode(&row.key).and_then(|values| expiry.form.millis(values.first()?));
    // If the first key cannot be decoded, nothing is known to be swept.
    Ok(Some(ends.map_or(0, |ends| u64::try_from(ends).unwrap_or(0).min(now))))
}
