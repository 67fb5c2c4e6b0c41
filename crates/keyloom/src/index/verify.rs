//! Streams over everything that is declared, and reports what is wrong.
//!
//! Each chunk of keys is read once, with one more round trip for the other halves: the entries of
//! its records and the records of its entries. What looks wrong may only have moved in between,
//! so it is looked at again, both halves at one moment, before it is reported.

use std::sync::Arc;

use super::aggregates::{self, Litter};
use super::counter_cells::CounterCell;
use super::finding::{Finding, Tally};
use super::mend::Mender;
use super::not_ready::{NotReady, not_ready};
use super::sorted::{Half, Sorted};
use super::suspect::Suspect;
use super::verification::{Verification, VerifiedChunk, VerifyOptions};
use super::{history, idempotency, lease};
use crate::engine::{Address, Area, Cell, Range, Reading, Row, Stamp};
use crate::error::Result;
use crate::own::{OwnKind, OwnRange, own_address};
use crate::schema::{Aggregate, Keyspace, Place};
use crate::space::{Interrupted, Live, Loaded, Position, Session, Stage, Under, Walk};
use crate::write::Retry;

/// Verifies a store chunk by chunk, in bounded memory.
pub struct Verifier {
    live: Arc<Live>,
    loaded: Arc<Loaded>,
    keyspace: Keyspace,
    /// How far the walk over all keys is.
    position: Position,
    /// How far the aggregates are done, once all keys of templates are.
    tallied: Tallied,
    chunk_keys: usize,
    /// When it began, by the store's clock.
    now: u64,
}

/// How far a walk over aggregates has come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tallied {
    Nothing,
    /// The keys that belong to none.
    Litter,
    /// Everything up to this one: collection and name.
    UpTo(String, String),
}

/// A confirmed fault.
pub(super) struct Fault {
    pub(super) subject: Subject,
    pub(super) finding: Finding,
}

/// What a fault is about.
pub(super) enum Subject {
    Keys(Suspect),
    /// The aggregate has to be counted anew.
    Aggregate(Arc<Aggregate>),
    /// A key of Keyloom's own area that is of no use, as it was seen.
    Litter(Address, Stamp),
}

/// What a chunk of keys gave, with what a mend needs.
#[derive(Default)]
pub(super) struct Examined {
    pub(super) faults: Vec<Fault>,
    pub(super) records: u64,
    pub(super) entries: u64,
    pub(super) unsettled: u64,
}

impl Verifier {
    pub(crate) async fn new(session: &Session, options: &VerifyOptions) -> Result<Self> {
        let live = session.program()?;
        let loaded = live.reload().await?;
        let keyspace = Keyspace::of(&loaded.schema)?;
        let chunk_keys = options.chunk_keys.max(1);
        Ok(Verifier {
            live: live.clone(),
            loaded,
            keyspace,
            position: Position::default(),
            tallied: Tallied::Nothing,
            chunk_keys,
            now: session.now(),
        })
    }

    /// Looks at the next keys; `None` when all have been looked at.
    pub async fn next_chunk(&mut self) -> Result<Option<VerifiedChunk>> {
        let examined = self.next_examined().await?;
        Ok(examined.map(|Examined { faults, records, entries, unsettled }| VerifiedChunk {
            findings: faults.into_iter().map(|fault| fault.finding).collect(),
            records,
            entries,
            unsettled,
        }))
    }

    /// The indexes and aggregates that are declared and do not serve at this moment. No chunk tells
    /// of them.
    pub async fn not_ready(&self) -> Result<Vec<NotReady>> {
        Ok(not_ready(&*self.live.reload().await?))
    }

    /// Looks at everything that is left.
    pub(crate) async fn finish(mut self, findings_max: usize) -> Result<Verification> {
        let mut tally = Tally::default();
        let (mut records, mut entries, mut unsettled) = (0, 0, 0);
        while let Some(chunk) = self.next_chunk().await? {
            records += chunk.records;
            entries += chunk.entries;
            unsettled += chunk.unsettled;
            for finding in chunk.findings {
                tally.add(finding, findings_max);
            }
        }
        let Tally { findings, counts } = tally;
        let not_ready = self.not_ready().await?;
        Ok(Verification { findings, counts, records, entries, unsettled, not_ready })
    }

