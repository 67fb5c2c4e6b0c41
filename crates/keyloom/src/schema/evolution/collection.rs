//! Compares one collection with its stored form.

use std::collections::BTreeMap;

use super::indexes::same_layout;
use super::{Change, Class, Subject};
use crate::schema::declaration::{
    Access, CollectionDeclaration, CounterDeclaration, HistoryDeclaration,
};
use crate::schema::model::Collection;

/// The advice for changes that would move records or show them to others.
const COPY: &str = "declare a collection of another name, and copy the records into it";

/// Compares one collection. Each method returns its part of the merged declaration.
pub(super) struct Walk<'a> {
    pub(super) stored: &'a Collection,
    pub(super) declared: &'a Collection,
    pub(super) changes: &'a mut Vec<Change>,
}

impl Walk<'_> {
    pub(super) fn collection(&mut self) -> CollectionDeclaration {
        let stored = &self.stored.declaration;
        let declared = &self.declared.declaration;
        self.area();
        let (access, owner) = self.access();
        let fields = self.fields();
        self.key();
        CollectionDeclaration {
            key: stored.key.clone(),
            area: stored.area.clone(),
            access,
            owner,
            expires_at: self.expires_at(),
            fields,
            index: self.indexes("index", &stored.index, &declared.index),
            unique: self.indexes("unique", &stored.unique, &declared.unique),
            geo: self.indexes("geo", &stored.geo, &declared.geo),
            count: self.aggregates("count", &stored.count, &declared.count),
            sum: self.aggregates("sum", &stored.sum, &declared.sum),
            counters: self.counters(),
            body: self.body(),
            history: self.history(),
        }
    }

    fn area(&mut self) {
        let (stored, declared) = (&self.stored.area, &self.declared.area);
        if stored != declared {
            let sentence = format!(
                "the records are in area {:?}, not {:?}; {COPY}",
                stored.name(),
                declared.name()
            );
            let collection = self.name();
            self.add(Subject::Area { collection }, Class::Incompatible, sentence);
        }
    }

    fn key(&mut self) {
        if !same_layout(&self.stored.key, &self.declared.key) {
            let sentence = format!(
                "the records' keys are `{}`, not `{}`; {COPY}",
                self.stored.key.source, self.declared.key.source
            );
            let collection = self.name();
            self.add(Subject::Key { collection }, Class::Incompatible, sentence);
        }
    }

    /// Access may be narrowed at once. But starting a program must never, as a side effect, show
    /// users' records to others or let others write them. A program that declares no access follows
    /// the stored one.
    fn access(&mut self) -> (Option<Access>, Option<String>) {
        let (stored, declared) = (&self.stored.declaration, &self.declared.declaration);
        let (before, after) = (self.stored.access, self.declared.access);
        let (class, sentence) = match (stored.access, declared.access) {
            (before, after) if before == after => {
                return (stored.access, stored.owner.clone());
            }
            (_, None) => (Class::Kept, "is in the store only; it stays".to_owned()),
            _ if before == after => (Class::Safe, format!("is now declared as {after}")),
            _ if after.grants_more_than(before) => (
                Class::Incompatible,
                format!(
                    "is {before} in the store, and {after} would allow users what they may not \
                     do now; keep `access = \"{before}\"`, or {COPY}"
                ),
            ),
            _ => (Class::Safe, format!("is narrowed from {before} to {after}")),
        };
        let kept = if class == Class::Safe { declared } else { stored };
        let (collection, merged) = (self.name(), (kept.access, kept.owner.clone()));
        self.add(Subject::Access { collection }, class, sentence);
        merged
    }

    /// An older process must not forget that records expire. And an index over one field cannot
    /// serve as the index over another.
    fn expires_at(&mut self) -> Option<String> {
        let stored = self.stored.declaration.expires_at.clone();
        let declared = self.declared.declaration.expires_at.clone();
        let (class, sentence) = match (&stored, &declared) {
            _ if stored == declared => return stored,
            (_, None) => (Class::Kept, "is in the store only; it stays".to_owned()),
            (None, Some(_)) => (
                Class::NeedsBuild,
                "is new; its index must be built before records are swept".into(),
            ),
            (Some(stored), Some(declared)) => (
                Class::Incompatible,
                format!(
                    "the records expire by `{stored}`, not by `{declared}`; keep `{stored}`, or \
                     {COPY}"
                ),
            ),
        };
        let collection = self.name();
        self.add(Subject::ExpiresAt { collection }, class, sentence);
        stored.or(declared)
    }

    /// The body schema is checked when a record is written, and decides no key. Existing records
    /// are not checked again, so a different body schema is safe.
    fn body(&mut self) -> Option<serde_json::Value> {
        let stored = self.stored.declaration.body.clone();
        let declared = self.declared.declaration.body.clone();
        let (class, sentence) = match (&stored, &declared) {
            _ if stored == declared => return stored,
            (_, None) => (Class::Kept, "is in the store only; it stays"),
            (None, Some(_)) => (Class::Safe, "is new; records are checked when they are written"),
            (Some(_), Some(_)) => {
                (Class::Safe, "changed; records are checked when they are written")
            }
        };
        let collection = self.name();
        self.add(Subject::Body { collection }, class, sentence.to_owned());
        declared.or(stored)
    }

    /// A history begins when it is declared. Changed bounds apply from the next write and the next
    /// sweep on.
    fn history(&mut self) -> Option<HistoryDeclaration> {
        let stored = self.stored.declaration.history;
        let declared = self.declared.declaration.history;
        let (class, sentence) = match (stored, declared) {
            _ if stored == declared => return stored,
            (_, None) => (Class::Kept, "is in the store only; it stays"),
            (None, Some(_)) => (Class::Safe, "is new; what changes from now on is kept"),
            (Some(_), Some(_)) => (Class::Safe, "changed; it holds from now on"),
        };
        let collection = self.name();
        self.add(Subject::History { collection }, class, sentence.to_owned());
        declared.or(stored)
    }

    /// Counters lie beside the records, so an additional counter is safe. So are other bounds,
    /// which apply from the next increment on. A bound that the declaration leaves out stays.
    fn counters(&mut self) -> BTreeMap<String, CounterDeclaration> {
        let mut merged = self.stored.declaration.counters.clone();
        for (name, declared) in &self.declared.declaration.counters {
            let Some(stored) = merged.get_mut(name) else {
                merged.insert(name.clone(), *declared);
                let sentence = "is new; it shows in place of what records may hold there";
                self.add_counter(name, Class::Safe, sentence);
                continue;
            };
            let bounds = CounterDeclaration {
                min: declared.min.or(stored.min),
                max: declared.max.or(stored.max),
            };
            if bounds != *stored {
                let sentence = "has other bounds, from the next increment on";
                self.add_counter(name, Class::Safe, sentence);
            }
            if bounds != *declared {
                let sentence = "keeps the bounds of the store that are not declared";
                self.add_counter(name, Class::Kept, sentence);
            }
            *stored = bounds;
        }
        for name in self.stored.declaration.counters.keys() {
            if !self.declared.declaration.counters.contains_key(name) {
                self.add_counter(name, Class::Kept, "is in the store only; it stays");
            }
        }
        merged
    }

    fn add_counter(&mut self, counter: &str, class: Class, sentence: &str) {
        let subject = Subject::Counter { collection: self.name(), counter: counter.to_owned() };
        self.add(subject, class, sentence.to_owned());
    }

    pub(super) fn name(&self) -> String {
        self.stored.name.clone()
    }

    pub(super) fn add_field(&mut self, field: &str, class: Class, sentence: String) {
        let subject = Subject::Field { collection: self.name(), field: field.to_owned() };
        self.add(subject, class, sentence);
    }

    pub(super) fn add_index(
        &mut self,
        section: &'static str,
        index: &str,
        class: Class,
        sentence: String,
    ) {
        let subject = Subject::Index { collection: self.name(), section, index: index.to_owned() };
        self.add(subject, class, sentence);
    }

    pub(super) fn add(&mut self, subject: Subject, class: Class, sentence: String) {
        self.changes.push(Change { subject, class, sentence });
    }
}
