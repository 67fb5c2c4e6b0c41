//! Writes of one record: each one batch, each with its promise.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::assemble::{Assembled, Role, assemble, explain};
use super::attempts::Attempts;
use super::building_claims::rest_on_claims;
use super::displace_expired::{
    ROUNDS_MAX, displace_expired, expired_rivals, is_too_large, remove_alone,
};
use super::logged::{keep_log_short, note};
use crate::engine::{
    Batch, Cause, Cell, Effect as EngineEffect, Entry, Integers, Outcome, Rejection, ShowKey,
};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Path;
use crate::record::{
    Document, Passage, Version, check_aside, check_new, check_over, check_transitions,
    fill_generated, forget_generated, record_key, set_aside, write_whole_numbers,
};
use crate::schema::Collection;
use crate::side::{After, Before, Change, Current, Refused, Work, fetch_one, record_text};
use crate::space::{Interrupted, Loaded, Retry, Session, Under, past_fence};

/// How often a code that is taken is drawn again. With a code of six characters a thousand
/// million records make one in a hundred draws fail.
const CODE_DRAWS: u32 = 16;

/// How often a batch is assembled because a record was counted meanwhile. Each record of it can
/// be counted once only, and a builder counts many records at once.
const RECOUNTS: u32 = 16;

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was not there before.
    Created,
    /// It was there, and is changed.
    Replaced,
    /// It was there already, exactly so; nothing was written.
    Unchanged,
    /// A declared transition says that the write is out of date; nothing was written.
    Ignored,
}

/// The answer to a write of a record, before it is told to anybody: the record as it is now, and
/// what the write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrittenDocument {
    pub(crate) document: Document,
    pub(crate) effect: Effect,
}

/// Commits changes under the schema that they were made with. Expired records make way.
pub(crate) async fn commit(
    session: &Session,
    loaded: &Loaded,
    work: Work<'_>,
) -> Under<Option<Refused>> {
    Ok(commit_counting(session, loaded, work).await?.err())
}

/// As [`commit`], and gives the counters of each addend right after.
pub(super) async fn commit_counting(
    session: &Session,
    loaded: &Loaded,
    work: Work<'_>,
) -> Under<Result<Vec<Integers>, Refused>> {
    let asked = work.changes;
    for change in asked {
        if let Some(after) = &change.after {
            session.warn_of(&change.collection, &after.value);
        }
    }
    let mut changes = Cow::Borrowed(asked);
    let (mut rounds, mut recounts) = (0, 0);
    loop {
        let work = Work { changes: &changes, ..work };
        let mut assembled = assemble(session, loaded, work).await?;
        rest_on_claims(session, loaded, &changes, &mut assembled).await?;
        let Assembled { batch, roles } = assembled;
        let rivals = expired_rivals(asked, &changes);
        if !rivals.is_empty() && is_too_large(session, &batch) {
            remove_alone(session, loaded, &rivals).await?;
            changes = Cow::Borrowed(asked);
            continue;
        }
        let adds = adds(&work, &batch);
        let outcome = session.live.commit(loaded, batch, || note(session, &work)).await?;
        let rejection = match past_fence(outcome)? {
            Outcome::Committed(committed) => {
                session.claim().inspect(|claim| claim.settle());
                keep_log_short(session, loaded, &committed).await;
                let added =
                    roles.iter().zip(adds).filter(|(_, adds)| *adds).zip(committed.integers);
                let counters = added.filter(
                    |((role, _), _)| matches!(role, Role::Side(role, _) if role.is_answered),
                );
                return Ok(Ok(counters.map(|(_, sums)| sums).collect()));
            }
            Outcome::Rejected(rejection) => rejection,
        };
        if is_recounted(&roles, &rejection) && recounts < RECOUNTS {
            recounts += 1;
            continue;
        }
        rounds += 1;
        match displace_expired(session, asked, &changes, &roles, &rejection).await? {
            Some(grown) if rounds < ROUNDS_MAX => changes = Cow::Owned(grown),
            _ => return Ok(Err(explain(session, &roles, &work, &rejection))),
        }
    }
}

/// Which entries of a batch add to integers, if any addition is answered.
fn adds(work: &Work<'_>, batch: &Batch) -> Vec<bool> {
    if work.counting.addends.is_empty() {
        return Vec::new();
    }
    let adds = |entry: &Entry| matches!(entry.effect, Some(EngineEffect::Add { .. }));
    batch.entries.iter().map(adds).collect()
}

