//! Up to when a collection is free of expired records.

use std::sync::Arc;

use crate::engine::{Direction, EngineExt};
use crate::error::Result;
use crate::schema::{Collection, EXPIRY_INDEX};
use crate::space::Loaded;
use crate::space::Session;

/// As [`swept_until`], of the collection with this name.
pub(super) async fn swept(session: &Session, name: &str) -> Result<Option<u64>> {
    let find = |loaded: &Arc<Loaded>| Ok((loaded.clone(), loaded.schema.collection(name)?.clone()));
    let (loaded, collection) = session.live.decide(find).await?;
    swept_until(session, &loaded, &collection).await
}

/// The moment before which no record of the collection expired that is still in the store, in
/// milliseconds since 1970; `None` for a collection whose records do not expire. Zero while the
/// index that would tell is not complete, and for a user who may not know when the records of
/// others end.
///
/// Nothing has to be remembered for it: the index over the field lists records by their end, and
/// what was swept is not in it.
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
    // A key that cannot be read is one more thing that is not known.
    Ok(Some(ends.map_or(0, |ends| u64::try_from(ends).unwrap_or(0).min(now))))
}
