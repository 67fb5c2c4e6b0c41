//! Everything that a store wants to have done now and then, in one call.

use super::sweep::{SweepOptions, Swept, sweep};
use crate::error::{Error, Result};
use crate::log::{Trimmed, trim};
use crate::query::Stopped;
use crate::side::{AGGREGATES, ANSWERS, HISTORY};
use crate::space::{GoesOn, PurgeOptions, Purged, Session};

/// What is done to a space, each part within its own bounds; `None` leaves a part out.
///
/// ```
/// use keyloom::MaintainOptions;
/// let a_little = MaintainOptions::bounded(1_000);
/// let only_the_log = MaintainOptions { log: Some(usize::MAX), ..MaintainOptions::nothing() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintainOptions {
    /// Removes records that have expired, and leases whose work is gone.
    pub sweep: Option<SweepOptions>,
    /// Removes the cells of groups without records, and of earlier countings.
    pub groups: Option<PurgeOptions>,
    /// Removes what histories no longer have to keep.
    pub history: Option<PurgeOptions>,
    /// Removes the answers to idempotency keys whose time has passed.
    pub idempotency_keys: Option<PurgeOptions>,
    /// Removes about so many entries of the log at most, of those that need not be kept. Of a space
    /// that keeps no log there is nothing to remove.
    pub log: Option<usize>,
}

impl Default for MaintainOptions {
    /// Everything, without bounds.
    fn default() -> Self {
        MaintainOptions::bounded(usize::MAX)
    }
}

impl MaintainOptions {
    /// Nothing; for those who name the parts.
    pub fn nothing() -> Self {
        MaintainOptions {
            sweep: None,
            groups: None,
            history: None,
            idempotency_keys: None,
            log: None,
        }
    }

    /// Everything, and of each part at most about so many: records that are removed, cells that
    /// are looked at, entries of the log that are removed.
    pub fn bounded(most: usize) -> Self {
        let purge = PurgeOptions { cells_max: most, from: None };
        MaintainOptions {
            sweep: Some(SweepOptions { records_max: most, ..SweepOptions::default() }),
            groups: Some(purge.clone()),
            history: Some(purge.clone()),
            idempotency_keys: Some(purge),
            log: Some(most),
        }
    }

    /// The same, from where an earlier call stopped. A part that came to its end begins anew.
    #[must_use]
    pub fn after(mut self, done: &Maintained) -> Self {
        let parts = [&mut self.groups, &mut self.history, &mut self.idempotency_keys];
        for (options, purged) in parts.into_iter().zip(done.purged()) {
            if let (Some(options), Some(purged)) = (options, purged) {
                options.from.clone_from(&purged.next);
            }
        }
        self
    }
}

/// What was done, part by part; `None` for one that was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// What the sweep did.
    pub sweep: Option<Swept>,
    /// What became of the cells of groups.
    pub groups: Option<Purged>,
    /// What became of histories.
    pub history: Option<Purged>,
    /// What became of the answers to idempotency keys.
    pub idempotency_keys: Option<Purged>,
    /// What became of the log; `None` also where the space keeps none.
    pub log: Option<Trimmed>,
}

impl Maintained {
    /// What became of the kinds of cells that are purged.
    fn purged(&self) -> [&Option<Purged>; 3] {
        [&self.groups, &self.history, &self.idempotency_keys]
    }

    /// Whether nothing is left to do at this time: no bound ended a part.
    pub fn is_complete(&self) -> bool {
        self.purged().into_iter().flatten().all(|purged| purged.next.is_none())
            && self.sweep.as_ref().is_none_or(|swept| swept.stopped == Stopped::End)
            && self.log.is_none_or(|trimmed| !trimmed.has_more)
    }

    /// How much was removed: records, leases, cells and entries of the log.
    pub fn removed(&self) -> u64 {
        let cells: u64 = self.purged().into_iter().flatten().map(|purged| purged.removed).sum();
        let swept = self.sweep.as_ref().map_or(0, |swept| swept.records + swept.leases);
        cells + swept + self.log.map_or(0, |trimmed| trimmed.removed)
    }
}

/// Does every part that is asked for. One that fails does not keep the others from being done: the
/// error of the first comes with what the others did.
pub(crate) async fn maintain(
    session: &Session,
    options: &MaintainOptions,
    goes_on: GoesOn<'_>,
) -> (Maintained, Option<Error>) {
    let mut failed = None;
    let mut tried = |error| {
        failed.get_or_insert(error);
    };
    let MaintainOptions { sweep: sweeping, groups, history, idempotency_keys, log } = options;
    let mut done = Maintained::default();
    // Records that go leave a history and empty groups, which therefore come after them.
    if let Some(options) = sweeping {
        done.sweep = sweep(session, options, goes_on).await.map_err(&mut tried).ok();
    }
    let purged = [
        (AGGREGATES, groups, &mut done.groups),
        (HISTORY, history, &mut done.history),
        (ANSWERS, idempotency_keys, &mut done.idempotency_keys),
    ];
    for (kind, options, purged) in purged {
        if let Some(options) = options {
            *purged = kind.purge(session, options, goes_on).await.map_err(&mut tried).ok();
        }
    }
    if let Some(entries_max) = log
        && goes_on()
    {
        done.log = trim_log(session, *entries_max).await.map_err(&mut tried).ok().flatten();
    }
    (done, failed)
}

/// Trims the log, if the space keeps one.
async fn trim_log(session: &Session, entries_max: usize) -> Result<Option<Trimmed>> {
    let Some(keep) = session.live.loaded().await?.schema.log else { return Ok(None) };
    let most = u64::try_from(entries_max).unwrap_or(u64::MAX);
    trim(&*session.live.engine, &session.live.space, keep, session.now(), most).await.map(Some)
}
