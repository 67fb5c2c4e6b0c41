//! Finds the template that a key of the store belongs to.

use std::sync::Arc;

use bytes::Bytes;

use super::model::{Collection, Index, Schema};
use crate::engine::{Area, Range};
use crate::error::Result;
use crate::key::Template;

/// Every template of a schema, with the range of its keys.
pub(crate) struct Keyspace {
    templates: Vec<TemplateRange>,
}

struct TemplateRange {
    range: Range,
    collection: Arc<Collection>,
    /// `None` for the template of the records themselves.
    index: Option<Arc<Index>>,
}

/// What a key belongs to under a schema.
#[derive(Debug)]
pub(crate) enum KeyOwner<'k> {
    /// A record's key.
    Record(&'k Arc<Collection>),
    /// The key of an index entry.
    Entry(&'k Arc<Collection>, &'k Arc<Index>),
    /// It lies in the range of this template but does not fit it.
    Stray(&'k Template),
    /// It lies in no template's range.
    Free,
}

impl Keyspace {
    /// The templates of all collections and indexes, whatever the states of the indexes.
    pub(crate) fn of(schema: &Schema) -> Result<Self> {
        let mut templates = Vec::new();
        for collection in schema.collections.values() {
            let range = collection.record_range()?;
            templates.push(TemplateRange { range, collection: collection.clone(), index: None });
            for index in collection.indexes.values() {
                let range = index.entry_range()?;
                let (collection, index) = (collection.clone(), Some(index.clone()));
                templates.push(TemplateRange { range, collection, index });
            }
        }
        Ok(Keyspace { templates })
    }

    /// What a key belongs to. It cannot belong to two templates, since such schemas are refused.
    pub(crate) fn owner_of(&self, area: &Area, key: &[u8]) -> KeyOwner<'_> {
        let near =
            || self.templates.iter().filter(|it| it.range.area == *area && it.range.contains(key));
        match near().find(|it| it.template().decode(key).is_some()) {
            Some(TemplateRange { collection, index: None, .. }) => KeyOwner::Record(collection),
            Some(TemplateRange { collection, index: Some(index), .. }) => {
                KeyOwner::Entry(collection, index)
            }
            None => near().next().map_or(KeyOwner::Free, |it| KeyOwner::Stray(it.template())),
        }
    }

    /// The declared ranges, in order, by area and key. No two overlap.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = self.templates.iter().map(|it| it.range.clone()).collect();
        ranges.sort_by(|a, b| (&a.area, &a.start).cmp(&(&b.area, &b.start)));
        let mut apart: Vec<Range> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if last.area == range.area && !is_above(&range.start, &last.end) => {
                    last.end = higher(last.end.take(), range.end);
                }
                _ => apart.push(range),
            }
        }
        apart
    }
}

impl TemplateRange {
    fn template(&self) -> &Template {
        self.index.as_ref().map_or(&self.collection.key, |index| &index.key)
    }
}

/// Whether a start lies beyond an end; `None` is the end of everything.
fn is_above(start: &Bytes, end: &Option<Bytes>) -> bool {
    end.as_ref().is_some_and(|end| start > end)
}

/// The higher of two ends.
fn higher(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    Some(a?.max(b?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    const SCHEMA: &str = r#"
        [collection.user]
        key = "user:{userId}"
        fields = { userId = "text", email = "text" }
        unique.email = { key = "index:email:{email}" }

        [collection.note]
        key = "user:{userId}:notes:{noteId}"
        fields = { userId = "text", noteId = "text" }

        [collection.setting]
        key = "settings"

        [collection.execution]
        key = "{arn raw}"
        area = "executions"
        fields = { arn = "text" }
    "#;

    fn keyspace() -> Keyspace {
        Keyspace::of(&Schema::from_toml(SCHEMA).unwrap()).unwrap()
    }

    fn owner_of(area: &str, key: &str) -> String {
        let keyspace = keyspace();
        match keyspace.owner_of(&Area::new(area).unwrap(), key.as_bytes()) {
            KeyOwner::Record(collection) => format!("record of {}", collection.name),
            KeyOwner::Entry(collection, index) => format!("{} of {}", index.name, collection.name),
            KeyOwner::Stray(template) => format!("stray in {}", template.source),
            KeyOwner::Free => "free".to_owned(),
        }
    }

    #[test]
    fn every_key_has_one_place() {
        assert_eq!(owner_of("", "user:ana"), "record of user");
        assert_eq!(owner_of("", "user:ana:notes:n1"), "record of note");
        assert_eq!(owner_of("", "index:email:a@b"), "email of user");
        assert_eq!(owner_of("", "user:ana:notess:n1"), "stray in user:{userId}:notes:{noteId}");
        assert_eq!(owner_of("", "settings"), "record of setting");
        assert_eq!(owner_of("", "settings2"), "free");
        assert_eq!(owner_of("", "index:phone:1"), "free");
        assert_eq!(owner_of("executions", "settings2"), "record of execution");
        assert_eq!(owner_of("elsewhere", "user:ana"), "free");
    }

    #[test]
    fn ranges_cover_every_template_once_and_in_order() {
        let ranges: Vec<String> =
            keyspace().ranges().iter().map(|range| format!("{range:?}")).collect();
        assert_eq!(
            ranges,
            [
                "[]index:email:..index:email;",
                "[]settings..settings\\x00",
                "[]user:..user;",
                "[executions].."
            ]
        );
    }
}
