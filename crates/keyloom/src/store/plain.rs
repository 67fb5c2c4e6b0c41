//! The plain key-value interface: `get`, `put`, `delete` and `list` of keys as they are.
//!
//! It reads everything. It writes what belongs to no template as it is, and what belongs to a
//! record through its collection, so that no index ever drifts.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Store;
use crate::engine::{
    Address, Area, Batch, Cause, Cell, Direction, Effect, EngineExt, Outcome, Range, ShowKey,
    successor,
};
use crate::error::{Error, ErrorKind, Result};
use crate::index::{Keyspace, Place};
use crate::query::{Asked, Binding, Cursor, Position, Problem, ProblemKind, Stopped, TAKE_MAX};
use crate::record::Version;
use crate::schema::{Collection, Loaded, Schema};
use crate::session::Session;
use crate::write::{self, Origin, Whole};

/// How often a write is repeated when the schema changes under it.
const ATTEMPTS: usize = 16;

/// The keys of one area of a space, as they are.
#[derive(Clone)]
pub struct Plain {
    session: Session,
    area: Area,
}

/// One key of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The key.
    pub key: Bytes,
    /// What is there.
    pub value: Bytes,
    /// The version of what is there.
    pub version: Version,
}

/// Some keys, in order.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What was found.
    pub entries: Vec<Listed>,
    /// Where to go on; `None` when there is nothing after it.
    pub next: Option<Cursor>,
    /// Why the listing ended: it is full, or there is nothing after it.
    pub stopped: Stopped,
    /// Keys that hold something else than bytes.
    pub problems: Vec<Problem>,
}

impl Store {
    /// The keys of the default area, as they are.
    pub fn plain(&self) -> Plain {
        Plain { session: self.session().clone(), area: Area::default_area() }
    }
}

/// What may be written at a key.
enum Kind {
    /// A record.
    Record(Arc<Collection>),
    /// Nothing: it begins like this template and belongs to none.
    Stray(String),
    /// Anything.
    Free,
}

impl Plain {
    /// The same interface to another area.
    pub fn in_area(&self, name: &str) -> Result<Self> {
        Ok(Plain { session: self.session.clone(), area: Area::new(name)? })
    }

