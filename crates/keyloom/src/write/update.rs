//! Changing a part of a record: by a merge patch or a function, with one attempt or several; and
//! moving a record to another key.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use super::attempts::{Attempts, contention};
use super::operations::{
    Overwrite, WrittenDocument, commit, complete, conflict, creation, may_draw_again, not_found,
    overwrite, read,
};
use crate::engine::{Address, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::record::{
    Version, check_aside, check_over, check_patch, merge, record_key, set_aside,
    write_whole_numbers,
};
use crate::schema::Collection;
use crate::side::{Before, Change, Counted, Counting, Current, Moved, Refused, Work};
use crate::space::{Loaded, Retry, Session, Under};
use crate::write::Effect;

/// How often a move is tried when only counters change meanwhile.
const COUNTED_ATTEMPTS: u32 = 500;

/// Merges a patch into the record if it is in this version. One attempt: if it is not, the error
/// carries the current record.
pub(crate) async fn update(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    patch: &Value,
    version: Version,
) -> Result<WrittenDocument> {
    let change = |collection: &Collection, current: &Current| {
        if current.version == version {
            return patched(collection, current, patch).map(Some);
        }
        Err(telling(collection, &key(collection)?, Some(current), version))
    };
    match revise(session, name, &key, Retry::never(), change).await {
        // The record changed between our read and our write: tell what it is now.
        Err(error) if error.kind() == ErrorKind::Contention => {
            let loaded = session.live.loaded().await?;
            let collection = loaded.schema.collection(name)?;
            let key = key(collection)?;
            let current = read(session, collection, &key).await?;
            Err(telling(collection, &key, current.as_ref(), version))
        }
        other => other,
    }
}

/// Merges a patch into the record as it is, and tries again if it changed meanwhile.
pub(crate) async fn update_with_retry(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    patch: &Value,
    retry: Retry,
) -> Result<WrittenDocument> {
    let change =
        |collection: &Collection, current: &Current| patched(collection, current, patch).map(Some);
    revise(session, name, key, retry, change).await
}

pub(super) fn patched(collection: &Collection, current: &Current, patch: &Value) -> Result<Value> {
    check_patch(collection, patch)?;
    let mut value = current.seen(collection);
    merge(&mut value, patch);
    Ok(value)
}

/// Changes a record that must be there by a function of what it is, and tries again if it changed
/// meanwhile. Where the function gives nothing, nothing is written.
pub(crate) async fn revise(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    retry: Retry,
    mut change: impl FnMut(&Collection, &Current) -> Result<Option<Value>>,
) -> Result<WrittenDocument> {
    let mut attempts = Attempts::new(session, retry);
    loop {
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        let key = key(collection)?;
        attempts.begin(collection, &key).await;
        let Some(current) = read(session, collection, &key).await? else {
            return Err(not_found(name, &key));
        };
        let Some(value) = change(collection, &current)? else {
            return Ok(kept(collection, &key, &current));
        };
        let value = checked(collection, &key, &current, value)?;
        refuse_another_key(collection, &key, &value)?;
        let (change, written) = match overwrite(collection, key, Some(current), value)? {
            Overwrite::Keep(written) => return Ok(written),
            Overwrite::Write(change, written) => (change, written),
        };
        let attempt = commit(session, &loaded, Work::of(std::slice::from_ref(&change))).await;
        if attempts.is_settled(attempt, || vec![change.address()]).await? {
            return Ok(written);
        }
    }
}

/// The answer for a record that a function left as it is.
fn kept(collection: &Collection, key: &Bytes, current: &Current) -> WrittenDocument {
    WrittenDocument { document: current.document(collection, key), effect: Effect::Unchanged }
}

/// What a change made of a record: a whole record again, whose counters it left alone.
pub(super) fn checked(
    collection: &Collection,
    key: &Bytes,
    current: &Current,
    value: Value,
) -> Result<Cow<'static, Value>> {
    let mut value = Cow::Owned(value);
    let aside = set_aside(collection, &mut value)?;
    check_aside(collection, key, &aside, current.values())?;
    write_whole_numbers(collection, &mut value);
    check_over(collection, &current.value, &value)?;
    Ok(value)
}

/// Creates a record, or changes the one with its key by a function of what it is.
pub(crate) async fn upsert_with(
    session: &Session,
    name: &str,
    record: &Value,
    retry: Retry,
    mut change: impl FnMut(&Collection, &Current) -> Result<Option<Value>>,
) -> Result<WrittenDocument> {
    let mut attempts = session.live.writes();
    let (mut ended, mut drawn) = (0, 0);
    loop {
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        let mut value = Cow::Borrowed(record);
        let codes = complete(session, collection, &mut value)?;
        let (creation, document) = creation(collection, value)?;
        let attempt = commit(session, &loaded, Work::of(std::slice::from_ref(&creation))).await;
        let Some(refused) = attempts.settle(attempt).await? else { continue };
        match refused {
            None => return Ok(WrittenDocument { document, effect: Effect::Created }),
            refused if may_draw_again(&refused, &codes, &mut drawn) => {}
            Some(Refused::Final(error)) if error.kind() == ErrorKind::AlreadyExists => {
                let key = creation.key;
                match revise(session, name, |_| Ok(key.clone()), retry, &mut change).await {
                    // Somebody deleted it between the two steps.
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        ended += 1;
                        if !retry.pause(ended).await {
                            return Err(contention(error, ended));
                        }
                    }
                    other => return other,
                }
            }
            Some(
                Refused::Changed(error)
                | Refused::Counted(error, _)
                | Refused::Taken(_, _, error)
                | Refused::Final(error),
            ) => return Err(error),
        }
    }
}

