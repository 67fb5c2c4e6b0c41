//! The one thread that writes.
//!
//! Batches come [prepared](super::prepare), and those that arrive while a group is being made
//! durable wait in a queue and become the next group: the more writers, the more batches share a
//! sync. For each group the thread
//!
//! 1. decides every batch, in order, on the store and on the batches before it,
//! 2. writes all changes as one, and syncs once,
//! 3. brings the caches up to date and publishes the new snapshot,
//! 4. answers everyone, with the help of [another thread](super::reply_thread).
//!
//! Nothing of a group can be seen or heard of before its step 2 is over. After a failure in
//! step 2 nobody can know what the disk holds, so that the thread answers every later batch with
//! an error, and readers keep the last published snapshot.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::super::{LogBounds, Position, Space};
use super::figures::Work;
use super::fjall::{Database, Fault, Survives};
use super::gate::SyncGate;
use super::group::{Change, Group, Verdict};
use super::log::{self, Appends, Changes, Positions};
use super::options::{Durability, Options};
use super::reply_thread::{Ask, ReplyThread, answer};
use super::view::{Moment, Published, View, closed};
use crate::error::{Error, Result};

/// Bounds of a group, so that one slow sync cannot let the next group grow without end. A group
/// stays well below fjall's memtable of 64 MiB.
const GROUP_BATCHES_MAX: usize = 1024;
const GROUP_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What callers send to the thread.
pub(super) enum Request {
    /// Commit a batch that was checked.
    Commit(Ask),
    /// Trim a log.
    Trim(Trim),
    /// Add entries to a log.
    Extend(Extend),
    /// Finish, release the store, and say how that went.
    Close(oneshot::Sender<Result<()>>),
}

/// A log to trim, up to where and by how much, and whom to answer.
pub(super) struct Trim {
    pub(super) space: Space,
    pub(super) before: Position,
    pub(super) entries_max: usize,
    pub(super) reply: oneshot::Sender<Result<LogBounds>>,
}

/// A log to add entries to, and whom to answer.
pub(super) struct Extend {
    pub(super) space: Space,
    pub(super) at: Position,
    pub(super) entries: Vec<Bytes>,
    pub(super) reply: oneshot::Sender<Result<LogBounds>>,
}

/// Ends the waiting for logs to grow when the thread ends, also by a defect.
struct EndOfWaiting(Arc<View>);

impl Drop for EndOfWaiting {
    fn drop(&mut self) {
        self.0.log_waiters().end();
    }
}

/// The state of the thread.
pub(super) struct CommitThread {
    requests: Receiver<Request>,
    reply_thread: ReplyThread,
    database: Database,
    view: Arc<View>,
    work: Arc<Work>,
    sync_every: Option<Duration>,
    sync_gate: Option<SyncGate>,
    /// When the oldest acknowledged batch that is not synced was acknowledged.
    unsynced_since: Option<Instant>,
    positions: Positions,
    fault: Option<Fault>,
    _end_of_waiting: EndOfWaiting,
}

impl CommitThread {
    pub(super) fn new(
        requests: Receiver<Request>,
        reply_thread: ReplyThread,
        database: Database,
        view: Arc<View>,
        work: Arc<Work>,
        options: &Options,
    ) -> Self {
        CommitThread {
            requests,
            reply_thread,
            database,
            _end_of_waiting: EndOfWaiting(Arc::clone(&view)),
            view,
            work,
            sync_every: match options.durability {
                Durability::Durable => None,
                Durability::Relaxed { sync_every } => Some(sync_every),
            },
            sync_gate: options.sync_gate.clone(),
            unsynced_since: None,
            positions: Positions::default(),
            fault: None,
        }
    }

    /// Serves requests until one says to close, or until nobody is left to send any.
    pub(super) fn run(mut self) {
        loop {
            let first = self.next_request();
            self.sync_if_due();
            let mut next = match first {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.finish(None),
            };
            while let Some(request) = next.take() {
                match request {
                    Request::Commit(first) => {
                        let (asks, other) = self.gather(first);
                        self.commit(asks);
                        next = other;
                    }
                    Request::Trim(trim) => self.trim(trim),
                    Request::Extend(extend) => self.extend(extend),
                    Request::Close(closer) => return self.finish(Some(closer)),
                }
            }
        }
    }