    /// What is at a key: the JSON text of a record, the value of an index entry, or whatever was
    /// put there.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        let address = self.address(key.as_ref());
        let cell = self.session.engine.get_one(&self.session.space, &address).await?;
        cell.map(|cell| bytes_of(&address.key, &cell).cloned()).transpose()
    }

    /// Puts a value at a key, whatever was there.
    ///
    /// At the key of a record the value must be that record: a JSON object whose fields give
    /// exactly this key. It is checked and indexed as by an upsert. The keys of index entries are
    /// refused, since they follow from their records, and so are keys that begin like a declared
    /// template and belong to none, since nothing would ever find them.
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl Into<Bytes>) -> Result<Version> {
        let (address, value) = (self.address(key.as_ref()), value.into());
        for _ in 0..ATTEMPTS {
            let loaded = self.catalogued().await?;
            match self.kind(&loaded, &address)? {
                Kind::Record(collection) => {
                    let record = record_at(&collection, &address.key, &value)?;
                    let whole = Whole { value: &record, origin: Origin::Json };
                    let written = write::upsert(&self.session, &collection.name, whole).await?;
                    return Ok(written.version());
                }
                Kind::Free => {
                    let version = Version::first();
                    let put = Effect::Put { stamp: version.stamp(), bytes: value.clone() };
                    if self.commit(&loaded, address.clone(), put).await? {
                        return Ok(version);
                    }
                }
                Kind::Stray(template) => {
                    return Err(Error::new(
                        ErrorKind::InvalidKey,
                        "this key begins like a declared template and belongs to none",
                    )
                    .with("key", ShowKey(&address.key))
                    .with("template", template));
                }
            }
        }
        Err(restless(&address))
    }

    /// Deletes what is at a key; `false` when nothing was there.
    ///
    /// At the key of a record it deletes the record with all its entries. The keys of index
    /// entries are refused. Keys that verify reports as unknown can be deleted.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let address = self.address(key.as_ref());
        for _ in 0..ATTEMPTS {
            let loaded = self.catalogued().await?;
            if let Kind::Record(collection) = self.kind(&loaded, &address)? {
                let key = |_: &Collection| Ok(address.key.clone());
                let deleted = write::delete(&self.session, &collection.name, key, None).await?;
                return Ok(deleted.is_some());
            }
            let there = self.session.engine.get_one(&self.session.space, &address).await?.is_some();
            if !there || self.commit(&loaded, address.clone(), Effect::Delete).await? {
                return Ok(there);
            }
        }
        Err(restless(&address))
    }

    /// The keys that begin with a prefix, in order, `limit` at most, from the start or from where
    /// a cursor of the same prefix points.
    pub async fn list(
        &self,
        prefix: impl AsRef<[u8]>,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Listing> {
        if !(1..=TAKE_MAX).contains(&limit) {
            return Err(Error::new(ErrorKind::InvalidArgument, "a listing has 1 to 10000 keys")
                .with("limit", limit));
        }
        let loaded = self.session.loaded().await?;
        let binding = Arc::new(self.bind(&loaded, prefix.as_ref()));
        let mut left = Range::prefix(self.area.clone(), Bytes::copy_from_slice(prefix.as_ref()));
        if let Some(text) = cursor {
            let position = Cursor::open(text, &binding)?;
            left.start = successor(&position.key);
        }
        self.gather(left, limit, binding).await
    }

    async fn gather(
        &self,
        mut left: Range,
        limit: usize,
        binding: Arc<Binding>,
    ) -> Result<Listing> {
        let mut listing = Listing {
            entries: Vec::new(),
            next: None,
            stopped: Stopped::End,
            problems: Vec::new(),
        };
        loop {
            // One key more than the listing takes tells whether there is more.
            let wanted = limit - listing.entries.len() + 1;
            let stretch = self
                .session
                .engine
                .scan_one(&self.session.space, &left, wanted, Direction::Forward)
                .await?;
            for row in stretch.rows {
                if listing.entries.len() == limit {
                    listing.stopped = Stopped::Take;
                    listing.next = listing.entries.last().map(|last| after(last, &binding));
                    return Ok(listing);
                }
                left = left.after(&row.key, Direction::Forward);
                match bytes_of(&row.key, &row.cell) {
                    Ok(value) => listing.entries.push(Listed {
                        value: value.clone(),
                        version: Version::from_stamp(row.cell.stamp),
                        key: row.key,
                    }),
                    Err(error) => listing.problems.push(Problem::new(
                        ProblemKind::Unreadable,
                        &row.key,
                        error.message(),
                    )),
                }
            }
            if !stretch.more {
                return Ok(listing);
            }
        }
    }

    fn address(&self, key: &[u8]) -> Address {
        Address::new(self.area.clone(), Bytes::copy_from_slice(key))
    }

    /// The schema of a space that has a catalog. A space that is written to for the first time
    /// gets one, so that this write and every later one is fenced, and cursors outlive the process.
    async fn catalogued(&self) -> Result<Arc<Loaded>> {
        let loaded = self.session.loaded().await?;
        if loaded.fence().is_some() {
            return Ok(loaded);
        }
        self.session.apply(&Schema::default()).await?;
        self.session.loaded().await
    }

    /// What may be written at an address; an error for the address of an index entry.
    fn kind(&self, loaded: &Loaded, address: &Address) -> Result<Kind> {
        address.check()?;
        match Keyspace::of(&loaded.schema)?.place(&address.area, &address.key) {
            Place::Record(collection) => Ok(Kind::Record(collection.clone())),
            Place::Stray(template) => Ok(Kind::Stray(template.source.clone())),
            // No user can name Keyloom's own area.
            Place::Free | Place::Counters => Ok(Kind::Free),
            Place::Entry(collection, index) => Err(Error::new(
                ErrorKind::InvalidKey,
                "this key belongs to an index, which follows its records; write the record",
            )
            .with("key", ShowKey(&address.key))
            .with("collection", &collection.name)
            .with("index", &index.name)
            .with("template", &index.key.source)),
        }
    }

    /// Writes one key under the schema that it was judged by; `false` when that has changed.
    async fn commit(&self, loaded: &Loaded, address: Address, effect: Effect) -> Result<bool> {
        let mut batch = Batch { fence: loaded.fence(), ..Batch::new(self.session.space.clone()) };
        batch.push(address, None, Some(effect));
        match self.session.engine.commit(batch).await? {
            Outcome::Committed(_) => Ok(true),
            Outcome::Rejected(rejection) if rejection.cause == Cause::Fence => {
                self.session.reload().await?;
                Ok(false)
            }
            Outcome::Rejected(_) => {
                Err(Error::new(ErrorKind::Internal, "a batch without conditions failed one"))
            }
        }
    }

    fn bind(&self, loaded: &Loaded, prefix: &[u8]) -> Binding {
        Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: self.session.space.name().to_owned(),
            collection: String::new(),
            // A query is a JSON text, and never begins so.
            query: Asked::Words(format!("list {} {}", self.area.name(), prefix.escape_ascii())),
        }
    }
}

fn after(last: &Listed, binding: &Arc<Binding>) -> Cursor {
    let position = Position {
        indexes: String::new(),
        key: last.key.clone(),
        towards_start: false,
        inclusive: false,
    };
    Cursor::new(position, binding.clone())
}

fn bytes_of<'c>(key: &[u8], cell: &'c Cell) -> Result<&'c Bytes> {
    cell.bytes().ok_or_else(|| {
        Error::new(ErrorKind::InvalidArgument, "this key holds counters, not bytes")
            .with("key", ShowKey(key))
    })
}

/// The record that is put at its key.
fn record_at(collection: &Collection, key: &Bytes, text: &[u8]) -> Result<Value> {
    let about = |message| {
        Error::new(ErrorKind::InvalidRecord, message)
            .with("collection", &collection.name)
            .with("key", ShowKey(key))
    };
    let record: Value = serde_json::from_slice(text).map_err(|error| {
        about("what is put at a record's key must be JSON")
            .with("reason", &error)
            .with_source(error)
    })?;
    if !record.is_object() {
        return Err(about("what is put at a record's key must be a JSON object"));
    }
    // Before anything is generated: a record that lacks its id would else get another key.
    let own = write::record_key(collection, &record).map_err(|error| {
        about("the fields of the record must give the key that it is put at")
            .with("reason", &error)
            .with_source(error)
    })?;
    if own != *key {
        return Err(about("the fields of the record must give the key that it is put at")
            .with("template", &collection.key.source)
            .with("key of the fields", ShowKey(&own)));
    }
    Ok(record)
}

fn restless(address: &Address) -> Error {
    Error::new(ErrorKind::StaleSchema, "the schema kept changing under the write")
        .with("key", ShowKey(&address.key))
}
