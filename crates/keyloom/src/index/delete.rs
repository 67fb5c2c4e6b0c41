//! Deletes records, also those that cannot be read.
//!
//! A record says which entries it has. One that cannot be read does not, so that every entry of its
//! collection is looked at for those that name it. They go first: what is left after a crash in
//! between is a record that cannot be read, as before, and not entries that lead nowhere.

use std::sync::Arc;

use bytes::Bytes;

use super::pair::owner;
use super::pair_repair::{Mender, condition};
use crate::engine::{Address, Cell, Effect, ShowKey, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{Version, read_record};
use crate::schema::Collection;
use crate::space::{Loaded, Session, Under, Walk};
use crate::write;

/// How often it is tried while the record or the schema changes.
const ATTEMPTS: usize = 16;

/// How many entries are read at once.
const CHUNK_KEYS: usize = 256;

/// How many entries go in one batch.
const GROUP_ENTRIES: usize = 32;

/// Deletes a record with everything it owns, in this version if one is given. Gives the version
/// that it had, or `None` when it was not there.
pub(crate) async fn delete(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    expected: Option<Version>,
) -> Result<Option<Version>> {
    let mut attempts = session.live.attempts("what is at the record's key kept changing");
    for _ in 0..ATTEMPTS {
        let unreadable = match write::delete(session, name, &key, expected).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => error,
            deleted => return deleted,
        };
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        let key = key(collection)?;
        let address = Address::new(collection.area.clone(), key.clone());
        let Some(cell) = session.live.get_one(&address).await? else { continue };
        if read_record(collection, &key, &cell).is_ok() {
            // Somebody put it right meanwhile, or the error was about something else.
            if unreadable.context_value("key").is_none() {
                return Err(unreadable);
            }
            continue;
        }
        let version = Version::from_stamp(cell.stamp);
        if let Some(expected) = expected.filter(|expected| *expected != version) {
            return Err(conflict(name, &key, expected, version));
        }
        session.check_write(collection, &key)?;
        let released = release(session, &loaded, collection, &address, cell.stamp).await;
        if attempts.settle(released).await? == Some(true)
            && write::discard(session, &loaded, collection, &key, &cell).await?
        {
            return Ok(Some(version));
        }
        session.live.reload().await?;
    }
    let message = "what is at the record's key kept changing";
    Err(Error::new(ErrorKind::Contention, message).with("collection", name))
}

/// Deletes every entry that names the record, as long as that is in this state. `false` when it is
/// not.
async fn release(
    session: &Session,
    loaded: &Loaded,
    collection: &Arc<Collection>,
    record: &Address,
    stamp: Stamp,
) -> Under<bool> {
    let mender = Mender { live: &session.live, loaded };
    let maintained = collection.indexes.values().filter(|i| loaded.is_maintained(collection, i));
    for index in maintained {
        let mut walk = Walk::of(&index.key, index.entry_range()?, CHUNK_KEYS);
        while let Some(chunk) = walk.next(&session.live).await? {
            let own = |key: &Bytes, cell: &Cell| {
                owner(collection, index, key, cell).is_some_and(|owner| owner == record.key)
            };
            let own: Vec<_> =
                chunk.rows.into_iter().filter(|row| own(&row.key, &row.cell)).collect();
            for group in own.chunks(GROUP_ENTRIES) {
                let mut batch = mender.batch();
                batch.push(record.clone(), Some(condition(Some(stamp))), None);
                for row in group {
                    let entry = Address::new(index.area.clone(), row.key.clone());
                    let unchanged = condition(Some(row.cell.stamp));
                    batch.push(entry, Some(unchanged), Some(Effect::Delete));
                }
                if !mender.commit(batch).await? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

fn conflict(name: &str, key: &Bytes, expected: Version, version: Version) -> Error {
    Error::new(ErrorKind::VersionConflict, "the record changed since it was read")
        .with("collection", name)
        .with("key", ShowKey(key))
        .with("expected version", expected)
        .with("version", version)
        .with_retry(false)
}
