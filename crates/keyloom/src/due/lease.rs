//! Work that one worker has for a time.
//!
//! | area | key | value |
//! | --- | --- | --- |
//! | `~` | `lease:{collection}:{index}:{SHA-256 of the entry's key, in hex}` | `{"entry":"flow:index:due:…","owner":"worker-1","until":1700000060000}` |
//!
//! The key is a hash, since an entry's key may be as long as a key can be. The cell's stamp tells
//! one lease from another: it changes whenever the work is given to somebody, and with every
//! extension.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::engine::{Address, Area, Batch, Cell, Condition, Effect, Outcome, Range, Rejection};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::session::Session;
use crate::write::{LeaseHold, Transaction};

/// The longest name of a worker, in bytes.
const WORKER_BYTES_MAX: usize = 255;

/// What the key of every lease begins with.
const PREFIX: &str = "lease:";

/// What a lease's cell holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    /// The key of the entry that is leased.
    pub(super) entry: String,
    /// Who has it.
    pub(super) owner: String,
    /// When it runs out, in milliseconds since 1970.
    pub(super) until: u64,
}

impl Content {
    /// What a cell says; `None` when it is no lease.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        serde_json::from_slice(cell.bytes()?).ok()
    }

    pub(super) fn put(&self, version: Version) -> Result<Effect> {
        let bytes = serde_json::to_vec(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "a lease cannot be written as JSON").with_source(error)
        })?;
        Ok(Effect::Put { stamp: version.stamp(), bytes: bytes.into() })
    }
}

/// Where the lease of an entry lies.
pub(crate) fn address(collection: &str, index: &str, entry: &[u8]) -> Address {
    let hash: String = Sha256::digest(entry).iter().map(|byte| format!("{byte:02x}")).collect();
    Address::new(Area::own(), format!("{PREFIX}{collection}:{index}:{hash}"))
}

/// The collection and the index that a lease belongs to, by its key.
pub(super) fn place(key: &[u8]) -> Option<(&str, &str)> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(PREFIX)?;
    let (collection, rest) = rest.split_once(':')?;
    let (index, _) = rest.split_once(':')?;
    Some((collection, index))
}

/// Where all leases lie.
pub(super) fn range() -> Range {
    Range::prefix(Area::own(), Bytes::from_static(PREFIX.as_bytes()))
}

/// The moment when a lease that is taken now runs out.
pub(super) fn until(now: u64, duration: Duration) -> Result<u64> {
    match u64::try_from(duration.as_millis()) {
        Ok(0) => {
            let message = "a lease lasts at least a millisecond";
            Err(Error::new(ErrorKind::InvalidArgument, message))
        }
        Ok(millis) => Ok(now.saturating_add(millis)),
        Err(_) => Ok(u64::MAX),
    }
}

pub(super) fn check_worker(worker: &str) -> Result<()> {
    if (1..=WORKER_BYTES_MAX).contains(&worker.len()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidArgument, "the name of a worker has 1 to 255 bytes")
        .with("bytes", worker.len()))
}

/// Work that a worker has until a moment: one entry of an index. While it lasts nobody else gets
/// the entry. When it has run out somebody else may, and from then on it is lost; until then the
/// worker may still extend it, or finish.
pub struct Lease {
    pub(super) session: Session,
    pub(super) address: Address,
    pub(super) version: Version,
    pub(super) content: Content,
}

impl Lease {
    /// Who has it.
    pub fn owner(&self) -> &str {
        &self.content.owner
    }

    /// When it runs out, in milliseconds since 1970.
    pub fn until(&self) -> u64 {
        self.content.until
    }

    /// The key of the entry that it is for.
    pub fn entry(&self) -> &str {
        &self.content.entry
    }

    /// Keeps the work for so long from now. Fails with [`ErrorKind::LeaseLost`] if somebody else
    /// has it, or it is done.
    pub async fn extend(&mut self, duration: Duration) -> Result<()> {
        let until = until(self.session.now(), duration)?;
        let content = Content { until, ..self.content.clone() };
        loop {
            let version = self.version.next();
            let Some(rejection) = self.change(content.put(version)?).await? else {
                (self.version, self.content) = (version, content);
                return Ok(());
            };
            // An extension whose answer was lost may have happened: then the lease is its
            // worker's, in the next version.
            if rejection.found.is_none_or(|found| found.stamp != version.stamp()) {
                return Err(self.hold(false).lost());
            }
            self.version = version;
        }
    }

    /// Gives the work back, so that somebody else can have it at once; `false` when it was no
    /// longer this worker's.
    pub async fn release(self) -> Result<bool> {
        Ok(self.change(Effect::Delete).await?.is_none())
    }

    /// Changes the lease's cell if it is as this worker left it.
    async fn change(&self, effect: Effect) -> Result<Option<Rejection>> {
        let mut batch = Batch::new(self.session.space.clone());
        let unchanged = Condition::Unchanged(self.version.stamp());
        batch.push(self.address.clone(), Some(unchanged), Some(effect));
        match self.session.commit_under_any_schema(batch).await? {
            Outcome::Committed(_) => Ok(None),
            Outcome::Rejected(rejection) => Ok(Some(rejection)),
        }
    }

    fn hold(&self, ends: bool) -> LeaseHold {
        LeaseHold {
            address: self.address.clone(),
            stamp: self.version.stamp(),
            owner: self.content.owner.clone(),
            ends,
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Content { entry, owner, until } = &self.content;
        write!(f, "Lease({entry} for {owner} until {until})")
    }
}

/// Work under a lease. A transaction that names a lease commits only if the lease is still its
/// worker's at that moment; otherwise it fails with [`ErrorKind::LeaseLost`] and writes nothing.
impl Transaction {
    /// Commits only under this lease, and ends it: the work is done.
    pub fn complete(&self, lease: &Lease) {
        self.rest_on(lease.hold(true));
    }

    /// Commits only under this lease, and keeps it: there is more to do.
    pub fn hold(&self, lease: &Lease) {
        self.rest_on(lease.hold(false));
    }
}