/// Whether a batch failed only because the builder of an aggregate has counted a record since it
/// was assembled. The records are as they were, so that assembling it again is all it takes.
fn is_recounted(roles: &[Role<'_>], rejection: &Rejection) -> bool {
    let Cause::Condition { entry } = rejection.cause else { return false };
    matches!(roles[entry], Role::Side(role, _) if role.is_renewed)
}

/// Creates a record without reading anything.
pub(crate) async fn insert(
    session: &Session,
    name: &str,
    mut value: Cow<'_, Value>,
) -> Result<WrittenDocument> {
    let mut attempts = session.live.writes();
    let mut drawn = 0;
    let mut codes = Vec::new();
    loop {
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        codes.extend(complete(session, collection, &mut value)?);
        let (change, document) = creation(collection, value)?;
        let attempt = commit(session, &loaded, Work::of(std::slice::from_ref(&change))).await;
        value = change.after.map(|after| after.value).unwrap_or_default();
        let Some(refused) = attempts.settle(attempt).await? else { continue };
        match refused {
            None => return Ok(WrittenDocument { document, effect: Effect::Created }),
            refused if may_draw_again(&refused, &codes, &mut drawn) => {
                forget_generated(value.to_mut(), &codes);
                codes.clear();
            }
            Some(
                Refused::Taken(_, _, error)
                | Refused::Changed(error)
                | Refused::Counted(error, _)
                | Refused::Final(error),
            ) => return Err(error),
        }
    }
}

/// Fills in what a record may leave out: its owner, and what is generated. Gives the paths of
/// the codes that were drawn.
pub(super) fn complete(
    session: &Session,
    collection: &Collection,
    record: &mut Cow<'_, Value>,
) -> Result<Vec<Path>> {
    session.take_ownership(collection, record)?;
    Ok(fill_generated(collection, record))
}

/// Whether a write was refused for a code that was drawn for it, so that another draw may do.
/// Counts the draws.
pub(super) fn may_draw_again(refused: &Option<Refused>, codes: &[Path], drawn: &mut u32) -> bool {
    let Some(Refused::Taken(index, ..)) = refused else { return false };
    let is_unlucky = index.key.segments().any(|segment| codes.contains(&segment.path));
    *drawn += u32::from(is_unlucky);
    is_unlucky && *drawn <= CODE_DRAWS
}

/// Checks a record; gives the change that creates it, and the record as it will be.
pub(super) fn creation<'v>(
    collection: &Arc<Collection>,
    mut value: Cow<'v, Value>,
) -> Result<(Change<'v>, Document)> {
    let aside = set_aside(collection, &mut value)?;
    write_whole_numbers(collection, &mut value);
    check_new(collection, &value)?;
    let key = record_key(collection, &value)?;
    check_aside(collection, &key, &aside, None)?;
    let after = After::new(collection, Version::first(), value)?;
    let document = after.document(collection, &key);
    let collection = collection.clone();
    Ok((Change { collection, key, before: Before::Absent, after: Some(after) }, document))
}

/// Creates a record or replaces the one with its key.
pub(crate) async fn upsert(
    session: &Session,
    name: &str,
    record: Whole<'_>,
) -> Result<WrittenDocument> {
    write_over(session, name, record, |_, _, _| Ok(())).await
}

/// Replaces the record with its key, which must be there, and in this version if one is given.
pub(crate) async fn replace(
    session: &Session,
    name: &str,
    record: Whole<'_>,
    expected: Option<Version>,
) -> Result<WrittenDocument> {
    write_over(session, name, record, |collection, key, current| {
        expect(collection, key, current, expected)
    })
    .await
}

async fn write_over(
    session: &Session,
    name: &str,
    record: Whole<'_>,
    allow: impl Fn(&Collection, &Bytes, Option<&Current>) -> Result<()>,
) -> Result<WrittenDocument> {
    let mut attempts = Attempts::new(session, Retry::eager());
    let mut drawn = 0;
    loop {
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        let mut value = Cow::Borrowed(record.value);
        let aside = set_aside(collection, &mut value)?;
        let codes = complete(session, collection, &mut value)?;
        write_whole_numbers(collection, &mut value);
        let (key, fault) = key_of_whole(collection, &value)?;
        attempts.begin(collection, &key).await;
        let current = read(session, collection, &key).await?;
        allow(collection, &key, current.as_ref())?;
        let_be(collection, fault, current.as_ref(), &value)?;
        record.origin.check(collection, &key, &aside, current.as_ref())?;
        let (change, written) = match overwrite(collection, key, current, value)? {
            Overwrite::Keep(written) => return Ok(written),
            Overwrite::Write(change, written) => (change, written),
        };
        let attempt = commit(session, &loaded, Work::of(std::slice::from_ref(&change))).await;
        if matches!(&attempt, Ok(refused) if may_draw_again(refused, &codes, &mut drawn)) {
            continue;
        }
        if attempts.is_settled(attempt, || vec![change.address()]).await? {
            return Ok(written);
        }
    }
}

