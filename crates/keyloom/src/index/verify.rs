//! Streams over everything that is declared, and reports what is wrong.
//!
//! Each chunk of keys is read once, with one more round trip for the other halves: the entries of
//! its records and the records of its entries. What looks wrong may only have moved in between,
//! so it is looked at again, both halves at one moment, before it is reported.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::account::{Account, HearAccount};
use super::examine::{Examination, examine};
use super::not_ready::{NotReady, not_ready};
use super::pair_repair::Mender;
use super::sorted::{Half, Sorted};
use super::suspect::Suspect;
use super::verification::{Verification, VerifiedChunk, VerifyOptions};
use crate::engine::{Address, Area, Cell, Range, Reading, Row};
use crate::error::Result;
use crate::schema::{KeyOwner, Keyspace};
use crate::side::{Compared, Cure, Finding, Judging, KINDS, Kind, Part};
use crate::space::{
    Ended, Interrupted, Live, Loaded, Position, Retry, Session, Stage, Task, Under, Walk,
};

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComparedUpTo {
    /// The name of the kind that was compared last; empty at the start.
    kind: String,
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

/// Looks at what is left of a space.
pub(super) async fn verify_on(
    task: &mut Task<'_, Account>,
    session: &Session,
    options: &VerifyOptions,
    hear: HearAccount<'_>,
) -> Result<Verification, Ended> {
    let Examination { account, found, not_ready } =
        examine(task, session, options, None, hear).await?;
    let Account { records, entries, unsettled, left: counts, .. } = account;
    Ok(Verification { findings: found.left, counts, records, entries, unsettled, not_ready })
}

/// Looks at a whole space.
pub(crate) async fn verify(session: &Session, options: &VerifyOptions) -> Result<Verification> {
    let mut task = Task::in_memory(session.program()?, Account::begun(session.now()));
    verify_on(&mut task, session, options, &|_| {}).await.map_err(Ended::of_memory)
}

impl Verifier {
    pub(crate) async fn new(session: &Session, options: &VerifyOptions) -> Result<Self> {
        let account = Account::begun(session.now());
        Verifier::at(session, options, Position::default(), &account).await
    }

    /// A verifier that goes on from where another one was.
    pub(super) async fn at(
        session: &Session,
        options: &VerifyOptions,
        position: Position,
        account: &Account,
    ) -> Result<Self> {
        let live = session.program()?;
        let loaded = live.reload().await?;
        let keyspace = Keyspace::of(&loaded.schema)?;
        let chunk_keys = options.chunk_keys.max(1);
        Ok(Verifier {
            live: live.clone(),
            loaded,
            keyspace,
            position,
            compared: account.compared.clone(),
            chunk_keys,
            now: account.began,
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

    pub(super) fn position(&self) -> &Position {
        &self.position
    }

    pub(super) fn compared(&self) -> &ComparedUpTo {
        &self.compared
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
        let last = KINDS.iter().position(|kind| kind.name() == self.compared.kind);
        for kind in KINDS.iter().skip(last.unwrap_or_default()) {
            let after = self.compared.part.as_ref().filter(|_| kind.name() == self.compared.kind);
            if let Some(compared) = kind.compare(&self.live, &self.loaded, after).await? {
                let Compared { part, findings, unsettled } = compared;
                self.compared = ComparedUpTo { kind: kind.name().to_owned(), part: Some(part) };
                let fault = |(finding, cure)| Fault { subject: Subject::Compared(cure), finding };
                let faults = findings.into_iter().map(fault).collect();
                return Ok(Some(Examined { faults, unsettled, ..Examined::default() }));
            }
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
        match self.keyspace.owner_of(area, &row.key) {
            KeyOwner::Record(collection) => {
                sorted.records += 1;
                sorted.add_record(&self.loaded, collection, row);
            }
            KeyOwner::Entry(collection, index) => {
                if self.loaded.is_maintained(collection, index) {
                    sorted.entries += 1;
                    sorted.add_entry(collection, index, row);
                }
            }
            KeyOwner::Stray(template) => sorted.suspects.push(Suspect::Stray {
                area: area.clone(),
                key: row.key,
                template: template.source.clone(),
            }),
            // A range is declared, so that something comes near each of its keys.
            KeyOwner::Free => {}
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
