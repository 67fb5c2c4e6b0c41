//! Streams over everything that is declared, and reports what is wrong.
//!
//! Each chunk of keys is read once, with one more round trip for the other halves: the entries of
//! its records and the records of its entries. What looks wrong may only have moved in between,
//! so it is looked at again, both halves at one moment, before it is reported.

use std::sync::Arc;

use bytes::Bytes;

use super::aggregates::{self, Litter};
use super::counter_cells::CounterCell;
use super::finding::{Finding, Tally};
use super::mend::{Held, Mender};
use super::not_ready::{NotReady, not_ready};
use super::sorted::{Half, Sorted};
use super::suspect::Suspect;
use super::verification::{Verification, VerifiedChunk, VerifyOptions};
use super::{history, idempotency, lease};
use crate::engine::{
    Address, Area, Cell, Direction, EngineExt, Range, Reading, Row, Stamp, successor,
};
use crate::error::{Error, ErrorKind, Result};
use crate::history::own_range as history_range;
use crate::idempotency::own_range as idempotency_range;
use crate::lease::range as lease_range;
use crate::schema::Aggregate;
use crate::schema::{Keyspace, Place};
use crate::space::Session;
use crate::space::{Live, Loaded};
use crate::write::Retry;

/// How often a chunk is read again because the schema changed meanwhile.
const RESTARTS: usize = 16;

/// Verifies a store chunk by chunk, in bounded memory.
pub struct Verifier {
    live: Arc<Live>,
    loaded: Arc<Loaded>,
    keyspace: Keyspace,
    /// Everything before this is done; nothing is at the start.
    done: Option<Milestone>,
    /// How far the aggregates are done, once all keys of templates are.
    tallied: Tallied,
    chunk_keys: usize,
    /// When it began, by the store's clock.
    now: u64,
}