/// The key of a whole record, and what is wrong with the record itself. Whether that matters
/// depends on what is at the key.
pub(super) fn key_of_whole(
    collection: &Collection,
    value: &Value,
) -> Result<(Bytes, Option<Error>)> {
    match (check_new(collection, value).err(), record_key(collection, value)) {
        (Some(fault), Err(_)) => Err(fault),
        (fault, key) => Ok((key?, fault)),
    }
}

/// Refuses a whole record with a fault that the record at its key has not got just so.
pub(super) fn let_be(
    collection: &Collection,
    fault: Option<Error>,
    current: Option<&Current>,
    value: &Value,
) -> Result<()> {
    match (fault, current) {
        (None, _) => Ok(()),
        (Some(_), Some(current)) => check_over(collection, &current.value, value),
        (Some(fault), None) => Err(fault),
    }
}

/// A whole record that is to be written, and where it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'v> {
    pub(crate) value: &'v Value,
    pub(crate) origin: Origin,
}

/// Where a whole record comes from, which decides what its counters mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A Rust type, which cannot leave its counters out.
    Type,
    /// JSON, which says what it means.
    Json,
}

impl Origin {
    /// Refuses counters in a record that say something else than is there. What was read by a
    /// type and is written back may be out of date, and says nothing.
    pub(super) fn check(
        self,
        collection: &Collection,
        key: &Bytes,
        aside: &Integers,
        current: Option<&Current>,
    ) -> Result<()> {
        match (self, current) {
            (Origin::Type, Some(_)) => Ok(()),
            (_, current) => check_aside(collection, key, aside, current.and_then(Current::values)),
        }
    }
}

/// What writing a record over what is there comes to.
pub(crate) enum Overwrite<'v> {
    Keep(WrittenDocument),
    Write(Box<Change<'v>>, WrittenDocument),
}

/// Decides what writing `value` over `current` comes to. The value is checked already.
pub(crate) fn overwrite<'v>(
    collection: &Arc<Collection>,
    key: Bytes,
    current: Option<Current>,
    value: Cow<'v, Value>,
) -> Result<Overwrite<'v>> {
    let counted = current.as_ref().and_then(|current| current.counted.clone());
    let text = record_text(&value);
    let (before, version, effect) = match current {
        None => (Before::SeenAbsent, Version::first(), Effect::Created),
        Some(current) => {
            let keep = |effect| {
                let document = current.document(collection, &key);
                Ok(Overwrite::Keep(WrittenDocument { document, effect }))
            };
            if text == current.text {
                return keep(Effect::Unchanged);
            }
            if check_transitions(collection, &current.value, &value)? == Passage::Ignored {
                return keep(Effect::Ignored);
            }
            let version = current.version.next();
            (current.into_before(), version, Effect::Replaced)
        }
    };
    let after = After { counted, ..After::with_text(collection, version, value, text)? };
    let document = after.document(collection, &key);
    let written = WrittenDocument { document, effect };
    let collection = collection.clone();
    let change = Change { collection, key, before, after: Some(after) };
    Ok(Overwrite::Write(Box::new(change), written))
}

/// Deletes a record with everything it owns. Gives the version that it had, or `None` when it
/// was not there.
pub(crate) async fn delete(
    session: &Session,
    name: &str,
    key: impl Fn(&Collection) -> Result<Bytes>,
    expected: Option<Version>,
) -> Result<Option<Version>> {
    let mut attempts = Attempts::new(session, Retry::eager());
    loop {
        let loaded = session.live.loaded().await?;
        let collection = loaded.schema.collection(name)?;
        let key = key(collection)?;
        attempts.begin(collection, &key).await;
        let current = read(session, collection, &key).await?;
        if expected.is_some() {
            expect(collection, &key, current.as_ref(), expected)?;
        }
        let Some(current) = current else { return Ok(None) };
        let version = current.version;
        let change = Change {
            collection: collection.clone(),
            key,
            before: current.into_before(),
            after: None,
        };
        let attempt = commit(session, &loaded, Work::of(std::slice::from_ref(&change))).await;
        if attempts.is_settled(attempt, || vec![change.address()]).await? {
            return Ok(Some(version));
        }
    }
}

