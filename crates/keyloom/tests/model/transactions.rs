//! Transactions over several records and collections, predicted step by step.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Effect, Error, ErrorKind, Fate, Result, Stored, Transaction, Version, Written};
use serde_json::Value;

use super::claims::Move;
use super::client::{Client, Known, Slot};
use super::shape::Shape;
use super::values::Draw;
use super::writes::{Verdict, Write};

/// Collection and slot.
type Spot = (usize, usize);

#[derive(Clone, Debug)]
enum Step {
    Get(Spot),
    /// Collection, index, values.
    GetBy(usize, String, Vec<Value>),
    Write(Spot, Write),
}

/// What one attempt has seen and written so far.
#[derive(Clone, Default)]
struct Sight {
    /// What it wrote; `None` for what it deleted.
    written: BTreeMap<Spot, Option<Known>>,
    /// What it looked at before it wrote there, if it did.
    read: BTreeSet<Spot>,
}

impl Sight {
    /// A record as the attempt sees it.
    fn present<'s>(&'s self, slots: &'s [Vec<Slot>], spot: Spot) -> Option<&'s Known> {
        match self.written.get(&spot) {
            Some(written) => written.as_ref(),
            None => slots[spot.0][spot.1].known.as_ref(),
        }
    }

    fn look_at(&mut self, spot: Spot) {
        if !self.written.contains_key(&spot) {
            self.read.insert(spot);
        }
    }

    /// What a write comes to. Every write looks at what is there.
    fn judge(&mut self, slots: &[Vec<Slot>], shape: &Shape, spot: Spot, write: &Write) -> Verdict {
        self.look_at(spot);
        write.predict(&shape.name, self.present(slots, spot), false)
    }

    fn apply(&mut self, spot: Spot, verdict: &Verdict, now: Option<Known>) {
        if matches!(verdict, Verdict::Done(Effect::Created | Effect::Replaced) | Verdict::Deleted) {
            self.written.insert(spot, now);
        }
    }
}

/// What a transaction comes to if no exclusive value is in the way.
struct Forecast {
    sight: Sight,
    /// The errors that it may end with; none when it commits.
    errors: Vec<ErrorKind>,
}

impl Client {
    pub async fn transact(&mut self) {
        let count = 1 + self.random.below(5);
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..count {
            let step = self.random_step(steps.last());
            steps.push(step);
        }
        let aborts = self.random.percent(15);
        let gives_up = self.random.percent(50);
        let forecast = self.forecast(&steps, aborts, gives_up);
        self.note(|| {
            format!(
                "transaction aborts={aborts} gives_up={gives_up} {steps:?} → {:?}",
                forecast.errors
            )
        });
        let moves: Vec<Move> = forecast
            .sight
            .written
            .iter()
            .map(|(spot, now)| self.a_move(spot.0, spot.1, now.as_ref().map(|now| &now.value)))
            .collect();
        let begun = self.world.claims().begin(&moves);
        let (client, plan) = (&*self, &steps[..]);
        let answer: Result<Sight> = client
            .store
            .transaction(move |transaction| client.attempt(transaction, plan, aborts, gives_up))
            .await;
        let happened = match answer {
            Ok(sight) => {
                assert!(forecast.errors.is_empty(), "committed instead of {:?}", forecast.errors);
                for (spot, now) in sight.written {
                    self.slots[spot.0][spot.1].set(now);
                }
                true
            }
            Err(error) if self.is_fault(&error) => false,
            Err(error) if error.fate() == Fate::MayHaveHappened && self.world.faults => {
                self.settle_transaction(&forecast.sight).await
            }
            Err(error) if error.kind() == ErrorKind::UniqueConflict => {
                let right = self.world.claims().may_refuse(&moves, &begun);
                assert!(right, "refused though nobody has the value: {error:?}");
                false
            }
            Err(error) => {
                let looked_up = steps.iter().any(|step| matches!(step, Step::GetBy(..)));
                let lost_race = self.world.clients > 1
                    && looked_up
                    && matches!(error.kind(), ErrorKind::VersionConflict | ErrorKind::Contention);
                let expected = forecast.errors.contains(&error.kind());
                assert!(expected || lost_race, "expected {:?}: {error:?}", forecast.errors);
                false
            }
        };
        self.world.claims().settle(&moves, happened);
    }

