//! Several records, several collections, one space: reads become conditions, the commit is all
//! or nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use super::assemble::{After, Before, Change, Refused, Work};
use super::beside::{Addend, Counting, LeaseHold, Start};
use super::entries::entry_keys_of;
use super::increment::add_all;
use super::operations::{
    Current, Effect, Overwrite, Whole, Written, commit, complete, expect, is_settled,
    may_draw_again, overwrite, record_key,
};
use super::retry::Retry;
use crate::counted::{Counted, fetch_one};
use crate::engine::{Address, Integers, ShowKey, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Path;
use crate::record::{Document, Version, check_aside, check_new, set_aside, write_whole_numbers};
use crate::schema::{Collection, Index, IndexKind, Loaded, record_key_of};
use crate::session::Session;

/// How often a closure is run again because the schema changed under it.
const SCHEMAS: usize = 16;

/// One attempt at a transaction. Clones are the same attempt.
#[derive(Clone)]
pub struct Transaction {
    session: Session,
    loaded: Arc<Loaded>,
    /// The time of the whole attempt, so that no record expires between two of its reads.
    now: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Records as they were when first read.
    records: BTreeMap<Address, Seen>,
    /// Unique claims that were looked up, by their stamps.
    claims: BTreeMap<Address, Option<Stamp>>,
    /// Records as the transaction leaves them.
    writes: BTreeMap<Address, Write>,
    /// The leases under which the transaction is done, by their cells.
    leases: BTreeMap<Address, LeaseHold>,
    /// What is added to counters.
    addends: BTreeMap<Address, Addend>,
    /// Whether two reads are known to be of different moments, so that no commit can succeed.
    is_torn: bool,
    /// Whether the closure was refused something, or shown something, that a schema which has
    /// changed since might not refuse or show.
    rests_on_schema: bool,
}

/// What was found where a record was looked for.
enum Seen {
    Absent,
    There(Current),
    /// It is absent to the transaction, which rests on its still being the same.
    Expired(Current),
}

impl Seen {
    fn visible(&self) -> Option<&Current> {
        match self {
            Seen::There(current) => Some(current),
            Seen::Absent | Seen::Expired(_) => None,
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        match self {
            Seen::There(current) | Seen::Expired(current) => Some(current.version.stamp()),
            Seen::Absent => None,
        }
    }
}

/// What an attempt comes to, ready to be committed.
struct Settled {
    changes: Vec<Change>,
    /// What else must still hold.
    reads: Vec<(Address, Option<Stamp>)>,
    counting: Counting,
}

#[derive(Clone)]
struct Write {
    collection: Arc<Collection>,
    after: Option<After>,
    /// The codes that were drawn for the record.
    codes: Vec<Path>,
    /// Whether the transaction deleted the record before, so that its counters start anew.
    anew: bool,
}

impl Write {
    /// Whether the record, as it is left, has this key in this index.
    fn claims(&self, index: &Index, key: &Bytes) -> bool {
        self.after.as_ref().is_some_and(|after| {
            self.collection.index(&index.name).is_ok_and(|own| own.key == index.key)
                && entry_keys_of(&self.collection, index, &after.value)
                    .is_ok_and(|keys| keys.contains(key))
        })
    }
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
    let (mut made, mut drawn, mut schemas) = (0, 0, 0);
    loop {
        let transaction = Transaction {
            session: session.clone(),
            loaded: session.loaded().await?,
            now: session.now(),
            state: Arc::default(),
        };
        let answer = closure(transaction.clone()).await;
        made += 1;
        let answer = match answer {
            Ok(answer) => answer,
            // The closure gave up because of what it saw, and it saw two moments.
            Err(_) if transaction.state().is_torn && retry.pause(made).await => continue,
            Err(_) if schemas < SCHEMAS && transaction.is_outdated().await => {
                schemas += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        let refused = transaction.commit().await?;
        // Run again, the closure draws again.
        if may_draw_again(&refused, &transaction.codes_of(&refused), &mut drawn) {
            continue;
        }
        if is_settled(session, refused, retry, made).await? {
            return Ok(answer);
        }
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
        self.state().rests_on_schema |= answer.is_err();
        answer
    }

    /// Whether the closure may have given up because of a schema that no longer holds. A commit
    /// would be told by the fence; a closure that gives up makes none.
    async fn is_outdated(&self) -> bool {
        let rests_on_schema = self.state().rests_on_schema;
        rests_on_schema
            && self.session.reload().await.is_ok_and(|latest| !Arc::ptr_eq(&latest, &self.loaded))
    }

    /// Has the commit rest on a lease.
    pub(crate) fn rest_on(&self, lease: LeaseHold) {
        self.state().leases.insert(lease.address.clone(), lease);
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
        self.state().rests_on_schema = true;
        if let Some(found) = self.written_holder(collection, index, &claim)? {
            return Ok(Some(found));
        }
        let address = Address::new(index.area.clone(), claim);
        let cell = self
            .session
            .engine
            .get(&self.session.space, std::slice::from_ref(&address))
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
        let holds = entry_keys_of(collection, index, &current.value)?.contains(&address.key);
        Ok(holds.then(|| current.document(collection, &holder)))
    }

    /// Creates a record; fails at once if the transaction knows that it is there.
    pub(crate) fn insert(
        &self,
        collection: &Arc<Collection>,
        mut value: Value,
    ) -> Result<Document> {
        let aside = set_aside(collection, &mut value)?;
        let codes = complete(&self.session, collection, &mut value)?;
        write_whole_numbers(collection, &mut value);
        check_new(collection, &value)?;
        let key = record_key(collection, &value)?;
        check_aside(collection, &key, &aside, None)?;
        let address = Address::new(collection.area.clone(), key.clone());
        let mut state = self.state();
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
        let document = after.document(collection, &key, None);
        state.write(collection, address, Some(after), codes);
        Ok(document)
    }

    /// Creates or replaces a record.
    pub(crate) async fn upsert(
        &self,
        collection: &Arc<Collection>,
        record: Whole<'_>,
    ) -> Result<Written> {
        self.write_over(collection, record, |_, _| Ok(())).await
    }

    /// Replaces a record that must be there.
    pub(crate) async fn replace(
        &self,
        collection: &Arc<Collection>,
        record: Whole<'_>,
        expected: Option<Version>,
    ) -> Result<Written> {
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
    ) -> Result<Written> {
        let mut value = record.value.clone();
        let aside = set_aside(collection, &mut value)?;
        let codes = complete(&self.session, collection, &mut value)?;
        write_whole_numbers(collection, &mut value);
        check_new(collection, &value)?;
        let key = record_key(collection, &value)?;
        let current = self.current(collection, &key).await?;
        allow(&key, current.as_ref())?;
        record.origin.check(collection, &key, &aside, current.as_ref())?;
        self.leave(collection, key, current, value, codes)
    }

    /// Leaves a checked record over what the transaction sees at its key.
    pub(super) fn leave(
        &self,
        collection: &Arc<Collection>,
        key: Bytes,
        current: Option<Current>,
        value: Value,
        codes: Vec<Path>,
    ) -> Result<Written> {
        let counted = current.as_ref().and_then(|current| current.counted.clone());
        let address = Address::new(collection.area.clone(), key.clone());
        match overwrite(collection, key, current, value)? {
            Overwrite::Keep(written) => Ok(written),
            Overwrite::Write(change, mut written) => {
                let mut state = self.state();
                if written.effect == Effect::Created {
                    state.refuse_late_creation(&address)?;
                }
                let after = change
                    .after
                    .map(|after| After { version: state.next_version(&address), ..after });
                if let Some(after) = &after {
                    written.document = after.document(collection, &address.key, counted.as_ref());
                }
                state.write(collection, address, after, codes);
                Ok(written)
            }
        }
    }

    /// Deletes a record; `false` when it is not there.
    pub(crate) async fn delete(&self, collection: &Arc<Collection>, key: &Bytes) -> Result<bool> {
        let there = self.current(collection, key).await?.is_some();
        if there {
            let address = Address::new(collection.area.clone(), key.clone());
            let mut state = self.state();
            state.addends.remove(&address);
            state.write(collection, address, None, Vec::new());
        }
        Ok(there)
    }

    /// Adds to counters of a record; fails at once if the transaction knows that it is not there.
    pub(crate) fn increment(
        &self,
        collection: &Arc<Collection>,
        key: &Bytes,
        deltas: &[(String, i64)],
    ) -> Result<()> {
        let mut state = self.state();
        let address = Address::new(collection.area.clone(), key.clone());
        let mut addend = match state.addends.get(&address) {
            Some(addend) => addend.clone(),
            None => Addend::new(collection, key.clone()),
        };
        if state.visible(&address).is_some_and(|visible| visible.is_none()) {
            return Err(addend.not_found());
        }
        add_all(&mut addend, deltas)?;
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
        if let Some(visible) = self.state().visible(&address) {
            return Ok(visible);
        }
        let fetched = fetch_one(&self.session, collection, key).await?;
        let seen = match Current::of(collection, key, fetched)? {
            None => Seen::Absent,
            Some(current) if collection.is_expired(&current.value, self.now) => {
                Seen::Expired(current)
            }
            Some(current) => Seen::There(current),
        };
        let mut state = self.state();
        state.records.insert(address.clone(), seen);
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
        let state = self.state();
        for (address, write) in &state.writes {
            let Some(after) = &write.after else { continue };
            if write.collection.name == collection.name
                && entry_keys_of(collection, index, &after.value)?.contains(claim)
            {
                let counted = state.counted(address);
                return Ok(Some(after.document(collection, &address.key, counted.as_ref())));
            }
        }
        Ok(None)
    }

    fn remember_claim(&self, address: &Address, stamp: Option<Stamp>) -> Result<()> {
        let mut state = self.state();
        if *state.claims.entry(address.clone()).or_insert(stamp) == stamp {
            return Ok(());
        }
        state.is_torn = true;
        let message = "a unique value changed hands during the transaction";
        Err(Error::new(ErrorKind::VersionConflict, message).with("key", ShowKey(&address.key)))
    }

    async fn commit(&self) -> Result<Option<Refused>> {
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

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of the closure cannot leave the state half changed: each method changes it by
        // one insertion.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Leaves a record in this state. A code that was drawn for it earlier in the transaction is
    /// still a drawn one when it is written again.
    fn write(
        &mut self,
        collection: &Arc<Collection>,
        address: Address,
        after: Option<After>,
        mut codes: Vec<Path>,
    ) {
        let mut anew = false;
        if let Some(earlier) = self.writes.get(&address) {
            codes.extend(earlier.codes.iter().cloned());
            anew = earlier.anew || earlier.after.is_none();
        }
        self.writes.insert(address, Write { collection: collection.clone(), after, codes, anew });
    }

    /// A record whose counters were added to must have been there, and cannot be created now.
    fn refuse_late_creation(&self, address: &Address) -> Result<()> {
        let Some(addend) = self.addends.get(address) else { return Ok(()) };
        let message = "the transaction added to the counters of this record before it creates it";
        Err(Error::new(ErrorKind::InvalidArgument, message)
            .with("collection", &addend.collection.name)
            .with("key", ShowKey(&address.key)))
    }

    /// What the transaction sees at an address; `None` when it has not looked there yet.
    fn visible(&self, address: &Address) -> Option<Option<Current>> {
        match self.writes.get(address) {
            Some(write) => Some(write.after.as_ref().map(|after| Current {
                version: after.version,
                value: after.value.clone(),
                text: after.text.clone(),
                counted: self.counted(address),
            })),
            None => self.records.get(address).map(|seen| {
                let counted = self.counted(address);
                seen.visible().cloned().map(|read| Current { counted, ..read })
            }),
        }
    }

    /// The counters of a record as the transaction sees them: as it read them, with what it adds.
    fn counted(&self, address: &Address) -> Option<Counted> {
        let is_anew = self.writes.get(address).is_some_and(|write| write.anew);
        let read = self.records.get(address).and_then(Seen::visible);
        let read = read.filter(|_| !is_anew).and_then(|read| read.counted.clone());
        let Some(addend) = self.addends.get(address) else { return read };
        let unseen = Counted { stamp: Stamp([0; Stamp::BYTES]), values: Integers::new() };
        let mut counted = read.unwrap_or(unseen);
        for (name, delta) in &addend.deltas {
            let value = counted.values.entry(name.clone()).or_insert(0);
            // A sum that does not fit is refused at the commit.
            *value = value.saturating_add(*delta);
        }
        Some(counted)
    }

    /// The version of the record once the transaction commits: one more than what was read,
    /// however often it is written in between. A record that the transaction deleted and creates
    /// again is another one, as it would be in two transactions: a new incarnation.
    fn next_version(&self, address: &Address) -> Version {
        match (self.writes.get(address), self.records.get(address)) {
            (Some(Write { after: Some(written), .. }), _) => written.version,
            (None, Some(Seen::There(read))) => read.version.next(),
            (Some(Write { after: None, .. }), _) | (None, _) => Version::first(),
        }
    }

    /// What the attempt comes to.
    fn settle(&self) -> Result<Settled> {
        let changes = self
            .writes
            .iter()
            .map(|(address, write)| Change {
                collection: write.collection.clone(),
                key: address.key.clone(),
                before: match self.records.get(address) {
                    None => Before::Absent,
                    Some(Seen::Absent) => Before::SeenAbsent,
                    Some(Seen::There(read)) => read.clone().into_before(),
                    Some(Seen::Expired(read)) => Before::Expired(read.clone()),
                },
                after: write.after.clone(),
            })
            .collect();
        let records = self.records.iter().map(|(address, seen)| (address.clone(), seen.stamp()));
        let claims = self.claims.iter().map(|(address, stamp)| (address.clone(), *stamp));
        let reads = records.chain(claims).collect();
        Ok(Settled { changes, reads, counting: self.counting()? })
    }

    /// What becomes of counters: additions, and those of records that are created anew.
    fn counting(&self) -> Result<Counting> {
        // Added to before it was looked for, and then not there.
        if let Some(addend) = self.addends.iter().find_map(|(address, addend)| {
            self.visible(address).is_some_and(|visible| visible.is_none()).then_some(addend)
        }) {
            return Err(addend.not_found());
        }
        let mut addends = self.addends.clone();
        for (address, write) in &self.writes {
            let (read, is_anew) = match self.records.get(address) {
                Some(Seen::There(read)) => (read, write.anew),
                Some(Seen::Expired(read)) => (read, true),
                Some(Seen::Absent) | None => continue,
            };
            if !is_anew || write.after.is_none() || write.collection.counters.is_empty() {
                continue;
            }
            let fresh = || Addend::new(&write.collection, address.key.clone());
            let addend = addends.entry(address.clone()).or_insert_with(fresh);
            addend.start = Start::Anew(read.counted.clone());
        }
        Ok(Counting { addends: addends.into_values().collect(), moved: None })
    }
}
