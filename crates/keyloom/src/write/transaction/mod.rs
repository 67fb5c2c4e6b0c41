//! Several records, several collections, one space: reads become conditions, the commit is all
//! or nothing.

mod patience;
mod state;

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use crate::engine::{Address, ShowKey, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Path;
use crate::record::{
    Document, Version, check_aside, check_new, draws_key, record_key, set_aside,
    write_whole_numbers,
};
use crate::schema::{Collection, Index, IndexKind, record_key_of};
use crate::side::{Addend, After, Current, LeaseHold, Refused, Work, fetch_one};
use crate::space::{Loaded, Retry, Session, Under};
use crate::write::attempts::Attempts;
use crate::write::entries::stored_keys_of;
use crate::write::increment::add_all;
use crate::write::operations::{
    Effect, Overwrite, Whole, WrittenDocument, commit, complete, expect, key_of_whole, let_be,
    may_draw_again, overwrite,
};
use patience::patiently;
use state::{Seen, Settled, State};

/// How often a closure is run again because the schema changed under it.
const SCHEMAS: usize = 16;

/// One attempt at a transaction. Clones are the same attempt. It is over when its closure ends:
/// what outlives the closure reads and writes nothing more, and is told so by an error.
#[derive(Clone)]
pub struct Transaction {
    session: Session,
    loaded: Arc<Loaded>,
    /// The time of the whole attempt, so that no record expires between two of its reads.
    now: u64,
    state: Arc<Mutex<State>>,
}

/// Runs the closure until an attempt commits. What it reads must still hold at the commit.
pub(crate) async fn run<T, E, F, Fut>(
    session: &Session,
    retry: Retry,
    mut closure: F,
) -> Result<T, E>
where
    F: FnMut(Transaction) -> Fut,
    Fut: Future<Output = Result<T, E>>,
    E: From<Error>,
{
    let mut attempts = Attempts::new(session, retry);
    let (mut drawn, mut schemas) = (0, 0);
    loop {
        let turns = std::mem::take(&mut attempts.turns);
        let transaction = Transaction {
            session: session.clone(),
            loaded: session.live.loaded().await?,
            now: session.now(),
            state: Arc::new(Mutex::new(State::holding(turns))),
        };
        let _leaving = Leaving(&transaction);
        let answer = {
            let _ending = Ending(&transaction);
            patiently(&transaction, closure(transaction.clone())).await
        };
        let answer = match answer {
            Ok(answer) => answer,
            // The closure gave up because of what it saw, and it saw two moments.
            Err(_) if transaction.is_torn() && attempts.go_on_after(Vec::new()).await => continue,
            Err(_) if schemas < SCHEMAS && transaction.is_outdated().await => {
                schemas += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let attempt = transaction.commit().await;
        // Run again, the closure draws again.
        if let Ok(refused) = &attempt
            && may_draw_again(refused, &transaction.codes_of(refused), &mut drawn)
        {
            continue;
        }
        let records = {
            let mut state = transaction.state();
            attempts.turns = state.end_turns();
            state.addresses()
        };
        if attempts.is_settled(attempt, || records).await? {
            return Ok(answer);
        }
    }
}

/// Ends an attempt however its closure ends: by an answer, by a panic, or because nobody waits for
/// it any more. A clone that outlives the closure must not take writes that nothing would commit.
struct Ending<'t>(&'t Transaction);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
    }
}

/// Gives the turns of an attempt up however it ends, also if a clone outlives it.
struct Leaving<'t>(&'t Transaction);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        drop(self.0.state().end_turns());
    }
}

impl Transaction {
    pub(crate) fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn declared(&self, name: &str) -> Result<Arc<Collection>> {
        self.judged(self.loaded.schema.collection(name).cloned())
    }

    /// Remembers that the schema refused something.
    pub(crate) fn judged<T>(&self, answer: Result<T>) -> Result<T> {
        self.under_way()?.judge(answer)
    }

    /// Whether the closure saw two moments. Nobody has to wait for such an attempt.
    fn is_torn(&self) -> bool {
        let mut state = self.state();
        drop(state.end_turns());
        state.is_torn
    }

    /// Whether the closure may have given up because of a schema that no longer holds. A commit
    /// would be told by the fence; a closure that gives up makes none.
    async fn is_outdated(&self) -> bool {
        let rests_on_schema = self.state().rests_on_schema;
        rests_on_schema
            && self
                .session
                .live
                .reload()
                .await
                .is_ok_and(|latest| !Arc::ptr_eq(&latest, &self.loaded))
    }

    /// Has the commit rest on a lease.
    pub(crate) fn rest_on(&self, lease: LeaseHold) -> Result<()> {
        self.under_way()?.leases.insert(lease.address.clone(), lease);
        Ok(())
    }

    /// Reads a record, or sees what the transaction wrote itself.
    pub(crate) async fn get(
        &self,
        collection: &Collection,
        key: &Bytes,
    ) -> Result<Option<Document>> {
        Ok(self.current(collection, key).await?.map(|current| current.document(collection, key)))
    }