    /// Waits for a request, but not beyond the time of the next sync.
    fn next_request(&self) -> Result<Request, RecvTimeoutError> {
        match self.time_to_sync() {
            Some(time) => self.requests.recv_timeout(time),
            None => self.requests.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// All batches that wait already, within the bounds of a group, up to another request.
    fn gather(&self, first: Ask) -> (Vec<Ask>, Option<Request>) {
        let mut bytes = first.prepared.weight();
        let mut asks = vec![first];
        while asks.len() < GROUP_BATCHES_MAX && bytes < GROUP_BYTES_MAX {
            match self.requests.try_recv() {
                Ok(Request::Commit(ask)) => {
                    bytes += ask.prepared.weight();
                    asks.push(ask);
                }
                Ok(other) => return (asks, Some(other)),
                Err(_) => break,
            }
        }
        (asks, None)
    }

    fn commit(&mut self, asks: Vec<Ask>) {
        let view = Arc::clone(&self.view);
        let moment = match (&self.fault, view.moment()) {
            (None, Ok(moment)) => moment,
            (Some(fault), _) => return refuse(asks, || fault.kept_from_writing()),
            // Only this thread closes the view, and it ends then.
            (None, Err(_)) => return refuse(asks, closed),
        };
        self.work.note_group(asks.len());
        let mut positions = std::mem::take(&mut self.positions);
        let mut group = Group::new(asks.len(), moment, Appends::new(&mut positions));
        let verdicts: Vec<_> = asks.iter().map(|ask| group.add(&ask.prepared)).collect();
        let commit = group.commit();
        let (changes, appends) = group.finish();
        let (appended, spaces) = appends.finish();
        self.positions = positions;
        match self.apply(commit, &changes, &appended) {
            Ok(()) => spaces.iter().for_each(|space| self.view.log_waiters().wake(space)),
            Err(fault) => self.fault = Some(fault),
        }
        drop(changes);
        let outcome = |verdict: Verdict| match &self.fault {
            None => verdict.when_durable(),
            Some(fault) => Err(verdict.when_failed(fault)),
        };
        self.reply_thread.answer(asks.into_iter().zip(verdicts.into_iter().map(outcome)));
    }

    fn trim(&mut self, trim: Trim) {
        let Trim { space, before, entries_max, reply } = trim;
        answer(reply, self.try_trim(&space, before, entries_max));
    }

    fn try_trim(
        &mut self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        self.change_log(|moment| log::trim(moment, space, before, entries_max))
    }

    fn extend(&mut self, extend: Extend) {
        let Extend { space, at, entries, reply } = extend;
        let extended = self.change_log(|moment| log::extend(moment, &space, at, &entries));
        if extended.is_ok() {
            self.positions.forget(&space);
            self.view.log_waiters().wake(&space);
        }
        answer(reply, extended);
    }

    /// Changes nothing but a log, by itself.
    fn change_log(
        &mut self,
        change: impl FnOnce(&Moment<'_>) -> Result<(LogBounds, Changes)>,
    ) -> Result<LogBounds> {
        if let Some(fault) = &self.fault {
            return Err(fault.kept_from_writing());
        }
        let view = Arc::clone(&self.view);
        let moment = view.moment()?;
        let (bounds, changes) = change(&moment)?;
        let commit = moment.commit() + 1;
        drop(moment);
        self.apply(commit, &[], &changes).map_err(|fault| {
            let error = fault.met_by_write();
            self.fault = Some(fault);
            error
        })?;
        Ok(bounds)
    }

    /// Makes the changes of cells and of logs durable, and then visible.
    fn apply(&mut self, commit: u64, cells: &[Change<'_>], log: &Changes) -> Result<(), Fault> {
        if cells.is_empty() && log.is_empty() {
            return Ok(());
        }
        if let Some(gate) = &self.sync_gate {
            gate.pass();
        }
        let survives = if self.sync_every.is_some() { Survives::Process } else { Survives::Power };
        self.database.write(cells, log, survives)?;
        if survives == Survives::Power {
            self.work.note_sync();
        }
        // No cache has anything of a log.
        self.view.cache().change(commit, cells.iter().map(Change::as_ref));
        self.view.publish(Published::new(commit, &self.database));
        if survives == Survives::Process {
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// How long acknowledged batches may still wait for their sync; `None` when none does.
    fn time_to_sync(&self) -> Option<Duration> {
        Some(self.sync_every?.saturating_sub(self.unsynced_since?.elapsed()))
    }

    fn sync_if_due(&mut self) {
        if self.time_to_sync().is_some_and(|time| time.is_zero()) {
            self.sync();
        }
    }

    fn sync(&mut self) {
        if self.unsynced_since.take().is_none() {
            return;
        }
        match self.database.sync() {
            Ok(()) => self.work.note_sync(),
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Leaves a store that opens fast, refuses what still waits, and releases the folder before
    /// it says so.
    fn finish(mut self, closer: Option<oneshot::Sender<Result<()>>>) {
        self.sync();
        self.view.close();
        let CommitThread { requests, reply_thread, database, fault, sync_every, .. } = self;
        reply_thread.finish();
        let closing = match fault {
            None => database.close().map_err(|fault| fault.met_by_close()),
            Some(fault) => {
                drop(database);
                // Unless it was relaxed, what was acknowledged is durable, whatever failed later.
                if sync_every.is_some() { Err(fault.met_by_close()) } else { Ok(()) }
            }
        };
        let mut closers: Vec<_> = closer.into_iter().collect();
        for request in requests.try_iter() {
            match request {
                Request::Commit(ask) => ask.answer(Err(closed())),
                Request::Trim(trim) => answer(trim.reply, Err(closed())),
                Request::Extend(extend) => answer(extend.reply, Err(closed())),
                Request::Close(closer) => closers.push(closer),
            }
        }
        // The first to ask hears of a failure; for the others the store is closed, which it is.
        let mut outcome = Some(closing);
        for closer in closers {
            answer(closer, outcome.take().unwrap_or(Ok(())));
        }
    }
}

fn refuse(asks: Vec<Ask>, why: impl Fn() -> Error) {
    asks.into_iter().for_each(|ask| ask.answer(Err(why())));
}