/// How far a walk over areas and keys has come.
#[derive(Clone, Debug)]
struct Milestone {
    area: Area,
    /// The first key that is not done; `None` when the whole area is.
    next: Option<Bytes>,
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
            done: None,
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
        for _ in 0..RESTARTS {
            let Some(range) = self.left() else {
                match self.next_tallied().await? {
                    Step::Examined(examined) => return Ok(Some(examined)),
                    Step::StaleSchema => self.reload().await?,
                    Step::End => return Ok(None),
                }
                continue;
            };
            let stretch = self
                .live
                .engine
                .scan_one(&self.live.space, &range, self.chunk_keys, Direction::Forward)
                .await?;
            let next = match stretch.rows.last() {
                Some(last) if stretch.more => Some(successor(&last.key)),
                _ => range.end.clone(),
            };
            match self.examine(&range.area, stretch.rows).await? {
                Some(examined) => {
                    self.done = Some(Milestone { area: range.area, next });
                    return Ok(Some(examined));
                }
                None => self.reload().await?,
            }
        }
        Err(Error::new(ErrorKind::StaleSchema, "the schema kept changing during the verification"))
    }

    /// Looks at the keys that belong to no aggregate, then at one aggregate after the other.
    async fn next_tallied(&mut self) -> Result<Step> {
        let mut examined = Examined::default();
        if self.tallied == Tallied::Nothing {
            let Some(found) = aggregates::litter(&self.live, &self.loaded).await? else {
                return Ok(Step::StaleSchema);
            };
            examined.faults.extend(found.into_iter().map(|Litter { address, stamp, finding }| {
                Fault { subject: Subject::Litter(address, stamp), finding }
            }));
            self.tallied = Tallied::Litter;
            return Ok(Step::Examined(examined));
        }
        let next = self.loaded.schema.collections.values().find_map(|collection| {
            let names = |name: &String| Tallied::UpTo(collection.name.clone(), name.clone());
            let (name, aggregate) =
                collection.aggregates.iter().find(|(name, _)| names(name) > self.tallied)?;
            Some((collection.clone(), aggregate.clone(), names(name)))
        });
        let Some((collection, aggregate, tallied)) = next else { return Ok(Step::End) };
        let compared = aggregates::verify(&self.live, &self.loaded, &collection, &aggregate);
        let Some(compared) = compared.await? else { return Ok(Step::StaleSchema) };
        examined.unsettled = compared.unsettled;
        let subject = || Subject::Aggregate(aggregate.clone());
        let faults =
            compared.findings.into_iter().map(|finding| Fault { subject: subject(), finding });
        examined.faults.extend(faults);
        self.tallied = tallied;
        Ok(Step::Examined(examined))
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

    /// The first declared range that is not done, without its part that is.
    fn left(&self) -> Option<Range> {
        let mut ranges = self.keyspace.ranges();
        // No declared area sorts after Keyloom's own, and of its words `expiry` is before these.
        ranges.extend([history_range(), idempotency_range(), lease_range()]);
        let Some(done) = &self.done else { return ranges.into_iter().next() };
        ranges.into_iter().find_map(|range| match range.area.cmp(&done.area) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Greater => Some(range),
            std::cmp::Ordering::Equal => {
                let start = range.start.clone().max(done.next.clone()?);
                let left = Range { start, ..range };
                (!left.is_empty()).then_some(left)
            }
        })
    }

    /// What is wrong with these keys; `None` when the schema changed meanwhile.
    async fn examine(&self, area: &Area, rows: Vec<Row>) -> Result<Option<Examined>> {
        let mut sorted = Sorted::default();
        for row in rows {
            self.sort(area, row, &mut sorted);
        }
        let Sorted { halves, counters, histories, mut suspects, .. } = sorted;
        let mut addresses: Vec<Address> = halves.iter().map(Half::other_address).collect();
        let records = |counters: &CounterCell| counters.addresses().into_iter().skip(1);
        addresses.extend(counters.iter().flat_map(|(counters, _)| records(counters)));
        let mut others = self.get(&addresses).await?;
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
        if is_in(history_range()) {
            return sorted.histories.push(row);
        }
        if is_in(idempotency_range()) {
            let address = || Address::new(Area::own(), row.key.clone());
            let suspect = idempotency::judge(&row.key, &row.cell)
                .map(|_| Suspect::Idempotency { address: address() });
            return sorted.suspects.extend(suspect);
        }
        if is_in(lease_range()) {
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
        let mut others = self.get(&others.collect::<Vec<_>>()).await?.into_iter();
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

    /// Looks at the suspects again; `None` when the schema changed, so that they may have been
    /// judged by rules that no longer hold.
    async fn confirm(
        &self,
        suspects: Vec<Suspect>,
        mut examined: Examined,
    ) -> Result<Option<Examined>> {
        if suspects.is_empty() {
            return Ok(Some(examined));
        }
        let mender = self.mender();
        let mut addresses: Vec<Address> =
            self.loaded.fence().map(|f| f.address).into_iter().collect();
        let fences = addresses.len();
        addresses.extend(suspects.iter().flat_map(Suspect::addresses));
        let mut cells = self.get(&addresses).await?.into_iter();
        let fence = cells.by_ref().take(fences).flatten().next().map(|cell| cell.stamp);
        if fence != self.loaded.fence().map(|fence| fence.stamp) {
            return Ok(None);
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
                Settled::StaleSchema => return Ok(None),
            }
        }
        Ok(Some(examined))
    }

    /// Judges a suspect on an engine whose answers may mix moments. Conditions do not: a batch
    /// without effects commits only if everything that was seen is there at one moment.
    async fn settle(
        &self,
        mender: &Mender<'_>,
        suspect: &Suspect,
        mut seen: Vec<Option<Cell>>,
    ) -> Result<Settled> {
        let retry = Retry::eager();
        let addresses = suspect.addresses();
        let mut made = 0;
        loop {
            let Some(finding) = suspect.judge(&self.loaded, &seen) else {
                return Ok(Settled::Sound);
            };
            made += 1;
            match mender.hold(&addresses, &seen).await? {
                Held::Yes => return Ok(Settled::Wrong(finding)),
                Held::StaleSchema => return Ok(Settled::StaleSchema),
                Held::No if !retry.pause(made).await => return Ok(Settled::Moving),
                Held::No => seen = self.get(&addresses).await?,
            }
        }
    }

    async fn get(&self, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        self.live.get(addresses).await
    }
}

/// What looking at aggregates came to.
enum Step {
    Examined(Examined),
    StaleSchema,
    End,
}

/// What became of a suspect.
enum Settled {
    Sound,
    Wrong(Finding),
    Moving,
    StaleSchema,
}
