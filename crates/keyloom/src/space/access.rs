//! What an acting user may read and write.
//!
//! Everything that makes a key, a range or a batch asks here, and nothing else decides:
//!
//! | where | asks |
//! | --- | --- |
//! | a key is made of fields, a record is read by its key | [`Session::may_read`] |
//! | a query is planned | [`Session::forced`], [`Session::confine`] |
//! | a range is about to be read | [`Session::check_range`], which no plan should ever fail |
//! | a record is about to be made | [`Session::take_ownership`] |
//! | a batch is put together | [`Session::check_write`] |
//! | maintenance, and whatever sees all of a space | [`Session::program`] |
//!
//! The program itself, which acts for nobody, passes all of them.

use std::borrow::Cow;

use serde_json::Value;

use crate::engine::{Range, ShowKey};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Path, Template, shortened};
use crate::record::set;
use crate::schema::{Access, Aggregate, Collection, Index};
use crate::space::Loaded;
use crate::space::Session;

impl Session {
    /// The acting user as the owner of records, and the field that names the owner, in a
    /// collection whose records have one.
    fn as_owner<'c>(&self, collection: &'c Collection) -> Option<(&'c Path, Value)> {
        Some((collection.owner.as_ref()?, Value::from(self.actor()?)))
    }

    /// The equality that every question of the caller to this collection implies.
    pub(crate) fn forced<'c>(&self, collection: &'c Collection) -> Option<(&'c Path, Value)> {
        self.as_owner(collection).filter(|_| collection.access == Access::Owned)
    }

    /// The keys of an index, or of the records themselves, that the caller may read; `None` for
    /// all. An index that does not begin with the owner mixes the entries of all owners, so that
    /// no user may read along it.
    pub(crate) fn confine(
        &self,
        collection: &Collection,
        index: Option<&Index>,
    ) -> Result<Option<Range>> {
        let Some((path, owner)) = self.forced(collection) else { return Ok(None) };
        let (template, area) = match index {
            Some(index) => (&index.key, &index.area),
            None => (&collection.key, &collection.area),
        };
        if !begins_with(template, path) {
            let message = "an acting user may read only indexes that begin with the owner";
            return Err(Error::new(ErrorKind::Forbidden, message)
                .with("collection", &collection.name)
                .with("owner", path)
                .with("key", &template.source));
        }
        let own = template.range(&[&owner], None);
        let own =
            own.map_err(|refusal| refusal.into_query_error().with("collection", &collection.name))?;
        Ok(Some(own.in_area(area.clone())))
    }

    /// The last line of defence: a range that reaches beyond what the caller may read is an error,
    /// however it came about.
    pub(crate) fn check_range(
        &self,
        collection: &Collection,
        index: Option<&Index>,
        range: &Range,
    ) -> Result<()> {
        match self.confine(collection, index)? {
            Some(own) if !range.is_empty() && !lies_within(range, &own) => {
                let message = "a range of keys reaches beyond what the acting user owns";
                Err(Error::new(ErrorKind::Internal, message).with("collection", &collection.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses groups of records that the caller may not read: what they come to would tell of
    /// others.
    pub(crate) fn check_group(
        &self,
        collection: &Collection,
        aggregate: &Aggregate,
        values: &[Value],
    ) -> Result<()> {
        let Some((path, owner)) = self.forced(collection) else { return Ok(()) };
        if aggregate.group.first() == Some(path) && values.first() == Some(&owner) {
            return Ok(());
        }
        let message = "an acting user may only ask for groups that begin with them as the owner";
        Err(aggregate.about(ErrorKind::Forbidden, message).with("owner", path))
    }

    /// Whether the caller may read the record at this key. What they may not is answered as if it
    /// were not there, without looking.
    pub(crate) fn may_read(&self, collection: &Collection, key: &[u8]) -> bool {
        // A name that is no value of the owner's field owns nothing.
        self.confine(collection, None).is_ok_and(|own| own.is_none_or(|own| own.contains(key)))
    }

    /// Refuses to read an index that is not complete. Why it could not be built may name records
    /// of others.
    pub(crate) fn check_readable(
        &self,
        loaded: &Loaded,
        collection: &Collection,
        index: &Index,
    ) -> Result<()> {
        loaded.check_readable(collection, index).map_err(|error| match self.actor() {
            None => error,
            Some(_) => Error::new(error.kind(), error.message())
                .with("collection", &collection.name)
                .with("index", &index.name),
        })
    }

    /// Refuses a write to a record that the caller may not write.
    pub(crate) fn check_write(&self, collection: &Collection, key: &[u8]) -> Result<()> {
        let Some(actor) = self.actor() else { return Ok(()) };
        let message = match collection.access {
            Access::Shared => return Ok(()),
            Access::ReadOnly => "an acting user may only read this collection",
            Access::Owned | Access::Hybrid => {
                let own = collection.key.range(&[&Value::from(actor)], None);
                let own = own.map(|own| own.in_area(collection.area.clone()));
                if own.is_ok_and(|own| own.contains(key)) {
                    return Ok(());
                }
                "only its owner may write this record"
            }
        };
        Err(Error::new(ErrorKind::Forbidden, message)
            .with("collection", &collection.name)
            .with("key", ShowKey(key)))
    }

    /// Makes a record that is about to be written the acting user's: an owner that is missing is
    /// filled in, and that of somebody else refused.
    pub(crate) fn take_ownership(
        &self,
        collection: &Collection,
        record: &mut Cow<'_, Value>,
    ) -> Result<()> {
        let Some((path, owner)) = self.as_owner(collection) else { return Ok(()) };
        match collection.value(path, record) {
            None => set(record.to_mut(), path, owner),
            Some(named) if *named == owner => {}
            Some(named) => {
                let message = "a user writes only records of their own; leave the owner out";
                return Err(Error::new(ErrorKind::Forbidden, message)
                    .with("collection", &collection.name)
                    .with("field", path)
                    .with("value", shortened(named)));
            }
        }
        Ok(())
    }

    /// Values for the fields of a template. Those of an acting user may leave the owner out where
    /// it is the first, and then get it.
    pub(crate) fn imply_owner<'v>(
        &self,
        collection: &Collection,
        template: &Template,
        values: &'v [Value],
    ) -> Cow<'v, [Value]> {
        match self.as_owner(collection) {
            Some((path, owner))
                if begins_with(template, path)
                    && values.len() + 1 == template.segments().count() =>
            {
                [&[owner], values].concat().into()
            }
            _ => values.into(),
        }
    }
}

fn begins_with(template: &Template, path: &Path) -> bool {
    template.segments().next().is_some_and(|first| first.path == *path)
}

fn lies_within(inner: &Range, outer: &Range) -> bool {
    let ends_within = match (&inner.end, &outer.end) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(inner), Some(outer)) => inner <= outer,
    };
    inner.area == outer.area && inner.start >= outer.start && ends_within
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::sync::Arc;

    use super::*;
    use crate::engine::{Area, Memory, Space};
    use crate::schema::Schema;
    use crate::space::Live;

    const SCHEMA: &str = r#"
        [collection.note]
        key    = "user:{userId}:notes:{noteId}"
        access = "owned"
        owner  = "userId"
        fields = { userId = "text", noteId = "text", title = "text" }
        index.title = { key = "title:{title}:{userId}:{noteId}" }
        index.own   = { key = "own:{userId}:{title}:{noteId}" }
    "#;

    fn range(area: &str, start: &'static str, end: Option<&'static str>) -> Range {
        let area = Area::new(area).unwrap();
        Range { area, start: start.into(), end: end.map(Into::into) }
    }

    /// What a planner with a defect could come up with.
    #[test]
    fn no_range_reaches_beyond_what_the_user_owns() {
        let schema = Schema::from_toml(SCHEMA).unwrap();
        let note = schema.collection("note").unwrap();
        let program = Session::new(Arc::new(Live::new(Arc::new(Memory::new()), Space::main())));
        let ana = program.acting_as("ana").unwrap();
        let own = index(note, "own");
        for (index, good) in [
            (None, range("", "user:ana:notes:", Some("user:ana:notes;"))),
            (None, range("", "user:ana:notes:b", Some("user:ana:notes:c"))),
            (Some(own), range("", "own:ana:", Some("own:ana;"))),
            // No key belongs to it, wherever it lies.
            (None, range("", "user:ben:notes:", Some("user:ben:notes:"))),
        ] {
            ana.check_range(note, index, &good).unwrap();
        }
        for (index, bad) in [
            (None, range("", "user:ana:notes:", None)),
            (None, range("", "user:ana:notes:", Some("user:ana:notes<"))),
            (None, range("", "user:ana1:notes:", Some("user:ana1:notes;"))),
            (None, range("", "user:ana", Some("user:anb"))),
            (None, range("", "user:", Some("user;"))),
            (None, range("other", "user:ana:notes:", Some("user:ana:notes;"))),
            (Some(own), range("", "user:ana:notes:", Some("user:ana:notes;"))),
        ] {
            let error = ana.check_range(note, index, &bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "{bad:?}");
            program.check_range(note, index, &bad).unwrap();
        }
        let mixed = range("", "title:x:ana:", Some("title:x:ana;"));
        let error = ana.check_range(note, Some(index(note, "title")), &mixed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
    }

    fn index<'c>(collection: &'c Collection, name: &str) -> &'c Index {
        collection.index(name).unwrap()
    }
}
