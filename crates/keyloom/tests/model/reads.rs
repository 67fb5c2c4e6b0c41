//! Reads by key and by unique value, and pages, each held against the client's own records.
//!
//! A client's records do not change while it reads, so that of every answer its own part is known
//! exactly, in content and in order, whatever the other clients do meanwhile. What is said about
//! the others' records must at least answer the question.

use keyloom::{Key, Page, Query, Stored};
use serde_json::Value;

use super::client::{Client, Known, retried};
use super::question::{Place, Question};
use super::shape::{Kind, LATER};

impl Client {
    pub async fn get(&mut self, collection: usize, slot: usize) {
        let values = self.key_values(collection, slot);
        self.note(|| format!("get {}[{slot}]", self.shape(collection).name));
        let answer = self.collections[collection].get(values).await;
        let Some(found) = self.read(answer) else { return };
        self.check_slot(collection, slot, found.as_ref());
    }

    pub async fn get_many(&mut self, collection: usize) {
        let count = self.random.below(6);
        let slots: Vec<usize> = (0..count).map(|_| self.random.below(self.world.slots)).collect();
        self.note(|| format!("get many {}{slots:?}", self.shape(collection).name));
        let keys: Vec<Vec<Value>> =
            slots.iter().map(|slot| self.key_values(collection, *slot)).collect();
        let answer = self.collections[collection].get_many(keys).await;
        let Some(found) = self.read(answer) else { return };
        assert_eq!(found.len(), slots.len());
        for (slot, found) in slots.into_iter().zip(&found) {
            self.check_slot(collection, slot, found.as_ref());
        }
    }

    fn check_slot(&self, collection: usize, slot: usize, found: Option<&Stored<Value>>) {
        match (&self.slots[collection][slot].known, found) {
            (None, None) => {}
            (Some(known), Some(found)) => known.check(found),
            (known, found) => panic!("{known:?} was written, {found:?} was read"),
        }
    }

    /// A unique index of the collection and values to look for, if it has one.
    pub fn unique_question(&mut self, collection: usize) -> Option<(String, Vec<Value>)> {
        let world = self.world.clone();
        let shape = &world.shapes[collection];
        let index = shape
            .indexes
            .iter()
            .find(|index| index.kind == Kind::Unique && self.random.percent(60))?;
        let slot = self.random.below(world.slots);
        let of_slot = self.slots[collection][slot].value().map(|record| index.entries(record));
        let values = match of_slot.and_then(|entries| entries.into_iter().next()) {
            Some(values) if self.random.percent(60) => values,
            _ => {
                let mut draw = self.draw();
                index
                    .segments
                    .iter()
                    .map(|segment| draw.value(&shape.name, &segment.path))
                    .collect()
            }
        };
        Some((index.name.clone(), values))
    }

    pub async fn get_by(&mut self, collection: usize) {
        let Some((index, values)) = self.unique_question(collection) else { return };
        let name = self.shape(collection).name.clone();
        self.note(|| format!("get {name} by {index} {values:?}"));
        let claim = (name, index.clone(), Value::Array(values.clone()).to_string());
        let (before, changes) = self.world.claims().holders(&claim);
        let answer = self.collections[collection].get_by(&index, values).await;
        let Some(found) = self.read(answer) else { return };
        let (_, changes_after) = self.world.claims().holders(&claim);
        match &found {
            Some(found) => {
                let held = self.claims_of(collection, Some(&found.value));
                assert!(held.contains(&claim), "{claim:?} led to {found:?}");
                if let Some(slot) = self.slot_of(collection, &found.key, &found.value) {
                    self.check_slot(collection, slot, Some(found));
                }
            }
            None => {
                // Nobody moved, so that a certain holder had the value all the time.
                let held = before.iter().any(|(_, certain)| *certain);
                assert!(!held || changes != changes_after, "{before:?} holds {claim:?}");
            }
        }
        let mine = before.iter().find(|(holder, _)| holder.0 == self.number);
        if let Some(((_, _, slot), _)) = mine {
            self.check_slot(collection, *slot, found.as_ref());
        }
    }