    /// A step; often at the place of the one before it, so that they meet.
    fn random_step(&mut self, last: Option<&Step>) -> Step {
        let world = self.world.clone();
        let spot = match last {
            Some(Step::Write(spot, _) | Step::Get(spot)) if self.random.percent(30) => *spot,
            _ => (self.random.below(world.shapes.len()), self.random.below(world.slots.min(5))),
        };
        let collection = spot.0;
        if self.random.percent(20) {
            return Step::Get(spot);
        }
        if self.random.percent(15)
            && let Some((index, values)) = self.unique_question(collection)
        {
            return Step::GetBy(collection, index, values);
        }
        let Slot { known, stale, .. } = &self.slots[spot.0][spot.1];
        let (known, stale) = (known.clone(), *stale);
        let present = known.as_ref().map(|known| &known.value);
        let choice = self.random.below(100);
        let mut record = || match (choice % 6, present) {
            (0, Some(same)) => same.clone(),
            // Keys that the store makes up could not be told again within the transaction.
            _ => {
                let mut draw = Draw { generate: false, ..self.draw() };
                draw.record(&world.shapes[collection].name, spot.1, present)
            }
        };
        let version =
            if choice.is_multiple_of(3) { stale } else { known.as_ref().map(|it| it.version) };
        let write = match (choice, version) {
            (0..25, _) => Write::Insert(record()),
            (25..50, _) => Write::Upsert(record()),
            (50..60, Some(version)) => Write::ReplaceIf(record(), version),
            (50..75, _) => Write::Replace(record()),
            _ => Write::Delete,
        };
        Step::Write(spot, write)
    }

    /// What the steps come to, by the reference alone.
    fn forecast(&self, steps: &[Step], aborts: bool, gives_up: bool) -> Forecast {
        let mut sight = Sight::default();
        for step in steps {
            match step {
                Step::Get(spot) => sight.look_at(*spot),
                Step::GetBy(collection, index, values) => {
                    self.holder_in_sight(&mut sight, *collection, index, values);
                }
                Step::Write(spot, write) => {
                    let shape = self.shape(spot.0);
                    let verdict = sight.judge(&self.slots, shape, *spot, write);
                    if let Verdict::Refused(kinds) = verdict {
                        if gives_up {
                            return Forecast { sight: Sight::default(), errors: kinds.to_vec() };
                        }
                        continue;
                    }
                    let now = write.record().map(|value| Known {
                        key: String::new(),
                        version: unknown_version(),
                        value: value.clone(),
                    });
                    sight.apply(*spot, &verdict, now);
                }
            }
        }
        match aborts {
            true => Forecast { sight: Sight::default(), errors: vec![ErrorKind::Aborted] },
            false => Forecast { sight, errors: Vec::new() },
        }
    }

    /// The record of this client that holds an exclusive value, as the attempt sees it.
    fn holder_in_sight(
        &self,
        sight: &mut Sight,
        collection: usize,
        index: &str,
        values: &[Value],
    ) -> Option<Known> {
        let index = self.shape(collection).index(index);
        let holds = |known: &Known| index.entries(&known.value).iter().any(|held| held == values);
        let of_collection = sight.written.iter().filter(|(spot, _)| spot.0 == collection);
        let mut written = of_collection.filter_map(|(_, known)| known.as_ref());
        if let Some(found) = written.find(|known| holds(known)) {
            return Some(found.clone());
        }
        let in_store = |slot: &Slot| slot.known.as_ref().is_some_and(holds);
        let spot = (collection, self.slots[collection].iter().position(in_store)?);
        sight.look_at(spot);
        sight.present(&self.slots, spot).filter(|known| holds(known)).cloned()
    }

