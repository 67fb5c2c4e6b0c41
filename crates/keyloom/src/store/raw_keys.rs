//! Lists the keys of a space as stored, in every area, for a person to inspect.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use super::Store;
use super::owned_keys::content_text;
use crate::engine::{Address, Area, Cell, Direction, Range, ShowKey, successor};
use crate::error::{Error, ErrorKind, Result};
use crate::own::OwnKind;
use crate::query::{Binding, Cursor, IntoCursor, Position, Question, TAKE_MAX};
use crate::schema::Schema;
use crate::schema::{KeyOwner, Keyspace};
use crate::space::Loaded;
use crate::space::Session;
use crate::space::cell_bytes;

/// The raw keys of a space, including Keyloom's own. Only the program may use it, since it shows
/// every user's data.
#[derive(Clone)]
pub struct RawKeys {
    pub(super) session: Session,
}

/// Which keys to list.
#[derive(Clone, Debug)]
pub struct RawList {
    area: Option<String>,
    prefix: Bytes,
    take: usize,
    cursor: Option<String>,
    values: bool,
}

/// One key as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawKey {
    /// The area; empty for the default one, `~` for Keyloom's own.
    pub area: String,
    /// The key.
    pub key: Bytes,
    /// The key as people read it: bytes that are not text are shown as `\xNN`.
    pub text: String,
    /// The bytes of the key and its value.
    pub bytes: u64,
    /// What the key belongs to.
    pub kind: RawKind,
    /// The value as text, if the list asked for values; integers as JSON.
    pub value: Option<String>,
}

/// What a key belongs to, judged by the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RawKind {
    /// A record.
    Record {
        /// The record's collection.
        collection: String,
    },
    /// An entry of an index.
    Entry {
        /// The collection.
        collection: String,
        /// The index.
        index: String,
    },
    /// The counters of a record.
    Counters,
    /// One of Keyloom's own keys; see [`Schema::keyspace`](crate::Schema::keyspace).
    Own,
    /// A key of no template, which a program put there.
    Free,
    /// A key among those of a template that does not fit the template.
    Stray {
        /// The template.
        template: String,
    },
}

/// A page of keys, in order of area and key.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RawPage {
    /// The keys.
    pub keys: Vec<RawKey>,
    /// Where to continue; `None` if no keys follow.
    pub next: Option<Cursor>,
}

impl RawList {
    /// The first 100 keys of all areas, without values.
    pub fn new() -> Self {
        RawList::default()
    }

    /// Only the keys of this area: empty for the default one, `~` for Keyloom's own.
    #[must_use]
    pub fn area(mut self, name: impl Into<String>) -> Self {
        self.area = Some(name.into());
        self
    }

    /// Only keys that begin with this prefix.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.prefix = Bytes::copy_from_slice(prefix.as_ref());
        self
    }

    /// The most keys: 1 to 10,000.
    #[must_use]
    pub fn take(mut self, keys: usize) -> Self {
        self.take = keys;
        self
    }

    /// Starts at a cursor of the same list; `None` is the first page.
    #[must_use]
    pub fn from_cursor(mut self, cursor: impl IntoCursor) -> Self {
        self.cursor = cursor.into_cursor();
        self
    }

    /// Also gives the values of the keys.
    #[must_use]
    pub fn values(mut self) -> Self {
        self.values = true;
        self
    }
}

impl Default for RawList {
    fn default() -> Self {
        RawList { area: None, prefix: Bytes::new(), take: 100, cursor: None, values: false }
    }
}

impl Store {
    /// The keys of this space as stored, in every area. Refused to acting users.
    pub fn raw_keys(&self) -> Result<RawKeys> {
        self.session().program()?;
        Ok(RawKeys { session: self.session().clone() })
    }
}

impl RawKeys {
    /// The areas of the space: the default one, those that the schema names, and Keyloom's own, in
    /// order. A program may have put keys into other areas; they are not listed.
    pub async fn areas(&self) -> Result<Vec<String>> {
        let loaded = self.session.live.loaded().await?;
        Ok(areas(&loaded.schema).iter().map(|area| area.name().to_owned()).collect())
    }