    pub async fn browse(&mut self, collection: usize) {
        let question = self.question(collection);
        let pages = *self.random.pick(&[1, 1, 2, 3, 100]);
        let name = self.shape(collection).name.clone();
        self.note(|| format!("browse {name} {question} pages={pages}"));
        let query = question.query(self.shape(collection));
        let mut walked: Vec<Vec<Stored<Value>>> = Vec::new();
        let mut last: Option<Page<Stored<Value>>> = None;
        while walked.len() < pages {
            let asked = match &last {
                None => query.clone(),
                Some(Page { next: Some(next), .. }) => query.clone().from_cursor(next),
                Some(_) => break,
            };
            let Some(page) = self.page(collection, &asked).await else { return };
            assert!(page.records.len() <= question.take);
            walked.push(page.records.clone());
            last = Some(page);
        }
        let Some(last) = last else { return };
        let records: Vec<&Stored<Value>> = walked.iter().flatten().collect();
        self.check_answer(collection, &question, &records, last.next.is_none());
        if self.random.percent(30) {
            self.browse_back(collection, &query, &walked, last).await;
        }
    }

    /// The way back from the last page shows what the way there showed.
    async fn browse_back(
        &self,
        collection: usize,
        query: &Query,
        walked: &[Vec<Stored<Value>>],
        mut at: Page<Stored<Value>>,
    ) {
        let mut shown: Vec<Stored<Value>> = Vec::new();
        for _ in 0..walked.len() + 3 {
            let Some(previous) = &at.previous else { break };
            let asked = query.clone().from_cursor(previous);
            let Some(page) = self.page(collection, &asked).await else { return };
            shown.splice(..0, page.records.iter().cloned());
            at = page;
        }
        let keys = |records: &mut dyn Iterator<Item = &Stored<Value>>| -> Vec<String> {
            let mine = records
                .filter(|record| self.slot_of(collection, &record.key, &record.value).is_some());
            mine.map(|record| record.key.to_string()).collect()
        };
        let there = keys(&mut walked[..walked.len() - 1].iter().flatten());
        let back = keys(&mut shown.iter());
        match at.previous {
            None => assert_eq!(back, there, "the way back differs from the way there"),
            Some(_) => assert!(there.ends_with(&back), "the way back differs: {back:?} {there:?}"),
        }
    }

    async fn page(&self, collection: usize, query: &Query) -> Option<Page<Stored<Value>>> {
        let page = self.read(self.collections[collection].page(query).await)?;
        assert!(page.problems.is_empty(), "{:?}", page.problems);
        Some(page)
    }

    pub fn question(&mut self, collection: usize) -> Question {
        let (world, later) = (self.world.clone(), self.asks_later(collection));
        Question::random(&world.shapes[collection], &mut self.draw(), later)
    }

    /// This client's part of the answer: place and record.
    fn expected(&self, collection: usize, question: &Question) -> Vec<(Place, &Known)> {
        let shape = self.shape(collection);
        let known = self.slots[collection].iter().filter_map(|slot| slot.known.as_ref());
        let mut all: Vec<(Place, &Known)> = known
            .flat_map(|known| {
                let places = question.places(shape, &known.value).into_iter();
                places.map(move |place| (place, known))
            })
            .collect();
        all.sort_by(|(a, _), (b, _)| question.order(shape, a, b));
        all
    }

