//! Work that one worker has for a time.

use std::fmt;
use std::time::Duration;

use crate::engine::{Address, Batch, Condition, Effect, Outcome, Rejection};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::side::{LeaseContent, LeaseHold};
use crate::space::Session;
use crate::write::Transaction;

/// The longest name of a worker, in bytes.
const WORKER_BYTES_MAX: usize = 255;

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
    pub(super) content: LeaseContent,
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
        let content = LeaseContent { until, ..self.content.clone() };
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
        let mut batch = Batch::new(self.session.live.space.clone());
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
        let LeaseContent { entry, owner, until } = &self.content;
        write!(f, "Lease({entry} for {owner} until {until})")
    }
}

/// Work under a lease. A transaction that names a lease commits only if the lease is still its
/// worker's at that moment; otherwise it fails with [`ErrorKind::LeaseLost`] and writes nothing.
impl Transaction {
    /// Commits only under this lease, and ends it: the work is done.
    pub fn complete(&self, lease: &Lease) -> Result<()> {
        self.rest_on(lease.hold(true))
    }

    /// Commits only under this lease, and keeps it: there is more to do.
    pub fn hold(&self, lease: &Lease) -> Result<()> {
        self.rest_on(lease.hold(false))
    }
}
