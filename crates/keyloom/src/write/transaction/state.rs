//! What an attempt at a transaction has read, what it leaves, and what that comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Address, Integers, ShowKey, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Path;
use crate::record::Version;
use crate::schema::{Collection, Index};
use crate::side::{Addend, After, Before, Change, Counted, Counting, Current, LeaseHold, Start};
use crate::space::Turn;
use crate::write::entries::stored_keys_of;

/// What an attempt has read, and what it leaves.
#[derive(Default)]
pub(super) struct State {
    /// Records as they were when first read.
    pub(super) records: BTreeMap<Address, Seen>,
    /// The bytes of their texts.
    bytes: usize,
    /// Unique claims that were looked up, by their stamps.
    pub(super) claims: BTreeMap<Address, Option<Stamp>>,
    /// Records as the transaction leaves them.
    pub(super) writes: BTreeMap<Address, Write>,
    /// The leases under which the transaction is done, by their cells.
    pub(super) leases: BTreeMap<Address, LeaseHold>,
    /// What is added to counters.
    pub(super) addends: BTreeMap<Address, Addend>,
    /// Whether two reads are known to be of different moments, so that no commit can succeed.
    pub(super) is_torn: bool,
    /// Whether the closure was refused something, or shown something, that a schema which has
    /// changed since might not refuse or show.
    pub(super) rests_on_schema: bool,
    /// Whether the closure has ended, so that nothing more is read or written.
    pub(super) is_over: bool,
    holding: Holding,
}

/// The turns of an attempt among those who write the same records.
#[derive(Default)]
struct Holding {
    turns: Vec<Turn>,
    /// Whether it waits for one. It waits for one at most, and holds none meanwhile.
    is_waiting: bool,
    /// Whether it has given them up, and takes no more.
    is_over: bool,
}

/// The most bytes of records that one attempt reads: it keeps them to its end.
const READ_BYTES_MAX: usize = 32 << 20;

/// What was found where a record was looked for.
pub(super) enum Seen {
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
pub(super) struct Settled {
    pub(super) changes: Vec<Change<'static>>,
    /// What else must still hold.
    pub(super) reads: Vec<(Address, Option<Stamp>)>,
    pub(super) counting: Counting,
}

#[derive(Clone)]
pub(super) struct Write {
    pub(super) collection: Arc<Collection>,
    pub(super) after: Option<After<'static>>,
    /// The codes that were drawn for the record.
    pub(super) codes: Vec<Path>,
    /// Whether the transaction deleted the record before, so that its counters start anew.
    pub(super) anew: bool,
}

impl Write {
    /// Whether the record, as it is left, has this key in this index.
    pub(super) fn claims(&self, index: &Index, key: &Bytes) -> bool {
        self.after.as_ref().is_some_and(|after| {
            self.collection.index(&index.name).is_ok_and(|own| own.key == index.key)
                && stored_keys_of(&self.collection, index, &after.value)
                    .is_ok_and(|keys| keys.contains(key))
        })
    }
}

impl State {
    /// Keeps a record as it was found.
    pub(super) fn take_in(&mut self, address: Address, seen: Seen) -> Result<()> {
        if let Seen::There(current) | Seen::Expired(current) = &seen {
            self.bytes += current.text.len();
        }
        if self.bytes > READ_BYTES_MAX {
            let message = "a transaction reads at most 32 MiB of records; divide it";
            return Err(Error::new(ErrorKind::LimitExceeded, message)
                .with("key", ShowKey(&address.key))
                .with("bytes at most", READ_BYTES_MAX));
        }
        self.records.insert(address, seen);
        Ok(())
    }

    /// The state of an attempt that has its turn at these records.
    pub(super) fn holding(turns: Vec<Turn>) -> Self {
        State { holding: Holding { turns, ..Holding::default() }, ..State::default() }
    }

    pub(super) fn has_joined(&self, address: &Address) -> bool {
        self.holding.is_over || self.holding.turns.iter().any(|turn| turn.is_of(address))
    }

    pub(super) fn hold(&mut self, turn: Turn) {
        self.holding.is_waiting = false;
        if !self.holding.is_over {
            self.holding.turns.push(turn);
        }
    }

    /// Whether the attempt may wait for a turn; if so, it does from now on.
    pub(super) fn may_wait(&mut self) -> bool {
        let may_wait = self.holding.turns.is_empty() && !self.holding.is_waiting;
        self.holding.is_waiting |= may_wait;
        may_wait
    }

    /// Gives the turns up.
    pub(super) fn end_turns(&mut self) -> Vec<Turn> {
        self.holding.is_over = true;
        std::mem::take(&mut self.holding.turns)
    }

    /// The records that the attempt read or wrote.
    pub(super) fn addresses(&self) -> Vec<Address> {
        let written = self.writes.keys().filter(|address| !self.records.contains_key(*address));
        self.records.keys().chain(written).cloned().collect()
    }

    /// Remembers that the schema refused something.
    pub(super) fn judge<T>(&mut self, answer: Result<T>) -> Result<T> {
        self.rests_on_schema |= answer.is_err();
        answer
    }

    /// Leaves a record in this state. A code that was drawn for it earlier in the transaction is
    /// still a drawn one when it is written again.
    pub(super) fn write(
        &mut self,
        collection: &Arc<Collection>,
        address: Address,
        after: Option<After<'static>>,
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
    pub(super) fn refuse_late_creation(&self, address: &Address) -> Result<()> {
        let Some(addend) = self.addends.get(address) else { return Ok(()) };
        let message = "the transaction added to the counters of this record before it creates it";
        Err(Error::new(ErrorKind::InvalidArgument, message)
            .with("collection", &addend.collection.name)
            .with("key", ShowKey(&address.key)))
    }

    /// What the transaction sees at an address; `None` when it has not looked there yet.
    pub(super) fn visible(&self, address: &Address) -> Option<Option<Current>> {
        match self.writes.get(address) {
            Some(write) => Some(write.after.as_ref().map(|after| Current {
                version: after.version,
                value: after.value.clone().into_owned(),
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
    pub(super) fn counted(&self, address: &Address) -> Option<Counted> {
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
    pub(super) fn next_version(&self, address: &Address) -> Version {
        match (self.writes.get(address), self.records.get(address)) {
            (Some(Write { after: Some(written), .. }), _) => written.version,
            (None, Some(Seen::There(read))) => read.version.next(),
            (Some(Write { after: None, .. }), _) | (None, _) => Version::first(),
        }
    }

    /// What the attempt comes to.
    pub(super) fn settle(&self) -> Result<Settled> {
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