    /// Holds an answer, or the beginning of one, against what is known.
    fn check_answer(
        &self,
        collection: usize,
        question: &Question,
        records: &[&Stored<Value>],
        complete: bool,
    ) {
        let shape = self.shape(collection);
        let mut missing = self.expected(collection, question);
        let mut last: Option<Place> = None;
        for record in records {
            // With several entries a record comes several times; the earliest that fits is it.
            let mut places = question.places(shape, &record.value);
            places.sort_by(|a, b| question.order(shape, a, b));
            let fits = |place: &&Place| {
                last.as_ref().is_none_or(|last| question.order(shape, last, place).is_le())
            };
            let mine = self.slot_of(collection, &record.key, &record.value);
            let place = match mine {
                None => places.iter().find(fits).cloned(),
                Some(_) => {
                    let at = missing
                        .iter()
                        .position(|(place, known)| record.key == known.key && fits(&place));
                    at.map(|at| {
                        let (place, known) = missing.remove(at);
                        known.check(record);
                        place
                    })
                }
            };
            last = Some(
                place.unwrap_or_else(|| panic!("{record:?} does not belong here, after {last:?}")),
            );
        }
        let left_out = missing.iter().find(|(place, _)| {
            complete || last.as_ref().is_some_and(|last| question.order(shape, place, last).is_lt())
        });
        assert!(left_out.is_none(), "the answer lacks {left_out:?}");
    }

    /// Compares every record of this client, by its key and by every index.
    pub async fn check_all(&self) {
        for collection in 0..self.world.shapes.len() {
            for (slot, expected) in self.slots[collection].iter().enumerate() {
                assert_eq!(self.settled(collection, slot).await, expected.known);
                if self.shape(collection).name == "note" {
                    self.check_history(collection, slot).await;
                }
            }
            let shape = self.shape(collection);
            let indexes = shape
                .indexes
                .iter()
                .filter(|index| index.kind != Kind::Geo && (self.later || index.name != LATER));
            for index in indexes.map(|index| Some(index.name.clone())).chain([None]) {
                let question = Question::everything(index);
                let query = question.query(shape);
                let page = retried(|| self.collections[collection].page(&query)).await;
                assert!(page.problems.is_empty(), "{:?}", page.problems);
                let records: Vec<&Stored<Value>> = page.records.iter().collect();
                self.check_answer(collection, &question, &records, true);
            }
        }
    }

    /// The history has every state that the record was in, and its versions tell its life.
    async fn check_history(&self, collection: usize, slot: usize) {
        let values = self.key_values(collection, slot);
        let notes = &self.collections[collection];
        let page = retried(|| notes.history(values.clone(), 10_000, None)).await;
        assert_eq!(page.problems, []);
        let states: Vec<Known> = page
            .records
            .iter()
            .rev()
            .filter_map(|entry| {
                let (key, value) = (entry.key.clone(), entry.record.clone()?);
                Some(Known { key, version: entry.version, value })
            })
            .collect();
        assert_eq!(states, self.slots[collection][slot].past, "another past");
        for pair in page.records.windows(2) {
            let follows = pair[0].version.revision() == pair[1].version.revision() + 1;
            let begins = pair[0].version.revision() == 1 && pair[1].kind.is_end();
            assert!(follows || begins, "{pair:?}");
        }
    }

    pub async fn count(&mut self, collection: usize) {
        let question = self.question(collection).unfiltered();
        let name = self.shape(collection).name.clone();
        self.note(|| format!("count {name} {question}"));
        // Where nothing is asked, all of them are counted.
        let query = question.query(self.shape(collection)).scan();
        let answer = self.collections[collection].count(&query).await;
        let Some(counted) = self.read(answer) else { return };
        let expected = self.expected(collection, &question).len();
        match self.world.clients == 1 || question.is_own() {
            true => assert_eq!(counted, expected),
            false => assert!(counted >= expected, "{counted} counted, {expected} are mine"),
        }
    }

    pub async fn keys(&mut self, collection: usize) {
        let question = self.question(collection).unfiltered();
        let name = self.shape(collection).name.clone();
        self.note(|| format!("keys {name} {question}"));
        let query = question.query(self.shape(collection));
        let answer = self.collections[collection].keys(&query).await;
        let Some(page) = self.read(answer) else { return };
        assert!(page.problems.is_empty() && page.next.is_none(), "{page:?}");
        let mut wanted: Vec<&str> = self
            .expected(collection, &question)
            .iter()
            .map(|(_, known)| known.key.as_str())
            .collect();
        let mut found: Vec<&str> = page.records.iter().map(Key::as_str).collect();
        if self.world.clients > 1 && !question.is_own() {
            found.retain(|key| wanted.contains(key));
        }
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted);
    }
}
