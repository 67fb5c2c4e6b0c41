//! Compares indexes and aggregates.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::collection::Walk;
use super::fields::Flag;
use super::{Class, Subject};
use crate::key::{Codec, Template, TemplatePart};
use crate::schema::declaration::{AggregateDeclaration, IndexDeclaration};
use crate::schema::model::{Index, IndexKind};

/// The advice for an index or aggregate whose form differs. Applying a schema never drops anything.
const INSTEAD: &str = "declare the new form under another name, and build it; the one in the store \
                       stays, and `Store::disable` ends its upkeep";

/// The kind of an index, in words.
fn kind_name(kind: IndexKind) -> &'static str {
    match kind {
        IndexKind::Value => "an index",
        IndexKind::Unique => "a unique index",
        IndexKind::Geo => "a geo index",
    }
}

impl Walk<'_> {
    pub(super) fn indexes(
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
                    "the store has {} of that name, which stays; choose another name",
                    kind_name(other.kind)
                );
                self.add_index(section, name, Class::Incompatible, sentence);
            } else if self.stored.aggregates.contains_key(name) {
                let sentence = "the store has a count or a sum of that name, which stays; choose \
                                another name";
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

    pub(super) fn aggregates(
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
                    let sentence = format!("differs from the one in the store; {INSTEAD}");
                    self.add_index(section, name, Class::Incompatible, sentence);
                }
                None if self.stored.check_kept(name).is_ok() => {
                    let sentence = "the store has something else of that name, which stays; \
                                    choose another name";
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
                "{} differs from the index in the store; {INSTEAD}",
                differences.join(" and ")
            );
            self.add_index(section, name, Class::Incompatible, sentence);
        }
        let subject = Subject::Index { collection: self.name(), section, index: name.to_owned() };
        let sparse = Flag { name: "sparse", unset: true };
        let sparse = self.flag(&subject, sparse, stored.sparse, declared.sparse);
        let claims = Flag { name: "claims", unset: false };
        let claims = self.flag(&subject, claims, stored.claims, declared.claims);
        // A declaration without `max` asks for nothing.
        let max = match (declared_index.max.cmp(&stored_index.max), declared.max) {
            (Ordering::Equal, _) => stored.max,
            (_, None) => {
                let sentence = format!("`max` stays {}, as in the store", stored_index.max);
                self.add_index(section, name, Class::Kept, sentence);
                stored.max
            }
            (order, Some(max)) => {
                let before = stored_index.max;
                let sentence = match order {
                    Ordering::Less => format!(
                        "`max` falls from {before} to {max}; a record that has more entries keeps \
                         them until its elements change"
                    ),
                    _ => format!("`max` rises from {before} to {max}"),
                };
                self.add_index(section, name, Class::Safe, sentence);
                declared.max
            }
        };
        IndexDeclaration { max, claims, sparse, ..stored.clone() }
    }
}

/// The parts that decide an index's entries and that differ.
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

/// Whether two templates make the same keys. They may differ in the type of a field, which is
/// reported as a change of that field.
pub(super) fn same_layout(stored: &Template, declared: &Template) -> bool {
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

/// Whether two placeholders ask for the same form of a field, whatever the field's type is.
fn same_form(stored: &Codec, declared: &Codec) -> bool {
    let form = |codec: &Codec| match codec {
        Codec::SortedText => (1, 0),
        Codec::Raw => (2, 0),
        Codec::Geohash { chars, .. } => (3, *chars),
        _ => (0, 0),
    };
    form(stored) == form(declared)
}