/// Moves a record to the key that its changed fields give, with every entry, in one batch.
pub(crate) async fn rename(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    retry: Retry,
    mut change: impl FnMut(&Collection, &Current) -> Result<Option<Value>>,
) -> Result<WrittenDocument> {
    let mut attempts = Attempts::new(session, retry);
    loop {
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        let old_key = key(collection)?;
        let address = Address::new(collection.area.clone(), old_key.clone());
        attempts.begin(collection, &old_key).await;
        let Some(current) = read(session, collection, &old_key).await? else {
            return Err(not_found(name, &old_key));
        };
        let Some(value) = change(collection, &current)? else {
            return Ok(kept(collection, &old_key, &current));
        };
        let value = checked(collection, &old_key, &current, value)?;
        let new_key = record_key(collection, &value)?;
        let (change, written) =
            match overwrite(collection, new_key.clone(), Some(current.clone()), value)? {
                Overwrite::Keep(written) if new_key == old_key => return Ok(written),
                // A declared transition forbids the change: the record stays where it is.
                Overwrite::Keep(written) => {
                    let document = current.document(collection, &old_key);
                    return Ok(WrittenDocument { document, ..written });
                }
                Overwrite::Write(change, written) => (change, written),
            };
        let attempt = if new_key == old_key {
            let work = Work::of(std::slice::from_ref(&change));
            commit(session, &loaded, work).await.map(|refused| (refused, written))
        } else {
            move_with_counters(session, &loaded, moved(*change, old_key), current.counted, written)
                .await
        };
        let Some((refused, written)) = attempts.under_schema.settle(attempt).await? else {
            continue;
        };
        if attempts.is_settled(Ok(refused), || vec![address]).await? {
            return Ok(written);
        }
    }
}

/// Commits a move. Increments that come between change what has to move, and nothing else: the
/// refusal tells what the counters are now, so that the next attempt need not read, and sooner or
/// later comes before the next increment.
async fn move_with_counters(
    session: &Session,
    loaded: &Loaded,
    mut changes: [Change<'_>; 2],
    mut counted: Option<Counted>,
    mut written: WrittenDocument,
) -> Under<(Option<Refused>, WrittenDocument)> {
    for _ in 0..COUNTED_ATTEMPTS {
        let [_, Change { after, .. }] = &mut changes;
        if let Some(after) = after {
            after.counted.clone_from(&counted);
        }
        let moved = Some(Moved { counted: counted.clone() });
        let counting = Counting { moved, ..Counting::default() };
        let work = Work { counting: &counting, ..Work::of(&changes) };
        match commit(session, loaded, work).await? {
            Some(Refused::Counted(_, now)) => counted = now,
            refused => {
                let [_, Change { collection, key, after, .. }] = &changes;
                if let Some(after) = after {
                    written.document = after.document(collection, key);
                }
                return Ok((refused, written));
            }
        }
    }
    let message = "the counters changed at every attempt to move them";
    Err(contention(Error::new(ErrorKind::VersionConflict, message), COUNTED_ATTEMPTS).into())
}

/// The end of a record at its old key, and its continuation, in the same incarnation, at the new.
fn moved(change: Change<'_>, old_key: Bytes) -> [Change<'_>; 2] {
    let Change { collection, key, before, after } = change;
    let end = Change { collection: collection.clone(), key: old_key, before, after: None };
    [end, Change { collection, key, before: Before::Absent, after }]
}

pub(super) fn refuse_another_key(
    collection: &Collection,
    key: &Bytes,
    value: &Value,
) -> Result<()> {
    let changed = record_key(collection, value)?;
    if changed == *key {
        return Ok(());
    }
    let message = "an update cannot change the fields of a record's key; use rename to move it";
    Err(Error::new(ErrorKind::InvalidRecord, message)
        .with("collection", &collection.name)
        .with("key", ShowKey(key))
        .with("would be", ShowKey(&changed)))
}

/// The conflict of a guarded update, which also says what the record is now.
pub(super) fn telling(
    collection: &Collection,
    key: &Bytes,
    current: Option<&Current>,
    expected: Version,
) -> Error {
    let Some(current) = current else { return not_found(&collection.name, key) };
    let document = current.document(collection, key);
    conflict(collection, key, current, expected)
        .with("current", String::from_utf8_lossy(document.text()))
}