    pub(super) fn mender(&self) -> Mender<'_> {
        Mender { live: &self.live, loaded: &self.loaded }
    }

    pub(super) async fn next_examined(&mut self) -> Result<Option<Examined>> {
        let live = self.live.clone();
        let mut attempts = live.attempts("the schema kept changing during the verification");
        loop {
            let examined = self.examine_next().await;
            match attempts.settle(examined).await? {
                Some(examined) => return Ok(examined),
                None => self.reload().await?,
            }
        }
    }

    /// Looks at the next keys, and then at one aggregate after the other. What is done stays done.
    async fn examine_next(&mut self) -> Under<Option<Examined>> {
        let mut walk = Walk::new(vec![self.stage()], self.chunk_keys).from(self.position.clone());
        let Some(chunk) = walk.next(&self.live).await? else {
            self.position = walk.position().clone();
            return self.next_tallied().await;
        };
        let examined = self.examine(&chunk.area, chunk.rows).await?;
        self.position = walk.position().clone();
        Ok(Some(examined))
    }

    /// Looks at the keys that belong to no aggregate, then at one aggregate after the other.
    async fn next_tallied(&mut self) -> Under<Option<Examined>> {
        let mut examined = Examined::default();
        if self.tallied == Tallied::Nothing {
            let found = aggregates::litter(&self.live, &self.loaded).await?;
            examined.faults.extend(found.into_iter().map(|Litter { address, stamp, finding }| {
                Fault { subject: Subject::Litter(address, stamp), finding }
            }));
            self.tallied = Tallied::Litter;
            return Ok(Some(examined));
        }
        let next = self.loaded.schema.collections.values().find_map(|collection| {
            let names = |name: &String| Tallied::UpTo(collection.name.clone(), name.clone());
            let (name, aggregate) =
                collection.aggregates.iter().find(|(name, _)| names(name) > self.tallied)?;
            Some((collection.clone(), aggregate.clone(), names(name)))
        });
        let Some((collection, aggregate, tallied)) = next else { return Ok(None) };
        let compared =
            aggregates::verify(&self.live, &self.loaded, &collection, &aggregate).await?;
        examined.unsettled = compared.unsettled;
        let subject = || Subject::Aggregate(aggregate.clone());
        let faults =
            compared.findings.into_iter().map(|finding| Fault { subject: subject(), finding });
        examined.faults.extend(faults);
        self.tallied = tallied;
        Ok(Some(examined))
    }

    /// Takes over a schema that changed; what is done stays done.
    pub(super) async fn reload(&mut self) -> Result<()> {
        self.loaded = self.live.reload().await?;
        self.keyspace = Keyspace::of(&self.loaded.schema)?;
        Ok(())
    }

    /// The same counters, by the schema as it is now.
    pub(super) fn renewed(&self, counters: &CounterCell) -> CounterCell {
        CounterCell::new(&self.keyspace, counters.key.clone())
    }

    /// Every range of keys that is declared, and what Keyloom keeps beside records.
    fn stage(&self) -> Stage<'static> {
        let mut ranges = self.keyspace.ranges();
        ranges.extend([
            OwnRange::Histories.range(),
            OwnKind::Answer.range(),
            OwnKind::Lease.range(),
        ]);
        Stage::all(ranges)
    }

    /// What is wrong with these keys.
    async fn examine(&self, area: &Area, rows: Vec<Row>) -> Under<Examined> {
        let mut sorted = Sorted::default();
        for row in rows {
            self.sort(area, row, &mut sorted);
        }
        let Sorted { halves, counters, histories, mut suspects, .. } = sorted;
        let mut addresses: Vec<Address> = halves.iter().map(Half::other_address).collect();
        let records = |counters: &CounterCell| counters.addresses().into_iter().skip(1);
        addresses.extend(counters.iter().flat_map(|(counters, _)| records(counters)));
        let mut others = self.live.get(&addresses).await?;
        let mut records_now = others.split_off(halves.len().min(others.len())).into_iter();
        for (cell, own) in counters {
            let count = cell.addresses().len() - 1;
            let seen: Vec<Option<Cell>> =
                std::iter::once(Some(own)).chain(records_now.by_ref().take(count)).collect();
            if cell.judge(&seen).is_some() {
                suspects.push(Suspect::Counters(cell));
            }
        }
        suspects
            .extend(halves.into_iter().zip(others).filter_map(|(half, other)| half.suspect(other)));
        suspects.extend(self.suspect_histories(histories).await?);
        let examined =
            Examined { records: sorted.records, entries: sorted.entries, ..Examined::default() };
        self.confirm(suspects, examined).await
    }

    fn sort(&self, area: &Area, row: Row, sorted: &mut Sorted) {
        // The rest of Keyloom's own area are entries, of the index over the ends of records.
        let is_in = |range: Range| range.area == *area && range.contains(&row.key);
        if is_in(OwnRange::Histories.range()) {
            return sorted.histories.push(row);
        }
        if is_in(OwnKind::Answer.range()) {
            let address = || own_address(row.key.clone());
            let suspect = idempotency::judge(&row.key, &row.cell)
                .map(|_| Suspect::Idempotency { address: address() });
            return sorted.suspects.extend(suspect);
        }
        if is_in(OwnKind::Lease.range()) {
            let witnesses = lease::witnesses(&self.loaded, &row);
            return sorted.suspects.push(Suspect::Lease { witnesses, now: self.now });
        }
        match self.keyspace.place(area, &row.key) {
            Place::Record(collection) => {
                sorted.records += 1;
                sorted.add_record(&self.loaded, collection, row);
            }
            Place::Entry(collection, index) => {
                if self.loaded.is_maintained(collection, index) {
                    sorted.entries += 1;
                    sorted.add_entry(collection, index, row);
                }
            }
            Place::Stray(template) => sorted.suspects.push(Suspect::Stray {
                area: area.clone(),
                key: row.key,
                template: template.source.clone(),
            }),
            Place::Counters => {
                let counters = CounterCell::new(&self.keyspace, row.key);
                sorted.counters.push((counters, row.cell));
            }
            // A range is declared, so that something comes near each of its keys.
            Place::Free => {}
        }
    }

    /// Those cells of histories that seem to be wrong, each with what has to confirm it.
    async fn suspect_histories(&self, rows: Vec<Row>) -> Result<Vec<Suspect>> {
        let asked: Vec<Vec<Address>> =
            rows.iter().map(|row| history::witnesses(&self.loaded, row)).collect();
        let others = asked.iter().flat_map(|witnesses| witnesses.iter().skip(1).cloned());
        let mut others = self.live.get(&others.collect::<Vec<_>>()).await?.into_iter();
        let mut suspects = Vec::new();
        for (row, witnesses) in rows.into_iter().zip(asked) {
            let own = std::iter::once(Some(row.cell.clone()));
            let cells: Vec<Option<Cell>> =
                own.chain(others.by_ref().take(witnesses.len() - 1)).collect();
            if history::judge(&self.loaded, &witnesses, &cells).is_some() {
                let witnesses = history::search(&self.live, &row, witnesses).await?;
                suspects.push(Suspect::History { witnesses });
            }
        }
        Ok(suspects)
    }

    /// Looks at the suspects again, under the schema that they were judged by.
    async fn confirm(&self, suspects: Vec<Suspect>, mut examined: Examined) -> Under<Examined> {
        if suspects.is_empty() {
            return Ok(examined);
        }
        let mender = self.mender();
        let mut addresses: Vec<Address> =
            self.loaded.fence().map(|f| f.address).into_iter().collect();
        let fences = addresses.len();
        addresses.extend(suspects.iter().flat_map(Suspect::addresses));
        let mut cells = self.live.get(&addresses).await?.into_iter();
        let fence = cells.by_ref().take(fences).flatten().next().map(|cell| cell.stamp);
        if fence != self.loaded.fence().map(|fence| fence.stamp) {
            return Err(Interrupted::SchemaChanged);
        }
        let together = self.live.engine.capabilities().reading == Reading::Snapshot;
        for suspect in suspects {
            let seen: Vec<Option<Cell>> = cells.by_ref().take(suspect.addresses().len()).collect();
            if together {
                let finding = suspect.judge(&self.loaded, &seen);
                let subject = Subject::Keys(suspect);
                examined.faults.extend(finding.map(|finding| Fault { subject, finding }));
                continue;
            }
            match self.settle(&mender, &suspect, seen).await? {
                Settled::Sound => {}
                Settled::Wrong(finding) => {
                    examined.faults.push(Fault { subject: Subject::Keys(suspect), finding });
                }
                Settled::Moving => examined.unsettled += 1,
            }
        }
        Ok(examined)
    }

    /// Judges a suspect on an engine whose answers may mix moments. Conditions do not: a batch
    /// without effects commits only if everything that was seen is there at one moment.
    async fn settle(
        &self,
        mender: &Mender<'_>,
        suspect: &Suspect,
        mut seen: Vec<Option<Cell>>,
    ) -> Under<Settled> {
        let retry = Retry::eager();
        let addresses = suspect.addresses();
        let mut made = 0;
        loop {
            let Some(finding) = suspect.judge(&self.loaded, &seen) else {
                return Ok(Settled::Sound);
            };
            made += 1;
            if mender.hold(&addresses, &seen).await? {
                return Ok(Settled::Wrong(finding));
            }
            if !retry.pause(made).await {
                return Ok(Settled::Moving);
            }
            seen = self.live.get(&addresses).await?;
        }
    }
}

/// What became of a suspect.
enum Settled {
    Sound,
    Wrong(Finding),
    Moving,
}
