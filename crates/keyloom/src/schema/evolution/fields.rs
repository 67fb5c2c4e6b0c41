//! Compares fields.

use std::collections::BTreeMap;

use super::collection::Walk;
use super::{Class, Subject};
use crate::key::Template;
use crate::schema::declaration::{FieldDeclaration, FieldType};
use crate::schema::model::Collection;

/// For each value of an enum, the values that it may change to.
type Transitions = BTreeMap<String, Vec<String>>;

/// A flag with its name and its default.
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) unset: bool,
}

impl Walk<'_> {
    pub(super) fn fields(&mut self) -> BTreeMap<String, FieldDeclaration> {
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

    /// A flag after a declaration. A declaration without the flag leaves it as it is.
    pub(super) fn flag(
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
            // As with flags: a declaration without a version leaves it as it is.
            (FieldType::Uuid { version: Some(version) }, FieldType::Uuid { version: None }) => {
                let sentence = format!("`version` stays {version}, as in the store");
                self.add_field(name, Class::Kept, sentence);
                stored.clone()
            }
            (FieldType::Integer { digits }, FieldType::Integer { digits: declared }) => {
                FieldType::Integer { digits: self.digits(name, *digits, *declared) }
            }
            _ => {
                let sentence = format!(
                    "is {} in the store, not {}; keep its type, or declare a field of another \
                     name and copy the values into that",
                    describe(stored),
                    describe(declared)
                );
                self.add_field(name, Class::Incompatible, sentence);
                stored.clone()
            }
        }
    }

    /// The digits of an integer after a declaration. A key has room for exactly that many digits,
    /// so they cannot change while a stored key has the field. Otherwise they only limit which
    /// records may be written from now on.
    fn digits(&mut self, name: &str, stored: u8, declared: u8) -> u8 {
        if let Some(user) = first_key_with(self.stored, name) {
            let sentence = format!(
                "has up to {stored} digits in the store, and the keys of {user} are made for that; \
                 declare `digits = {stored}`, or a field of another name"
            );
            self.add_field(name, Class::Incompatible, sentence);
            return stored;
        }
        let sentence = match declared < stored {
            true => format!(
                "has up to {declared} digits from now on, and not {stored}; a larger number that is \
                 there stays until it is changed"
            ),
            false => format!("has up to {declared} digits from now on, and not {stored}"),
        };
        self.add_field(name, Class::Safe, sentence);
        declared
    }

    /// Keeps all values that either side knows: an older process must not forbid what a newer one
    /// allowed. Keys have an enum's value by its name, so new values move no key.
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
            Some(wanted) => {
                let merged = transitions_after(transitions.as_ref(), wanted, declared_values);
                if Some(&merged) != transitions.as_ref() || declared_illegal != illegal {
                    self.add_field(name, Class::Safe, "the transitions changed".to_owned());
                }
                (Some(merged), *declared_illegal)
            }
            None if transitions.is_some() => {
                let sentence = "the transitions are in the store only; they stay";
                self.add_field(name, Class::Kept, sentence.to_owned());
                (transitions.clone(), *illegal)
            }
            None => (None, *illegal),
        };
        FieldType::Enum { values, transitions, illegal }
    }
}

/// The allowed changes after a declaration. A process that does not know a value cannot mean to
/// forbid changes to or from it.
fn transitions_after(
    stored: Option<&Transitions>,
    declared: &Transitions,
    known: &[String],
) -> Transitions {
    let mut merged = declared.clone();
    for (from, allowed) in stored.into_iter().flatten() {
        let wanted = declared.get(from).map_or(&[][..], Vec::as_slice);
        let is_unknown = |to: &String| !known.contains(from) || !known.contains(to);
        // Keeps the stored order, so that two processes do not keep changing it back and forth.
        let kept = allowed.iter().filter(|to| wanted.contains(to) || is_unknown(to));
        let new = wanted.iter().filter(|to| !allowed.contains(to));
        let all: Vec<String> = kept.chain(new).cloned().collect();
        if !all.is_empty() {
            merged.insert(from.clone(), all);
        }
    }
    merged
}

/// The first key with this field, in words: that of an index, an aggregate or the records.
fn first_key_with(collection: &Collection, field: &str) -> Option<String> {
    let has =
        |template: &Template| template.segments().any(|segment| segment.path.to_string() == field);
    if has(&collection.key) {
        return Some("the records".to_owned());
    }
    let indexes = collection.indexes.values().map(|index| (&index.name, &index.key));
    let groups =
        collection.aggregates.values().map(|aggregate| (&aggregate.name, &aggregate.template));
    let mut users = indexes.chain(groups);
    users.find(|(_, template)| has(template)).map(|(name, _)| format!("`{name}`"))
}

fn describe(field_type: &FieldType) -> String {
    serde_json::to_string(field_type).unwrap_or_else(|_| format!("{field_type:?}"))
}
