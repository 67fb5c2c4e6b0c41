//! The plain key-value interface: `get`, `put`, `delete` and `list` of keys as they are.
//!
//! Reads show everything that the caller may see. Writes to keys of no template happen as they are.
//! Writes to keys of records go through their collection, so that no index ever drifts.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::Store;
use super::visible_keys::VisibleKeys;
use crate::engine::{
    Address, Area, Batch, Cell, Direction, Effect, EngineExt, Range, ShowKey, successor,
};
use crate::error::{Error, ErrorKind, Result};
use crate::index;
use crate::json;
use crate::query::{Binding, Cursor, Position, Problem, ProblemKind, Question, Stopped, TAKE_MAX};
use crate::record::{Version, record_key};
use crate::schema::{Collection, Holds, Index, Schema};
use crate::schema::{KeyOwner, Keyspace};
use crate::space::{Loaded, Session, Under};
use crate::write::{self, Origin, Replay, Request, Whole, commit_claimed, once};

/// The plain keys of one area of a space.
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
    /// The value at the key.
    pub value: Bytes,
    /// The version of the value.
    pub version: Version,
}

/// A page of keys, in order.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What was found.
    pub entries: Vec<Listed>,
    /// Where to continue; `None` if no keys follow.
    pub next: Option<Cursor>,
    /// Why the listing stopped: it is full, or no keys follow.
    pub stopped: Stopped,
    /// Keys whose content is not bytes.
    pub problems: Vec<Problem>,
}

impl Store {
    /// The plain keys of the default area.
    pub fn plain(&self) -> Plain {
        Plain { session: self.session().clone(), area: Area::default_area() }
    }
}

/// Tells which keys hold records that have expired.
struct Expired {
    /// `None` when no record of the schema ever expires.
    keyspace: Option<Keyspace>,
    now: u64,
}

impl Expired {
    async fn of(session: &Session) -> Result<Self> {
        let loaded = session.live.loaded().await?;
        let expires = loaded.schema.collections.values().any(|found| found.expiry.is_some());
        let keyspace = expires.then(|| Keyspace::of(&loaded.schema)).transpose()?;
        Ok(Expired { keyspace, now: session.now() })
    }

    /// Whether a key holds an expired record: at the record's own key, or in an entry that carries
    /// it.
    fn has(&self, area: &Area, key: &[u8], value: &[u8]) -> bool {
        let Some(keyspace) = &self.keyspace else { return false };
        match keyspace.owner_of(area, key) {
            KeyOwner::Record(collection) => collection.is_text_expired(value, self.now),
            KeyOwner::Entry(collection, index) if index.holds == Holds::Record => {
                collection.is_text_expired(value, self.now)
            }
            KeyOwner::Entry(..) | KeyOwner::Stray(_) | KeyOwner::Free => false,
        }
    }
}

/// What a key belongs to, and thus what may be written there.
enum Kind {
    /// A record: only that record.
    Record(Arc<Collection>),
    /// An index entry: nothing.
    Entry(Arc<Collection>, Arc<Index>),
    /// A key that begins like this template but does not fit it: nothing.
    Stray(String),
    /// A key of no template: anything.
    Free,
}

impl Plain {
    /// The same keys, for one idempotent write; see
    /// [`Collection::with_idempotency_key`](crate::Collection::with_idempotency_key).
    pub fn with_idempotency_key(&self, key: &str) -> Result<Self> {
        Ok(Plain { session: self.session.with_key(key)?, area: self.area.clone() })
    }

    /// The same interface to another area.
    pub fn in_area(&self, name: &str) -> Result<Self> {
        Ok(Plain { session: self.session.clone(), area: Area::new(name)? })
    }