    async fn attempt(
        &self,
        transaction: Transaction,
        steps: &[Step],
        aborts: bool,
        gives_up: bool,
    ) -> Result<Sight> {
        let mut sight = Sight::default();
        for step in steps {
            match self.step(&transaction, &mut sight, step).await {
                Err(error)
                    if gives_up
                        || matches!(step, Step::Get(_) | Step::GetBy(..))
                        || error.kind() == ErrorKind::Unavailable =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        match aborts {
            true => Err(Error::new(ErrorKind::Aborted, "the closure gave up")),
            false => Ok(sight),
        }
    }

    async fn step(&self, transaction: &Transaction, sight: &mut Sight, step: &Step) -> Result<()> {
        match step {
            Step::Get(spot) => {
                let documents = transaction.documents(&self.shape(spot.0).name)?;
                let found = documents.get(self.key_values(spot.0, spot.1)).await?;
                sight.look_at(*spot);
                let present = sight.present(&self.slots, *spot);
                check_seen(present, found.as_ref());
            }
            Step::GetBy(collection, index, values) => {
                let documents = transaction.documents(&self.shape(*collection).name)?;
                let found = documents.get_by(index, values.clone()).await?;
                let mine = self.holder_in_sight(sight, *collection, index, values);
                let others = found
                    .as_ref()
                    .is_none_or(|found| found.value[super::values::CLIENT] != self.number);
                if mine.is_some() || !others {
                    check_seen(mine.as_ref(), found.as_ref());
                }
            }
            Step::Write(spot, write) => {
                return self.write_step(transaction, sight, *spot, write).await;
            }
        }
        Ok(())
    }

    async fn write_step(
        &self,
        transaction: &Transaction,
        sight: &mut Sight,
        spot: Spot,
        write: &Write,
    ) -> Result<()> {
        let documents = transaction.documents(&self.shape(spot.0).name)?;
        let key = self.key_values(spot.0, spot.1);
        let left = |written: Written<Value>| {
            let effect = written.effect;
            (Some(written.into_document()), effect)
        };
        let written = match write {
            Write::Insert(record) => documents.insert(record).await.map(left),
            Write::Upsert(record) => documents.upsert(record).await.map(left),
            Write::Replace(record) => documents.replace(record).await.map(left),
            Write::ReplaceIf(record, version) => {
                documents.replace_if(record, *version).await.map(left)
            }
            Write::Delete | Write::DeleteIf(_) => documents.delete(key).await.map(|was_there| {
                // The effect of a delete is told by whether there was something.
                (None, if was_there.is_some() { Effect::Replaced } else { Effect::Unchanged })
            }),
        };
        if written.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
            return written.map(drop);
        }
        let verdict = sight.judge(&self.slots, self.shape(spot.0), spot, write);
        let fits = match (&verdict, &written) {
            (Verdict::Refused(kinds), Err(error)) => kinds.contains(&error.kind()),
            (Verdict::Done(expected), Ok((Some(_), effect))) => expected == effect,
            (Verdict::Deleted, Ok((None, effect))) => *effect == Effect::Replaced,
            (Verdict::NothingThere, Ok((None, effect))) => *effect == Effect::Unchanged,
            _ => false,
        };
        assert!(fits, "expected {verdict:?} of {write:?}, not {written:?}");
        let (document, effect) = written?;
        let now = document.as_ref().map(Known::of);
        if let (Some(now), Effect::Created | Effect::Replaced) = (&now, effect) {
            let base = self.slots[spot.0][spot.1].known.as_ref();
            let base = base.filter(|_| sight.read.contains(&spot)).map(|base| base.version);
            let incarnation = |version: Version| version.to_string()[..32].to_owned();
            match (sight.written.get(&spot), base) {
                (Some(Some(written)), _) => assert_eq!(now.version, written.version, "one change"),
                (None, Some(base)) => {
                    assert_eq!(now.version.revision(), base.revision() + 1);
                    assert_eq!(incarnation(now.version), incarnation(base));
                }
                (_, base) => {
                    assert_eq!(now.version.revision(), 1, "a new record starts anew");
                    assert_ne!(Some(incarnation(now.version)), base.map(incarnation));
                }
            }
        }
        sight.apply(spot, &verdict, now);
        Ok(())
    }

    /// After a transaction of unknown outcome: all of it must have happened, or nothing.
    async fn settle_transaction(&mut self, sight: &Sight) -> bool {
        let mut votes = Vec::new();
        for (spot, wanted) in &sight.written {
            let now = self.settled(spot.0, spot.1).await;
            let before = &self.slots[spot.0][spot.1].known;
            if now == *before {
                // What came and went within the transaction says nothing.
                if wanted.is_some() || before.is_some() {
                    votes.push((*spot, false, now));
                }
                continue;
            }
            let value = |known: &Option<Known>| known.as_ref().map(|known| known.value.clone());
            assert_eq!(value(&now), value(wanted), "neither before nor after the transaction");
            votes.push((*spot, true, now));
        }
        let happened = votes.iter().any(|(_, happened, _)| *happened);
        for (spot, vote, now) in votes {
            assert_eq!(vote, happened, "half a transaction is in the store: {spot:?}");
            self.slots[spot.0][spot.1].set(now);
        }
        happened
    }
}

/// Panics unless the attempt sees what it should.
fn check_seen(present: Option<&Known>, found: Option<&Stored<Value>>) {
    match (present, found) {
        (None, None) => {}
        (Some(present), Some(found)) => present.check(found),
        (present, found) => panic!("{present:?} should be seen, not {found:?}"),
    }
}

/// Stands for the version of a record that the forecast has not seen written.
fn unknown_version() -> Version {
    "00000000000000000000000000000000-1".parse().unwrap()
}
