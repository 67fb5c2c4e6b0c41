//! How the schema in the store becomes the one that a process declares.
//!
//! The schema in the store is obeyed by every process, and a process may be older than the store.
//! So what a process does not declare stays, what it adds is added, and what contradicts the
//! layout of stored keys is refused. One walk gives both the list of changes and the schema that
//! results from them, so that the two cannot disagree.

use std::collections::BTreeMap;
use std::fmt;

use super::declaration::{
    Access, AggregateDeclaration, CollectionDeclaration, CounterDeclaration, FieldDeclaration,
    FieldType, HistoryDeclaration, IndexDeclaration, LogDeclaration, SchemaDeclaration,
};
use super::model::{Collection, Index, Schema};
use super::problem::ShowTrail;
use crate::key::{Codec, Template, TemplatePart};

/// What a change asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// In the store only. It stays, and is maintained.
    Kept,
    /// Takes effect at once, whatever the store holds.
    Safe,
    /// A new index. It is ready at once if the collection is empty; otherwise it must be built.
    NeedsBuild,
    /// Stored keys or values would no longer mean what they say.
    Incompatible,
}

/// One difference between two schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub(crate) subject: Subject,
    /// What the change asks for.
    pub class: Class,
    /// What differs, and what to do about it if that is not obvious.
    pub sentence: String,
}

/// What a change is about. Shown as its path in a schema file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Collection { collection: String },
    Key { collection: String },
    Area { collection: String },
    Access { collection: String },
    Body { collection: String },
    ExpiresAt { collection: String },
    History { collection: String },
    Field { collection: String, field: String },
    Counter { collection: String, counter: String },
    Index { collection: String, section: &'static str, index: String },
    Log,
    Idempotency,
}

/// What becomes of a stored schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evolution {
    pub(crate) changes: Vec<Change>,
    /// The stored schema with every change that is not incompatible. It is sound only if it
    /// compiles: what is new may clash with what was kept.
    pub(crate) merged: SchemaDeclaration,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.sentence)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = match self {
            Subject::Idempotency => return f.write_str("idempotency"),
            Subject::Collection { collection } => vec![collection],
            Subject::Key { collection } => vec![collection, "key"],
            Subject::Area { collection } => vec![collection, "area"],
            Subject::Access { collection } => vec![collection, "access"],
            Subject::Body { collection } => vec![collection, "body"],
            Subject::ExpiresAt { collection } => vec![collection, "expires_at"],
            Subject::History { collection } => vec![collection, "history"],
            Subject::Field { collection, field } => vec![collection, "fields", field],
            Subject::Counter { collection, counter } => vec![collection, "counters", counter],
            Subject::Index { collection, section, index } => vec![collection, section, index],
            Subject::Log => return f.write_str("log"),
        };
        let trail: Vec<String> =
            std::iter::once("collection").chain(names).map(str::to_owned).collect();
        ShowTrail(&trail).fmt(f)
    }
}

/// Compares the schema in the store with the one that a process declares.
pub(crate) fn evolve(stored: &Schema, declared: &Schema) -> Evolution {
    let mut changes = Vec::new();
    let mut merged = stored.declaration();
    for (name, collection) in &declared.collections {
        match stored.collections.get(name) {
            None => {
                changes.push(Change {
                    subject: Subject::Collection { collection: name.clone() },
                    class: Class::Safe,
                    sentence: "is new".to_owned(),
                });
                merged.collections.insert(name.clone(), (*collection.declaration).clone());
            }
            Some(stored) => {
                let mut walk = Walk { stored, declared: collection, changes: &mut changes };
                merged.collections.insert(name.clone(), walk.collection());
            }
        }
    }
    if stored.idempotency != declared.idempotency {
        let (class, sentence) = match &declared.idempotency {
            None => (Class::Kept, "is in the store only; it stays".to_owned()),
            Some(idempotency) => (Class::Safe, format!("`keep` is now {}", idempotency.keep)),
        };
        changes.push(Change { subject: Subject::Idempotency, class, sentence });
        merged.idempotency = declared.idempotency.clone().or(merged.idempotency);
    }
    for name in stored.collections.keys().filter(|name| !declared.collections.contains_key(*name)) {
        changes.push(Change {
            subject: Subject::Collection { collection: name.clone() },
            class: Class::Kept,
            sentence: "is in the store only; it stays".to_owned(),
        });
    }
    merged.log = evolve_log(stored.log, declared.log, &mut changes);
    Evolution { changes, merged }
}