    /// Keys as stored, in order of area and key.
    pub async fn list(&self, list: &RawList) -> Result<RawPage> {
        if !(1..=TAKE_MAX).contains(&list.take) {
            let message = "a list has 1 to 10000 keys";
            return Err(Error::new(ErrorKind::InvalidArgument, message).with("take", list.take));
        }
        let loaded = self.session.live.loaded().await?;
        let keyspace = Keyspace::of(&loaded.schema)?;
        let binding = Arc::new(self.bind(&loaded, list));
        let cursor = list.cursor.as_deref();
        let after = cursor.map(|text| Cursor::open(text, &binding)).transpose()?;
        let after =
            after.map(|at| Ok::<_, Error>((Area::known(&at.indexes)?, at.key))).transpose()?;
        let wanted = match &list.area {
            Some(name) => vec![Area::known(name)?],
            None => areas(&loaded.schema).into_iter().collect(),
        };
        let mut keys: Vec<RawKey> = Vec::new();
        for area in wanted {
            let mut left = Range::prefix(area.clone(), list.prefix.clone());
            match &after {
                Some((passed, _)) if area < *passed => continue,
                Some((passed, key)) if area == *passed => left.start = successor(key),
                _ => {}
            }
            loop {
                // One key more than the page takes shows whether more follow.
                let limit = list.take - keys.len() + 1;
                let live = &self.session.live;
                let stretch = live.scan_one(&left, limit, Direction::Forward).await?;
                for row in stretch.rows {
                    if keys.len() == list.take {
                        let next = keys.last().map(|last| position(last, &binding));
                        return Ok(RawPage { keys, next });
                    }
                    left = left.after(&row.key, Direction::Forward);
                    keys.push(raw(&keyspace, &area, row.key, &row.cell, list.values));
                }
                if !stretch.more {
                    break;
                }
            }
        }
        Ok(RawPage { keys, next: None })
    }

    /// One key, with its value.
    pub async fn get(&self, area: &str, key: impl AsRef<[u8]>) -> Result<Option<RawKey>> {
        let address = Address::new(Area::known(area)?, Bytes::copy_from_slice(key.as_ref()));
        let loaded = self.session.live.loaded().await?;
        let keyspace = Keyspace::of(&loaded.schema)?;
        let cell = self.session.live.get_one(&address).await?;
        let Address { area, key } = address;
        Ok(cell.map(|cell| raw(&keyspace, &area, key, &cell, true)))
    }

    fn bind(&self, loaded: &Loaded, list: &RawList) -> Binding {
        let RawList { area, prefix, .. } = list;
        Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: self.session.live.space.name().to_owned(),
            actor: None,
            collection: String::new(),
            query: Question::Words(format!("raw {area:?} {}", prefix.escape_ascii())),
        }
    }
}

/// Every area that the schema names, the default one and Keyloom's own.
fn areas(schema: &Schema) -> BTreeSet<Area> {
    let mut areas = BTreeSet::from([Area::default_area(), Area::own()]);
    for collection in schema.collections.values() {
        areas.insert(collection.area.clone());
        areas.extend(collection.indexes.values().map(|index| index.area.clone()));
    }
    areas
}

fn raw(keyspace: &Keyspace, area: &Area, key: Bytes, cell: &Cell, with_value: bool) -> RawKey {
    RawKey {
        area: area.name().to_owned(),
        text: ShowKey(&key).to_string(),
        bytes: cell_bytes(&key, cell),
        kind: kind(keyspace, area, &key),
        value: with_value.then(|| content_text(&cell.content)),
        key,
    }
}

fn kind(keyspace: &Keyspace, area: &Area, key: &[u8]) -> RawKind {
    match keyspace.owner_of(area, key) {
        KeyOwner::Record(collection) => RawKind::Record { collection: collection.name.clone() },
        KeyOwner::Entry(collection, index) => {
            RawKind::Entry { collection: collection.name.clone(), index: index.name.clone() }
        }
        KeyOwner::Stray(_) | KeyOwner::Free if *area == Area::own() => match OwnKind::of(key) {
            Some(OwnKind::Counters) => RawKind::Counters,
            _ => RawKind::Own,
        },
        KeyOwner::Stray(template) => RawKind::Stray { template: template.source.clone() },
        KeyOwner::Free => RawKind::Free,
    }
}

fn position(last: &RawKey, binding: &Arc<Binding>) -> Cursor {
    let position = Position {
        indexes: last.area.clone(),
        key: last.key.clone(),
        towards_start: false,
        inclusive: false,
    };
    Cursor::new(position, binding.clone())
}