/// Deletes what is at a record's key and cannot be read, in this state, and none of its entries:
/// nobody can tell from it which it has. `false` when it is not in that state any more.
pub(crate) async fn discard(
    session: &Session,
    loaded: &Loaded,
    collection: &Arc<Collection>,
    key: &Bytes,
    cell: &Cell,
) -> Result<bool> {
    let (version, text) = (Version::from_stamp(cell.stamp), cell.bytes().cloned());
    // A record without fields has no entries.
    let before = Before::Read { version, value: Value::Null, text: text.unwrap_or_default() };
    let (collection, key) = (collection.clone(), key.clone());
    let change = Change { collection, key, before, after: None };
    match commit(session, loaded, Work::of(&[change])).await {
        Ok(None) => Ok(true),
        Ok(Some(Refused::Changed(_) | Refused::Counted(..))) => Ok(false),
        Err(Interrupted::SchemaChanged | Interrupted::TakenOver) => Ok(false),
        Ok(Some(Refused::Taken(_, _, error) | Refused::Final(error)))
        | Err(Interrupted::Failed(error)) => Err(error),
    }
}

/// Refuses to go on unless the record is there, and in the expected version if one is given.
pub(crate) fn expect(
    collection: &Collection,
    key: &Bytes,
    current: Option<&Current>,
    expected: Option<Version>,
) -> Result<()> {
    match (current, expected) {
        (None, _) => Err(not_found(&collection.name, key)),
        (Some(current), Some(expected)) if current.version != expected => {
            Err(conflict(collection, key, current, expected))
        }
        (Some(_), _) => Ok(()),
    }
}

/// The conflict of a guarded write. It carries the record as it is now.
pub(super) fn conflict(
    collection: &Collection,
    key: &Bytes,
    current: &Current,
    expected: Version,
) -> Error {
    Error::new(ErrorKind::VersionConflict, "the record changed since it was read")
        .with("collection", &collection.name)
        .with("key", ShowKey(key))
        .with("expected version", expected)
        .with("version", current.version)
        .with_retry(false)
        .carrying(current.document(collection, key))
}

/// The answer for a record that is not there, and for one that is not for the acting user.
pub(crate) fn not_found(name: &str, key: &Bytes) -> Error {
    Error::new(ErrorKind::NotFound, "there is no record with this key")
        .with("collection", name)
        .with("key", ShowKey(key))
}

/// Reads one record with its counters, if the caller may read it; one that has expired is absent.
pub(crate) async fn read(
    session: &Session,
    collection: &Collection,
    key: &Bytes,
) -> Result<Option<Current>> {
    if !session.may_read(collection, key) {
        return Ok(None);
    }
    let fetched = fetch_one(session, collection, key).await?;
    let current = Current::of(collection, key, fetched)?;
    Ok(current.filter(|current| !collection.is_expired(&current.value, session.now())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    #[test]
    fn a_record_that_lacks_nothing_is_not_copied() {
        let schema = Schema::from_toml(
            r#"
            [collection.x]
            key = "x:{id}"
            fields = { id = { type = "id", generate = true }, at = "timestamp" }
            counters = { n = {} }
            "#,
        )
        .unwrap();
        let collection = schema.collection("x").unwrap();
        let is_copied = |record: Value| {
            let mut value = Cow::Borrowed(&record);
            fill_generated(collection, &mut value);
            let (change, _) = creation(collection, value).unwrap();
            matches!(change.after.unwrap().value, Cow::Owned(_))
        };
        let id = "01k9zq3v5e8d4m2x7r0c6h1t9n";
        assert!(!is_copied(json!({ "id": id, "at": 5, "free": 2.0 })));
        // What is generated, written otherwise or kept apart is not in the record that was given.
        assert!(is_copied(json!({ "at": 5 })));
        assert!(is_copied(json!({ "id": id, "at": 5.0 })));
        assert!(is_copied(json!({ "id": id, "at": 5, "n": 0 })));
    }
}