/// A log that one process declared is kept for all. How much of it is kept follows whoever
/// declared it last.
fn evolve_log(
    stored: Option<LogDeclaration>,
    declared: Option<LogDeclaration>,
    changes: &mut Vec<Change>,
) -> Option<LogDeclaration> {
    let (class, sentence) = match (stored, declared) {
        _ if stored == declared => return stored,
        (_, None) => (Class::Kept, "is in the store only; it stays"),
        (None, Some(_)) => (Class::Safe, "is new; it tells of changes from now on"),
        (Some(_), Some(_)) => (Class::Safe, "keeps another part of the changes"),
    };
    changes.push(Change { subject: Subject::Log, class, sentence: sentence.to_owned() });
    declared.or(stored)
}

/// A flag by its name, and what it means where nobody set it.
struct Flag {
    name: &'static str,
    unset: bool,
}

/// The comparison of one collection. Each method answers with the merged part.
struct Walk<'a> {
    stored: &'a Collection,
    declared: &'a Collection,
    changes: &'a mut Vec<Change>,
}

impl Walk<'_> {
    fn collection(&mut self) -> CollectionDeclaration {
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
                "the records are in area {:?}, not {:?}; moving them is a migration",
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
                "the records' keys are `{}`, not `{}`; moving them is a migration",
                self.stored.key.source, self.declared.key.source
            );
            let collection = self.name();
            self.add(Subject::Key { collection }, Class::Incompatible, sentence);
        }
    }

    /// Access may be narrowed at once. To show users' records to others, or to let others write
    /// them, is never the side effect of starting a program, and a program that declares nothing
    /// obeys what the store says.
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
                    "is {before} in the store, and {after} would allow users what they may not                      do now; that is a migration"
                ),
            ),
            _ => (Class::Safe, format!("is narrowed from {before} to {after}")),
        };
        let kept = if class == Class::Safe { declared } else { stored };
        let (collection, merged) = (self.name(), (kept.access, kept.owner.clone()));
        self.add(Subject::Access { collection }, class, sentence);
        merged
    }

    /// An older process must not forget that records expire, and the index over one field does not
    /// serve another.
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
                format!("the records expire by `{stored}`, not by `{declared}`"),
            ),
        };
        let collection = self.name();
        self.add(Subject::ExpiresAt { collection }, class, sentence);
        stored.or(declared)
    }

    /// The body is checked when a record is written and decides no key. Records that are there
    /// are not judged anew, so another body is safe.
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

    /// A history begins when it is declared. Another bound holds from the next write and the next
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

    fn fields(&mut self) -> BTreeMap<String, FieldDeclaration> {
        let mut merged = self.stored.declaration.fields.clone();
        for (name, declared) in &self.declared.declaration.fields {
            match self.stored.declaration.fields.get(name) {
                None => {
                    self.add_field(name, Class::Safe, "is new".to_owned());
                    merged.insert(name.clone(), declared.clone());
                }
                Some(stored) => {
                    merged.insert(name.clone(), self.field(name, stored, declared));
                }
            }
        }
        for name in self.stored.declaration.fields.keys() {
            if !self.declared.declaration.fields.contains_key(name) {
                self.add_field(name, Class::Kept, "is in the store only; it stays".to_owned());
            }
        }
        merged
    }

    fn field(
        &mut self,
        name: &str,
        stored: &FieldDeclaration,
        declared: &FieldDeclaration,
    ) -> FieldDeclaration {
        let required = Flag { name: "required", unset: false };
        let generate = Flag { name: "generate", unset: false };
        let subject = Subject::Field { collection: self.name(), field: name.to_owned() };
        FieldDeclaration {
            required: self.flag(&subject, required, stored.required, declared.required),
            generate: self.flag(&subject, generate, stored.generate, declared.generate),
            field_type: self.field_type(name, &stored.field_type, &declared.field_type),
        }
    }

    /// A flag after a declaration. One that merely leaves the flag out takes nothing away.
    fn flag(
        &mut self,
        subject: &Subject,
        Flag { name, unset }: Flag,
        stored: Option<bool>,
        declared: Option<bool>,
    ) -> Option<bool> {
        let now = stored.unwrap_or(unset);
        match declared {
            Some(wanted) if wanted != now => {
                self.add(subject.clone(), Class::Safe, format!("`{name}` is now {wanted}"));
                declared
            }
            None if now != unset => {
                let sentence = format!("`{name}` stays {now}, as in the store");
                self.add(subject.clone(), Class::Kept, sentence);
                stored
            }
            Some(_) | None => stored,
        }
    }

    fn field_type(&mut self, name: &str, stored: &FieldType, declared: &FieldType) -> FieldType {
        match (stored, declared) {
            _ if stored == declared => stored.clone(),
            (FieldType::Enum { .. }, FieldType::Enum { .. }) => {
                self.enumeration(name, stored, declared)
            }
            (FieldType::Uuid { version: Some(version) }, FieldType::Uuid { version: None }) => {
                let sentence = format!("UUIDs of every version are allowed, not of {version} only");
                self.add_field(name, Class::Safe, sentence);
                declared.clone()
            }
            (FieldType::Integer { digits }, FieldType::Integer { digits: declared_digits })
                // The larger range holds what both allow, if no key of either side moves by it.
                if (digits >= declared_digits || !is_in_keys(self.stored, name))
                    && (digits <= declared_digits || !is_in_keys(self.declared, name)) =>
            {
                let digits = *digits.max(declared_digits);
                let class = if digits == *declared_digits { Class::Safe } else { Class::Kept };
                self.add_field(name, class, format!("an integer has up to {digits} digits"));
                FieldType::Integer { digits }
            }
            _ => {
                let sentence = format!(
                    "is {} in the store, not {}; declare it under another name, or migrate",
                    describe(stored),
                    describe(declared)
                );
                self.add_field(name, Class::Incompatible, sentence);
                stored.clone()
            }
        }
    }

    /// Values that only one side knows are all kept: an older process must not forbid what a
    /// newer one allowed. An enum stands in keys by its name, so new values move no key.
    fn enumeration(&mut self, name: &str, stored: &FieldType, declared: &FieldType) -> FieldType {
        let (
            FieldType::Enum { values, transitions, illegal },
            FieldType::Enum {
                values: declared_values,
                transitions: declared_transitions,
                illegal: declared_illegal,
            },
        ) = (stored, declared)
        else {
            return stored.clone();
        };
        let mut values = values.clone();
        for value in declared_values.iter().filter(|value| !values.contains(value)) {
            self.add_field(name, Class::Safe, format!("the value `{value}` is new"));
        }
        for value in values.iter().filter(|value| !declared_values.contains(value)) {
            let sentence = format!("the value `{value}` is in the store only; it stays");
            self.add_field(name, Class::Kept, sentence);
        }
        let new: Vec<String> =
            declared_values.iter().filter(|value| !values.contains(value)).cloned().collect();
        values.extend(new);
        let (transitions, illegal) = match declared_transitions {
            Some(_) if declared_transitions != transitions || declared_illegal != illegal => {
                self.add_field(name, Class::Safe, "the transitions changed".to_owned());
                (declared_transitions.clone(), *declared_illegal)
            }
            None if transitions.is_some() => {
                let sentence = "the transitions are in the store only; they stay";
                self.add_field(name, Class::Kept, sentence.to_owned());
                (transitions.clone(), *illegal)
            }
            _ => (transitions.clone(), *illegal),
        };
        FieldType::Enum { values, transitions, illegal }
    }

    fn indexes(
        &mut self,
        section: &'static str,
        stored: &BTreeMap<String, IndexDeclaration>,
        declared: &BTreeMap<String, IndexDeclaration>,
    ) -> BTreeMap<String, IndexDeclaration> {
        let mut merged = stored.clone();
        for (name, declaration) in declared {
            if let Some(stored) = stored.get(name) {
                merged.insert(name.clone(), self.index(section, name, stored, declaration));
            } else if let Some(other) = self.stored.indexes.get(name) {
                let sentence = format!(
                    "the store has an index of that name and of kind {:?}; \
                     choose another name, or drop that index first",
                    other.kind
                );
                self.add_index(section, name, Class::Incompatible, sentence);
            } else if self.stored.aggregates.contains_key(name) {
                let sentence = "the store has an aggregate of that name; choose another";
                self.add_index(section, name, Class::Incompatible, sentence.to_owned());
            } else {
                let sentence = "is new; it must be built before it is read".to_owned();
                self.add_index(section, name, Class::NeedsBuild, sentence);
                merged.insert(name.clone(), declaration.clone());
            }
        }
        for name in stored.keys().filter(|name| !self.declared.indexes.contains_key(*name)) {
            let sentence = "is in the store only; it stays and is maintained".to_owned();
            self.add_index(section, name, Class::Kept, sentence);
        }
        merged
    }

    fn aggregates(
        &mut self,
        section: &'static str,
        stored: &BTreeMap<String, AggregateDeclaration>,
        declared: &BTreeMap<String, AggregateDeclaration>,
    ) -> BTreeMap<String, AggregateDeclaration> {
        let mut merged = stored.clone();
        for (name, declaration) in declared {
            match stored.get(name) {
                Some(stored) if stored == declaration => {}
                Some(_) => {
                    let sentence = "differs from the one in the store; \
                                    add the new form under another name, then drop this one";
                    self.add_index(section, name, Class::Incompatible, sentence.to_owned());
                }
                None if self.stored.check_kept(name).is_ok() => {
                    let sentence = "the store has something else of that name; \
                                    choose another, or drop that first";
                    self.add_index(section, name, Class::Incompatible, sentence.to_owned());
                }
                None => {
                    let sentence = "is new; it must be built before it is read".to_owned();
                    self.add_index(section, name, Class::NeedsBuild, sentence);
                    merged.insert(name.clone(), declaration.clone());
                }
            }
        }
        for name in stored.keys().filter(|name| !self.declared.aggregates.contains_key(*name)) {
            let sentence = "is in the store only; it stays and is maintained".to_owned();
            self.add_index(section, name, Class::Kept, sentence);
        }
        merged
    }

    fn index(
        &mut self,
        section: &'static str,
        name: &str,
        stored: &IndexDeclaration,
        declared: &IndexDeclaration,
    ) -> IndexDeclaration {
        let (Some(stored_index), Some(declared_index)) =
            (self.stored.indexes.get(name), self.declared.indexes.get(name))
        else {
            return stored.clone();
        };
        let differences = layout_differences(stored, stored_index, declared, declared_index);
        if !differences.is_empty() {
            let sentence = format!(
                "{} differs from the index in the store; \
                 add the new form under another name, then drop this one",
                differences.join(" and ")
            );
            self.add_index(section, name, Class::Incompatible, sentence);
        }
        let subject = Subject::Index { collection: self.name(), section, index: name.to_owned() };
        let sparse = Flag { name: "sparse", unset: true };
        let sparse = self.flag(&subject, sparse, stored.sparse, declared.sparse);
        let claims = Flag { name: "claims", unset: false };
        let claims = self.flag(&subject, claims, stored.claims, declared.claims);
        // Lowering it would leave records that can no longer be written.
        let max = match declared_index.max.cmp(&stored_index.max) {
            std::cmp::Ordering::Equal => stored.max,
            std::cmp::Ordering::Greater => {
                let sentence =
                    format!("`max` rises from {} to {}", stored_index.max, declared_index.max);
                self.add_index(section, name, Class::Safe, sentence);
                declared.max
            }
            std::cmp::Ordering::Less => {
                let sentence = format!("`max` stays {}, as in the store", stored_index.max);
                self.add_index(section, name, Class::Kept, sentence);
                stored.max
            }
        };
        IndexDeclaration { max, claims, sparse, ..stored.clone() }
    }

    /// Counters are beside the records, so that one more is safe, and so are other bounds: they
    /// hold from the next increment on.
    fn counters(&mut self) -> BTreeMap<String, CounterDeclaration> {
        let mut merged = self.stored.declaration.counters.clone();
        for (name, declared) in &self.declared.declaration.counters {
            let sentence = match merged.insert(name.clone(), *declared) {
                None => "is new; it shows in place of what records may hold there",
                Some(stored) if stored == *declared => continue,
                Some(_) => "has other bounds, from the next increment on",
            };
            self.add_counter(name, Class::Safe, sentence);
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

    fn name(&self) -> String {
        self.stored.name.clone()
    }

    fn add_field(&mut self, field: &str, class: Class, sentence: String) {
        let subject = Subject::Field { collection: self.name(), field: field.to_owned() };
        self.add(subject, class, sentence);
    }

    fn add_index(&mut self, section: &'static str, index: &str, class: Class, sentence: String) {
        let subject = Subject::Index { collection: self.name(), section, index: index.to_owned() };
        self.add(subject, class, sentence);
    }

    fn add(&mut self, subject: Subject, class: Class, sentence: String) {
        self.changes.push(Change { subject, class, sentence });
    }
}

/// Whether a template of the collection has a segment for the field.
fn is_in_keys(collection: &Collection, field: &str) -> bool {
    let indexes = collection.indexes.values().map(|index| &index.key);
    let groups = collection.aggregates.values().map(|aggregate| &aggregate.template);
    let templates = indexes.chain(groups).chain([&collection.key]);
    templates.flat_map(Template::segments).any(|segment| segment.path.to_string() == field)
}

/// Which parts of an index decide its entries and differ.
fn layout_differences(
    stored: &IndexDeclaration,
    stored_index: &Index,
    declared: &IndexDeclaration,
    declared_index: &Index,
) -> Vec<&'static str> {
    let mut differences = Vec::new();
    if !same_layout(&stored_index.key, &declared_index.key) {
        differences.push("`key`");
    }
    if stored_index.area != declared_index.area {
        differences.push("`area`");
    }
    if stored_index.holds != declared_index.holds {
        differences.push("`holds`");
    }
    if stored.condition != declared.condition {
        differences.push("`where`");
    }
    differences
}

/// Whether two templates make the same keys, or differ only in the type of a field, which is told
/// as a change of that field.
fn same_layout(stored: &Template, declared: &Template) -> bool {
    stored.parts.len() == declared.parts.len()
        && stored.parts.iter().zip(&declared.parts).all(|pair| match pair {
            (TemplatePart::Literal(stored), TemplatePart::Literal(declared)) => stored == declared,
            (TemplatePart::Segment(stored), TemplatePart::Segment(declared)) => {
                stored.path == declared.path
                    && stored.desc == declared.desc
                    && same_form(&stored.codec, &declared.codec)
            }
            _ => false,
        })
}

/// Whether the placeholder asks for the same form of its field. The type of the field is not
/// looked at.
fn same_form(stored: &Codec, declared: &Codec) -> bool {
    let form = |codec: &Codec| match codec {
        Codec::SortedText => (1, 0),
        Codec::Raw => (2, 0),
        Codec::Geohash { chars, .. } => (3, *chars),
        _ => (0, 0),
    };
    form(stored) == form(declared)
}

fn describe(field_type: &FieldType) -> String {
    serde_json::to_string(field_type).unwrap_or_else(|_| format!("{field_type:?}"))
}