    /// Reads by a unique index, or sees what the transaction wrote itself.
    pub(crate) async fn get_by(
        &self,
        collection: &Collection,
        index: &Index,
        claim: Bytes,
    ) -> Result<Option<Document>> {
        self.under_way()?.rests_on_schema = true;
        if let Some(found) = self.written_holder(collection, index, &claim)? {
            return Ok(Some(found));
        }
        let address = Address::new(index.area.clone(), claim);
        let cell = self
            .session
            .live
            .engine
            .get(&self.session.live.space, std::slice::from_ref(&address))
            .await?
            .pop()
            .flatten();
        self.remember_claim(&address, cell.as_ref().map(|cell| cell.stamp))?;
        let Some(cell) = cell else { return Ok(None) };
        let holder = cell
            .bytes()
            .and_then(|value| record_key_of(collection, index, &address.key, value))
            .ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, "an index entry cannot be read")
                    .with("key", ShowKey(&address.key))
            })?;
        let Some(current) = self.current(collection, &holder).await? else { return Ok(None) };
        // The transaction itself may have changed the record so that it gives the claim up.
        let holds = stored_keys_of(collection, index, &current.value)?.contains(&address.key);
        Ok(holds.then(|| current.document(collection, &holder)))
    }

    /// Creates a record; fails at once if it is there.
    pub(crate) async fn insert(
        &self,
        collection: &Arc<Collection>,
        value: Value,
    ) -> Result<WrittenDocument> {
        let mut value = Cow::Owned(value);
        let aside = set_aside(collection, &mut value)?;
        // Nobody else has drawn the same key: the commit still rests on it, and nobody looks.
        let may_be_there = !draws_key(collection, &value);
        let codes = complete(&self.session, collection, &mut value)?;
        write_whole_numbers(collection, &mut value);
        check_new(collection, &value)?;
        let key = record_key(collection, &value)?;
        check_aside(collection, &key, &aside, None)?;
        let address = Address::new(collection.area.clone(), key.clone());
        if may_be_there {
            self.current(collection, &key).await?;
        }
        let mut state = self.under_way()?;
        if state.visible(&address).is_some_and(|visible| visible.is_some()) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                "a record with this key is there already",
            )
            .with("collection", &collection.name)
            .with("key", ShowKey(&key)));
        }
        state.refuse_late_creation(&address)?;
        let version = state.next_version(&address);
        let after = After::new(collection, version, value)?;
        let document = after.document(collection, &key);
        state.write(collection, address, Some(after), codes);
        Ok(WrittenDocument { document, effect: Effect::Created })
    }

    /// Creates or replaces a record.
    pub(crate) async fn upsert(
        &self,
        collection: &Arc<Collection>,
        record: Whole<'_>,
    ) -> Result<WrittenDocument> {
        self.write_over(collection, record, |_, _| Ok(())).await
    }

    /// Replaces a record that must be there.
    pub(crate) async fn replace(
        &self,
        collection: &Arc<Collection>,
        record: Whole<'_>,
        expected: Option<Version>,
    ) -> Result<WrittenDocument> {
        self.write_over(collection, record, |key, current| {
            expect(collection, key, current, expected)
        })
        .await
    }

    async fn write_over(
        &self,
        collection: &Arc<Collection>,
        record: Whole<'_>,
        allow: impl Fn(&Bytes, Option<&Current>) -> Result<()>,
    ) -> Result<WrittenDocument> {
        // The transaction keeps it until it ends.
        let mut value = Cow::Owned(record.value.clone());
        let aside = set_aside(collection, &mut value)?;
        let codes = complete(&self.session, collection, &mut value)?;
        write_whole_numbers(collection, &mut value);
        let (key, fault) = key_of_whole(collection, &value)?;
        let current = self.current(collection, &key).await?;
        allow(&key, current.as_ref())?;
        let_be(collection, fault, current.as_ref(), &value)?;
        record.origin.check(collection, &key, &aside, current.as_ref())?;
        self.leave(collection, key, current, value, codes)
    }

    /// Leaves a checked record over what the transaction sees at its key.
    pub(super) fn leave(
        &self,
        collection: &Arc<Collection>,
        key: Bytes,
        current: Option<Current>,
        value: Cow<'static, Value>,
        codes: Vec<Path>,
    ) -> Result<WrittenDocument> {
        let address = Address::new(collection.area.clone(), key.clone());
        match overwrite(collection, key, current, value)? {
            Overwrite::Keep(written) => Ok(written),
            Overwrite::Write(change, mut written) => {
                let mut state = self.under_way()?;
                if written.effect == Effect::Created {
                    state.refuse_late_creation(&address)?;
                }
                let after = change
                    .after
                    .map(|after| After { version: state.next_version(&address), ..after });
                if let Some(after) = &after {
                    written.document = after.document(collection, &address.key);
                }
                state.write(collection, address, after, codes);
                Ok(written)
            }
        }
    }

    /// Deletes a record. Gives the version that it had, or `None` when it is not there.
    pub(crate) async fn delete(
        &self,
        collection: &Arc<Collection>,
        key: &Bytes,
    ) -> Result<Option<Version>> {
        let Some(current) = self.current(collection, key).await? else { return Ok(None) };
        let address = Address::new(collection.area.clone(), key.clone());
        let mut state = self.under_way()?;
        state.addends.remove(&address);
        state.write(collection, address, None, Vec::new());
        Ok(Some(current.version))
    }

    /// Adds to counters of a record; fails at once if the transaction knows that it is not there.
    pub(crate) fn increment(
        &self,
        collection: &Arc<Collection>,
        key: &Bytes,
        deltas: &[(String, i64)],
    ) -> Result<()> {
        let mut state = self.under_way()?;
        let address = Address::new(collection.area.clone(), key.clone());
        let mut addend = match state.addends.get(&address) {
            Some(addend) => addend.clone(),
            None => Addend::new(collection, key.clone()),
        };
        if state.visible(&address).is_some_and(|visible| visible.is_none()) {
            return Err(addend.not_found());
        }
        state.judge(add_all(&mut addend, deltas))?;
        state.addends.insert(address, addend);
        Ok(())
    }

    /// What the transaction sees at a record's key.
    pub(super) async fn current(
        &self,
        collection: &Collection,
        key: &Bytes,
    ) -> Result<Option<Current>> {
        if !self.session.may_read(collection, key) {
            return Ok(None);
        }
        let address = Address::new(collection.area.clone(), key.clone());
        if let Some(visible) = self.under_way()?.visible(&address) {
            return Ok(visible);
        }
        self.join_writers(&address).await;
        let fetched = fetch_one(&self.session, collection, key).await?;
        let seen = match Current::of(collection, key, fetched)? {
            None => Seen::Absent,
            Some(current) if collection.is_expired(&current.value, self.now) => {
                Seen::Expired(current)
            }
            Some(current) => Seen::There(current),
        };
        let mut state = self.under_way()?;
        state.take_in(address.clone(), seen)?;
        Ok(state.visible(&address).flatten())
    }

    /// The record of this transaction's own writes that has the claim, if one does.
    fn written_holder(
        &self,
        collection: &Collection,
        index: &Index,
        claim: &Bytes,
    ) -> Result<Option<Document>> {
        debug_assert_eq!(index.kind, IndexKind::Unique);
        let state = self.under_way()?;
        for (address, write) in &state.writes {
            let Some(after) = &write.after else { continue };
            if write.collection.name == collection.name
                && stored_keys_of(collection, index, &after.value)
                    .is_ok_and(|keys| keys.contains(claim))
            {
                let after = After { counted: state.counted(address), ..after.clone() };
                return Ok(Some(after.document(collection, &address.key)));
            }
        }
        Ok(None)
    }

    fn remember_claim(&self, address: &Address, stamp: Option<Stamp>) -> Result<()> {
        let mut state = self.under_way()?;
        if *state.claims.entry(address.clone()).or_insert(stamp) == stamp {
            return Ok(());
        }
        state.is_torn = true;
        let message = "a unique value changed hands during the transaction";
        Err(Error::new(ErrorKind::VersionConflict, message).with("key", ShowKey(&address.key)))
    }

    async fn commit(&self) -> Under<Option<Refused>> {
        let Settled { changes, reads, counting } = self.state().settle()?;
        let leases: Vec<LeaseHold> = self.state().leases.values().cloned().collect();
        if changes.is_empty()
            && reads.is_empty()
            && leases.is_empty()
            && counting.addends.is_empty()
        {
            return Ok(None);
        }
        let work = Work { changes: &changes, reads: &reads, leases: &leases, counting: &counting };
        let refused = commit(&self.session, &self.loaded, work).await?;
        Ok(refused.map(|refused| match refused {
            // The transaction looked, saw the value free, and lost it to another: worth a retry,
            // in which it will see who has it.
            Refused::Taken(_, address, error)
                if self.state().claims.get(&address) == Some(&None) =>
            {
                Refused::Changed(error)
            }
            other => other,
        }))
    }

    /// The codes that were drawn for the record whose claim was refused.
    fn codes_of(&self, refused: &Option<Refused>) -> Vec<Path> {
        let Some(Refused::Taken(index, address, _)) = refused else { return Vec::new() };
        let state = self.state();
        let writes = state.writes.values().filter(|write| write.claims(index, &address.key));
        writes.flat_map(|write| write.codes.iter().cloned()).collect()
    }

    /// What the closure reads and writes; refused once it has ended.
    fn under_way(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.is_over {
            let message = "the transaction is over; it can be used only inside its closure";
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        Ok(state)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of the closure cannot leave the state half changed: each method changes it by
        // one insertion.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
