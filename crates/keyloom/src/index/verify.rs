//! Streams over everything that is declared, and reports what is wrong.
//!
//! Each chunk of keys is read once, with one more round trip for the other halves: the entries of
//! its records and the records of its entries. What looks wrong may only have moved in between,
//! so it is looked at again, both halves at one moment, before it is reported.

use std::sync::Arc;

use super::not_ready::{NotReady, not_ready};
use super::pair_repair::Mender;
use super::sorted::{Half, Sorted};
use super::suspect::Suspect;
use super::verification::{Verification, VerifiedChunk, VerifyOptions};
use crate::engine::{Address, Area, Cell, Range, Reading, Row};
use crate::error::Result;
use crate::schema::{Keyspace, Place};
use crate::side::{Compared, Cure, Finding, Findings, Judging, KINDS, Kind, Part};
use crate::space::{Interrupted, Live, Loaded, Position, Retry, Session, Stage, Under, Walk};

/// Verifies a store chunk by chunk, in bounded memory.
pub struct Verifier {
    live: Arc<Live>,
    loaded: Arc<Loaded>,
    keyspace: Keyspace,
    /// How far the walk over all keys is.
    position: Position,
    /// How far the comparisons are, once all keys were looked at.
    compared: ComparedUpTo,
    chunk_keys: usize,
    /// When it began, by the store's clock.
    now: u64,
}

/// How far the comparisons of what cannot be judged cell by cell are.
#[derive(Default)]
struct ComparedUpTo {
    /// The place of the kind among all.
    kind: usize,
    /// The last part of it that was compared.
    part: Option<Part>,
}

/// A confirmed fault.
pub(super) struct Fault {
    pub(super) subject: Subject,
    pub(super) finding: Finding,
}

/// What a fault is about.
pub(super) enum Subject {
    Keys(Suspect),
    /// What a comparison found.
    Compared(Cure),
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
            compared: ComparedUpTo::default(),
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
        let mut tally = Findings::default();
        let (mut records, mut entries, mut unsettled) = (0, 0, 0);
        while let Some(chunk) = self.next_chunk().await? {
            records += chunk.records;
            entries += chunk.entries;
            unsettled += chunk.unsettled;
            for finding in chunk.findings {
                tally.add(finding, findings_max);
            }
        }
        let Findings { findings, counts } = tally;
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

    /// Looks at the next keys, and then compares what is left. What is done stays done.
    async fn examine_next(&mut self) -> Under<Option<Examined>> {
        let mut walk = Walk::new(vec![self.stage()], self.chunk_keys).from(self.position.clone());
        let Some(chunk) = walk.next(&self.live).await? else {
            self.position = walk.position().clone();
            return self.next_compared().await;
        };
        let examined = self.examine(&chunk.area, chunk.rows).await?;
        self.position = walk.position().clone();
        Ok(Some(examined))
    }

    /// Compares the next of what cannot be judged cell by cell, one kind after the other.
    async fn next_compared(&mut self) -> Under<Option<Examined>> {
        while let Some(kind) = KINDS.get(self.compared.kind) {
            let after = self.compared.part.as_ref();
            if let Some(compared) = kind.compare(&self.live, &self.loaded, after).await? {
                let Compared { part, findings, unsettled } = compared;
                self.compared.part = Some(part);
                let fault = |(finding, cure)| Fault { subject: Subject::Compared(cure), finding };
                let faults = findings.into_iter().map(fault).collect();
                return Ok(Some(Examined { faults, unsettled, ..Examined::default() }));
            }
            self.compared = ComparedUpTo { kind: self.compared.kind + 1, part: None };
        }
        Ok(None)
    }

    /// Takes over a schema that changed; what is done stays done.
    pub(super) async fn reload(&mut self) -> Result<()> {
        self.loaded = self.live.reload().await?;
        self.keyspace = Keyspace::of(&self.loaded.schema)?;
        Ok(())
    }

    /// What cells beside records are judged by.
    pub(super) fn judging(&self) -> Judging<'_> {
        Judging { loaded: &self.loaded, keyspace: &self.keyspace, now: self.now }
    }

    /// Every range of keys that is declared, and what Keyloom keeps beside records.
    fn stage(&self) -> Stage<'static> {
        let mut ranges = self.keyspace.ranges();
        ranges.extend(self.ranges_beside().map(|(_, range)| range));
        Stage::all(ranges)
    }

    /// Where the cells beside records lie, by their kinds.
    fn ranges_beside(&self) -> impl Iterator<Item = (&'static dyn Kind, Range)> {
        let schema = &self.loaded.schema;
        KINDS.into_iter().filter_map(|kind| Some((kind, kind.verified(schema)?)))
    }

    /// What is wrong with these keys.
    async fn examine(&self, area: &Area, rows: Vec<Row>) -> Under<Examined> {
        let mut sorted = Sorted::default();
        for row in rows {
            self.sort(area, row, &mut sorted);
        }
        let Sorted { halves, beside, mut suspects, .. } = sorted;
        let judging = self.judging();
        let witnesses: Vec<Vec<Address>> =
            beside.iter().map(|(kind, row)| kind.witnesses(&judging, row)).collect();
        let mut addresses: Vec<Address> = halves.iter().map(Half::other_address).collect();
        addresses.extend(witnesses.iter().flat_map(|of_one| of_one.iter().skip(1).cloned()));
        let mut others = self.live.get(&addresses).await?;
        let others_beside = others.split_off(halves.len().min(others.len()));
        suspects
            .extend(halves.into_iter().zip(others).filter_map(|(half, other)| half.suspect(other)));
        suspects.extend(self.suspects_beside(beside, witnesses, others_beside).await?);
        let examined =
            Examined { records: sorted.records, entries: sorted.entries, ..Examined::default() };
        self.confirm(suspects, examined).await
    }

    fn sort(&self, area: &Area, row: Row, sorted: &mut Sorted) {
        // The rest of Keyloom's own area are entries, of the index over the ends of records.
        let mut beside = self.ranges_beside();
        if *area == Area::own()
            && let Some((kind, _)) = beside.find(|(_, range)| range.contains(&row.key))
        {
            return sorted.beside.push((kind, row));
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
            // A range is declared, so that something comes near each of its keys.
            Place::Free => {}
        }
    }

    /// Those cells beside records that seem to be wrong, each with what has to confirm it.
    async fn suspects_beside(
        &self,
        rows: Vec<(&'static dyn Kind, Row)>,
        witnesses: Vec<Vec<Address>>,
        others: Vec<Option<Cell>>,
    ) -> Result<Vec<Suspect>> {
        let mut others = others.into_iter();
        let mut suspects = Vec::new();
        for ((kind, row), witnesses) in rows.into_iter().zip(witnesses) {
            let own = std::iter::once(Some(row.cell.clone()));
            let cells: Vec<Option<Cell>> =
                own.chain(others.by_ref().take(witnesses.len() - 1)).collect();
            if kind.judge(&self.judging(), &witnesses, &cells).is_some() {
                let witnesses = kind.search(&self.live, &row, witnesses).await?;
                suspects.push(Suspect::Side { kind, witnesses });
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
                let finding = suspect.judge(&self.judging(), &seen);
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
            let Some(finding) = suspect.judge(&self.judging(), &seen) else {
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