    /// The value at a key: the JSON text of a record, the value of an index entry, or the bytes
    /// that a program put there. An expired record is hidden. An acting user sees the records that
    /// they may read, and the entries of indexes that serve them. All other keys of collections are
    /// hidden, and keys of no template are refused.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        let address = self.address(key.as_ref());
        let decided = self.session.live.decide(|loaded| {
            let sight = VisibleKeys::new(&self.session, &loaded.schema, &self.area)?;
            let is_shown = sight.shows(&address.key);
            if !is_shown {
                self.place(loaded, &address)?;
            }
            Ok(is_shown)
        });
        if !decided.await? {
            return Ok(None);
        }
        let expired = Expired::of(&self.session).await?;
        let cell = self.session.live.get_one(&address).await?;
        let Some(cell) = cell else { return Ok(None) };
        let value = bytes_of(&address.key, &cell)?;
        Ok((!expired.has(&self.area, &address.key, value)).then(|| value.clone()))
    }

    /// Puts a value at a key, and replaces the value that was there.
    ///
    /// At the key of a record, the value must be that record: a JSON object whose fields give
    /// exactly this key. It is checked and indexed as by an upsert. Keys of index entries are
    /// refused, since entries follow from their records. So are keys that begin like a declared
    /// template but do not fit it, since nothing would ever find them.
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl Into<Bytes>) -> Result<Version> {
        let (address, value) = (self.address(key.as_ref()), value.into());
        once!(&self.session, self.request("put", &[&address.key, &value]), |session| {
            let plain = Plain { session, area: self.area.clone() };
            let (address, value) = (address.clone(), value.clone());
            async move { plain.put_once(&address, &value).await }
        })
    }

    async fn put_once(&self, address: &Address, value: &Bytes) -> Result<Version> {
        let mut attempts = self.session.live.writes();
        loop {
            let loaded = self.catalogued().await?;
            match self.place(&loaded, address)? {
                Kind::Record(collection) => {
                    let record = record_at(&collection, &address.key, value)?;
                    let whole = Whole { value: &record, origin: Origin::Json };
                    let written = write::upsert(&self.session, &collection.name, whole).await?;
                    return Ok(written.document.version);
                }
                Kind::Free => {
                    let version = Version::first();
                    let put = Effect::Put { stamp: version.stamp(), bytes: value.clone() };
                    let attempt = self.commit(&loaded, address.clone(), put, &version).await;
                    let settled = attempts.settle(attempt).await;
                    if settled.map_err(|error| restless(error, address))?.is_some() {
                        return Ok(version);
                    }
                }
                Kind::Entry(collection, index) => {
                    return Err(follows_records(address, &collection, &index));
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
    }

    /// Deletes the value at a key. Gives the version that it had, or `None` if the key was absent.
    ///
    /// At the key of a record, it deletes the record with all its entries. Keys of index entries
    /// are refused. Keys that `verify` reports as unknown can be deleted.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<Option<Version>> {
        let address = self.address(key.as_ref());
        once!(&self.session, self.request("delete", &[&address.key]), |session| {
            let plain = Plain { session, area: self.area.clone() };
            let address = address.clone();
            async move { plain.delete_once(&address).await }
        })
    }

    async fn delete_once(&self, address: &Address) -> Result<Option<Version>> {
        let mut attempts = self.session.live.writes();
        loop {
            let loaded = self.catalogued().await?;
            match self.place(&loaded, address)? {
                Kind::Record(collection) => {
                    let key = |_: &Collection| Ok(address.key.clone());
                    return index::delete(&self.session, &collection.name, key, None).await;
                }
                Kind::Entry(collection, index) => {
                    return Err(follows_records(address, &collection, &index));
                }
                Kind::Stray(_) | Kind::Free => {}
            }
            let cell = self.session.live.get_one(address).await?;
            let there = cell.map(|cell| Version::from_stamp(cell.stamp));
            if there.is_none() {
                return Ok(there);
            }
            let attempt = self.commit(&loaded, address.clone(), Effect::Delete, &there).await;
            let settled = attempts.settle(attempt).await;
            if settled.map_err(|error| restless(error, address))?.is_some() {
                return Ok(there);
            }
        }
    }

    /// The keys that begin with a prefix, in order, at most `limit`, from the start or from a
    /// cursor of the same prefix. Expired records are left out; their index entries may still be
    /// listed until they are swept.
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
        let loaded = self.session.live.loaded().await?;
        let binding = Arc::new(self.bind(&loaded, prefix.as_ref()));
        let mut left = Range::prefix(self.area.clone(), Bytes::copy_from_slice(prefix.as_ref()));
        if let Some(text) = cursor {
            let position = Cursor::open(text, &binding)?;
            left.start = successor(&position.key);
        }
        let sight = VisibleKeys::new(&self.session, &loaded.schema, &self.area)?;
        self.gather(&sight, left, limit, binding).await
    }

    async fn gather(
        &self,
        sight: &VisibleKeys<'_>,
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
        let expired = Expired::of(&self.session).await?;
        while let Some(part) = sight.first_part(&left) {
            // One key more than the listing takes shows whether more follow.
            let wanted = limit - listing.entries.len() + 1;
            let stretch = self
                .session
                .live
                .engine
                .scan_one(&self.session.live.space, &part, wanted, Direction::Forward)
                .await?;
            for row in stretch.rows {
                if !left.contains(&row.key) {
                    continue;
                }
                if !sight.shows(&row.key) {
                    left = sight.skip(&left, &row.key);
                    continue;
                }
                let is_hidden = |value: &Bytes| expired.has(&self.area, &row.key, value);
                if row.cell.bytes().is_some_and(is_hidden) {
                    left = left.after(&row.key, Direction::Forward);
                    continue;
                }
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
            match part.end {
                _ if stretch.more => {}
                Some(end) => left.start = left.start.max(end),
                None => break,
            }
        }
        Ok(listing)
    }

    fn address(&self, key: &[u8]) -> Address {
        Address::new(self.area.clone(), Bytes::copy_from_slice(key))
    }

    /// The schema of a space that has a catalog. A space without one gets it at its first write, so
    /// that every write is fenced, and cursors outlive the process.
    async fn catalogued(&self) -> Result<Arc<Loaded>> {
        let loaded = self.session.live.loaded().await?;
        if loaded.fence().is_some() {
            return Ok(loaded);
        }
        self.session.apply(&Schema::default()).await?;
        self.session.live.loaded().await
    }

    /// What an address belongs to. If a user is acting, an address of no template is an error.
    fn place(&self, loaded: &Loaded, address: &Address) -> Result<Kind> {
        address.check()?;
        let kind = match Keyspace::of(&loaded.schema)?.owner_of(&address.area, &address.key) {
            KeyOwner::Record(collection) => Kind::Record(collection.clone()),
            KeyOwner::Entry(collection, index) => Kind::Entry(collection.clone(), index.clone()),
            KeyOwner::Stray(template) => Kind::Stray(template.source.clone()),
            // No user can name Keyloom's own area.
            KeyOwner::Free => Kind::Free,
        };
        match kind {
            Kind::Stray(_) | Kind::Free if self.session.actor().is_some() => {
                let message = "this key belongs to no collection, so that no user may reach it";
                Err(Error::new(ErrorKind::Forbidden, message).with("key", ShowKey(&address.key)))
            }
            kind => Ok(kind),
        }
    }

    /// Writes one key under the schema that judged it.
    async fn commit(
        &self,
        loaded: &Loaded,
        address: Address,
        effect: Effect,
        answer: &impl Replay,
    ) -> Under<()> {
        let mut batch = Batch::new(self.session.live.space.clone());
        batch.push(address, None, Some(effect));
        commit_claimed(&self.session, loaded, batch, || answer.to_answer()).await
    }

    /// The request as one to a collection that cannot exist, since no name has a space in it.
    fn request(&self, operation: &'static str, payload: &[&[u8]]) -> Request<'static> {
        let told = || {
            let texts = payload.iter().map(|bytes| bytes.escape_ascii().to_string());
            [self.area.name().to_owned()].into_iter().chain(texts).collect()
        };
        // Only an idempotent write compares requests.
        let payload = self.session.key().map_or(Value::Null, |_| told());
        Request::new(operation, "plain keys", payload)
    }

    fn bind(&self, loaded: &Loaded, prefix: &[u8]) -> Binding {
        Binding {
            secret: loaded.catalog.cursor_secret.0.to_vec(),
            space: self.session.live.space.name().to_owned(),
            actor: self.session.actor().map(str::to_owned),
            collection: String::new(),
            // A query is JSON text, which never begins like this.
            query: Question::Words(format!("list {} {}", self.area.name(), prefix.escape_ascii())),
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

/// The error for a write to an index entry.
fn follows_records(address: &Address, collection: &Collection, index: &Index) -> Error {
    let message = "this key belongs to an index, which follows its records; write the record";
    Error::new(ErrorKind::InvalidKey, message)
        .with("key", ShowKey(&address.key))
        .with("collection", &collection.name)
        .with("index", &index.name)
        .with("template", &index.key.source)
}

/// The record that is to be put at its key.
fn record_at(collection: &Collection, key: &Bytes, text: &[u8]) -> Result<Value> {
    let about = |message| {
        Error::new(ErrorKind::InvalidRecord, message)
            .with("collection", &collection.name)
            .with("key", ShowKey(key))
    };
    let record = json::parse(text).map_err(|fault| {
        fault.describe(about("what is put at a record's key must be JSON that is kept as it is"))
    })?;
    if !record.is_object() {
        return Err(about("what is put at a record's key must be a JSON object"));
    }
    // Before anything is generated: a record that lacks its id would else get another key.
    let own = record_key(collection, &record).map_err(|error| {
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

/// What ended a write, with its key where that is not told yet.
fn restless(error: Error, address: &Address) -> Error {
    match error.kind() {
        ErrorKind::StaleSchema => error.with("key", ShowKey(&address.key)),
        _ => error,
    }
}
