//! Work over a whole store that is done once, whoever does it.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | `task:{kind}:{collection}:{name}` | JSON: the subject, the owner and its deadline, the position, the progress |
//! | the same, `:`, and four digits | what it has found so far, as [notes](super::notes) |
//!
//! A task walks over a store and commits what each chunk needs. Its cell moves on in the batch of a
//! chunk's last effects; the batches before it are safe to repeat. So a task that ends anywhere
//! goes on from its cell, and nothing is lost or done wrongly.
//!
//! Whoever owns the cell does the work, and others wait for it. They take over when the owner has
//! ended, or has been silent beyond its deadline. The clock only says when to try: each batch of a
//! task rests on the stamp of its cell, so that an owner who was replaced commits nothing more.
//!
//! Work that nobody has to go on with is a task too, without a cell: it ends with its process.

use std::pin::pin;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::attempt::{Interrupted, Under, past_fence};
use super::kept::{Kept, Subject, is_committed, put};
use super::live::Live;
use super::loaded::Loaded;
use super::notes::Notes;
use super::owner::{Look, Owner, deadline};
use super::pace::{Pace, Pacer};
use super::walk::{Chunk, Position, Stage, Walk};
use crate::engine::{
    Address, Batch, Cause, Committed, Condition, Effect, Entry, Fence, Outcome, Stamp,
};
use crate::log::Note;
use crate::record::Version;

/// After how long a position that moved without effects is kept.
const SAVED_AFTER: Duration = Duration::from_secs(2);

/// A task that this process works on.
pub(crate) struct Task<'l, P> {
    live: &'l Live,
    kept: Kept<P>,
    notes: Notes,
    /// Notes that were found when it was taken.
    found: Vec<String>,
    /// Notes that are not kept yet.
    fresh: Vec<String>,
    /// Where it is kept; `None` for one that ends with this process.
    cell: Option<Owned>,
    /// When the cell was put last.
    saved: Instant,
    /// Whether the position stays where it is.
    is_held: bool,
    pacer: Pacer,
}

/// The cell of a task that this process works on.
struct Owned {
    address: Address,
    stamp: Stamp,
    /// Others know by it that somebody is at work.
    _owner: Owner,
}

/// What does a task's work.
pub(crate) trait Visitor<P>: Send {
    /// Does what a chunk needs; `false` to end the walk here.
    fn visit(
        &mut self,
        step: &mut Step<'_, '_, P>,
        chunk: Chunk,
    ) -> impl Future<Output = Under<bool>> + Send;

    /// What has been done so far.
    fn progress(&self) -> P;
}

/// One chunk's part of a task.
pub(crate) struct Step<'s, 'l, P> {
    task: &'s mut Task<'l, P>,
    loaded: &'s Loaded,
    /// Where the walk is once the chunk is done.
    next: Position,
    has_moved: bool,
}

impl<'l, P: Clone + Serialize + DeserializeOwned + Send> Task<'l, P> {
    /// A task that ends with this process.
    pub(crate) fn in_memory(live: &'l Live, progress: P) -> Self {
        let subject = Subject::default();
        let kept = Kept::begun(subject, Value::Null, progress);
        Task::new(live, kept, Notes::default(), None)
    }

    fn new(live: &'l Live, kept: Kept<P>, notes: Notes, cell: Option<Owned>) -> Self {
        let (found, fresh, saved, is_held) = (Vec::new(), Vec::new(), Instant::now(), false);
        let pacer = Pacer::new(Pace::Full);
        Task { live, kept, notes, found, fresh, cell, saved, is_held, pacer }
    }

    /// Makes this process the owner of a task, from where the last one came to. Waits while
    /// somebody else works on it, and hears how far they are; `None` when they have ended it. One
    /// that is not there begins with this progress, if there is any to begin with.
    pub(crate) async fn take(
        live: &'l Live,
        fence: Option<Fence>,
        subject: &Subject,
        begins_with: Option<P>,
        hear: impl Fn(&P) + Send,
    ) -> Under<Option<Self>> {
        let address = subject.address();
        let mut look = Look::default();
        loop {
            let found = live.get_one(&address).await?;
            let seen = found.as_ref().map(|cell| cell.stamp);
            let known = found.as_ref().and_then(Kept::of);
            let mut kept = match known.filter(|kept: &Kept<P>| kept.subject == *subject) {
                Some(kept) if kept.is_abandoned(live) || look.is_silent(seen) => kept,
                Some(kept) => {
                    hear(&kept.progress);
                    look.pause().await;
                    continue;
                }
                None if found.is_none() && look.has_waited() => return Ok(None),
                None => match &begins_with {
                    Some(progress) => Kept::begun(subject.clone(), Value::Null, progress.clone()),
                    None => return Ok(None),
                },
            };
            let pages: Vec<Address> =
                (0..kept.pages).map(|page| subject.notes_address(page)).collect();
            let pages = live.get(&pages).await?;
            let owner = Owner::new();
            (kept.owner, kept.until) = (owner.text.clone(), deadline());
            let stamp = Version::first().stamp();
            let condition = seen.map_or(Condition::Absent, Condition::Unchanged);
            let mut batch = Batch { fence: fence.clone(), ..Batch::new(live.space.clone()) };
            batch.push(address.clone(), Some(condition), Some(put(stamp, &kept)?));
            let loaded = live.loaded().await?;
            let outcome = live.commit(&loaded, batch, Note::of_program).await?;
            if let Outcome::Committed(_) = past_fence(outcome)? {
                let cell = Owned { address, stamp, _owner: owner };
                let (notes, found) = Notes::read(&pages);
                let mut task = Task::new(live, kept, notes, Some(cell));
                task.found = found;
                return Ok(Some(task));
            }
        }
    }

    /// Goes on at this pace.
    pub(crate) fn keep_pace(&mut self, pace: Pace) {
        self.pacer = Pacer::new(pace);
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.kept.subject
    }

    /// The notes of those who had the task before.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.found)
    }

    pub(crate) fn position(&self) -> &Position {
        &self.kept.position
    }

    pub(crate) fn progress(&self) -> &P {
        &self.kept.progress
    }

    /// Goes over what is left of these stages, under one state of the schema.
    pub(crate) async fn go_on(
        &mut self,
        loaded: &Loaded,
        stages: Vec<Stage<'_>>,
        chunk_keys: usize,
        visitor: &mut impl Visitor<P>,
    ) -> Under<()> {
        let mut walk = Walk::new(stages, chunk_keys).from(self.kept.position.clone());
        while let Some(chunk) = walk.next(self.live).await? {
            let next = walk.position().clone();
            let keys = chunk.rows.len() as u64;
            let mut step = Step { task: self, loaded, next, has_moved: false };
            let goes_on = visitor.visit(&mut step, chunk).await?;
            step.finish(visitor.progress()).await?;
            if !goes_on {
                return Ok(());
            }
            self.pause_after(keys).await?;
        }
        self.move_to(walk.position().clone(), visitor.progress());
        Ok(())
    }

    /// What ends the task, as part of the batch that says what it came to.
    pub(crate) fn ending(&self) -> Vec<Entry> {
        let removal = |cell: &Owned| self.kept.removal(&cell.address, cell.stamp);
        self.cell.as_ref().map(removal).unwrap_or_default()
    }

    /// Ends the task.
    pub(crate) async fn end(self) -> Under<()> {
        let mut batch = Batch::new(self.live.space.clone());
        batch.entries = self.ending();
        match batch.entries.is_empty() || is_committed(self.live, batch).await? {
            true => Ok(()),
            false => Err(Interrupted::TakenOver),
        }
    }

    /// Moves the task on. What had no effects is soon done again, so that it is kept now and then
    /// only, or when the notes or the caller say that it must not be forgotten.
    pub(crate) async fn move_on(
        &mut self,
        position: Position,
        progress: P,
        notes: Vec<String>,
        is_to_be_kept: bool,
    ) -> Under<()> {
        self.move_to(position, progress);
        if self.cell.is_some() {
            self.fresh.extend(notes);
        }
        match is_to_be_kept || !self.fresh.is_empty() || self.saved.elapsed() >= SAVED_AFTER {
            true => self.keep().await,
            false => Ok(()),
        }
    }

    /// Commits effects, and keeps with them what has been done by then. The position stays.
    pub(crate) async fn commit_with(
        &mut self,
        loaded: &Loaded,
        batch: Batch,
        progress: P,
        notes: Vec<String>,
    ) -> Under<Outcome> {
        let (before, fresh) = (self.kept.progress.clone(), self.fresh.len());
        self.kept.progress = progress;
        if self.cell.is_some() {
            self.fresh.extend(notes);
        }
        let outcome = self.save(loaded, batch).await;
        if !matches!(outcome, Ok(Outcome::Committed(_))) {
            self.kept.progress = before;
            self.fresh.truncate(fresh);
        }
        outcome
    }

    /// Waits for a part of the work, and lets others know meanwhile that somebody is at it, and
    /// how far.
    pub(crate) async fn while_at<T>(
        &mut self,
        work: impl Future<Output = T>,
        tell: impl Fn(&mut P),
    ) -> Under<T> {
        if self.cell.is_none() {
            // Nobody waits for it, and not every runtime has a clock.
            return Ok(work.await);
        }
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = tokio::time::sleep(SAVED_AFTER) => {
                    tell(&mut self.kept.progress);
                    self.keep().await?;
                }
            }
        }
    }

    /// Pauses after so many keys, as the pace wants it.
    pub(crate) async fn pause_after(&mut self, keys: u64) -> Under<()> {
        self.pacer.worked(keys);
        while !self.pacer.pause().await {
            self.keep().await?;
        }
        Ok(())
    }

    fn move_to(&mut self, position: Position, progress: P) {
        if !self.is_held {
            self.kept.position = position;
            self.kept.progress = progress;
        }
    }

    /// Keeps how far the task is.
    async fn keep(&mut self) -> Under<()> {
        let batch = Batch::new(self.live.space.clone());
        let loaded = self.live.loaded().await?;
        self.save(&loaded, batch).await.map(drop)
    }

    /// Commits a batch while this process is the owner.
    async fn commit(
        &self,
        loaded: &Loaded,
        mut batch: Batch,
        put: Option<Effect>,
    ) -> Under<Outcome> {
        let own = batch.entries.len();
        if let Some(cell) = &self.cell {
            let unchanged = Condition::Unchanged(cell.stamp);
            batch.push(cell.address.clone(), Some(unchanged), put);
        }
        if batch.entries.is_empty() {
            return Ok(Outcome::Committed(Committed::default()));
        }
        let outcome = self.live.commit(loaded, batch, Note::of_program).await?;
        match past_fence(outcome)? {
            Outcome::Rejected(rejection)
                if rejection.cause == (Cause::Condition { entry: own }) =>
            {
                Err(Interrupted::TakenOver)
            }
            outcome => Ok(outcome),
        }
    }

    /// Commits a batch that puts the cell as it is now.
    async fn save(&mut self, loaded: &Loaded, mut batch: Batch) -> Under<Outcome> {
        let stamp = Version::first().stamp();
        if self.cell.is_none() {
            return self.commit(loaded, batch, None).await;
        }
        let (notes, pages) = self.notes.with(&self.fresh);
        let kept = Kept { until: deadline(), pages: notes.pages, ..self.kept.clone() };
        for (page, bytes) in pages {
            let address = self.kept.subject.notes_address(page);
            batch.push(address, None, Some(Effect::Put { stamp, bytes }));
        }
        let outcome = self.commit(loaded, batch, Some(put(stamp, &kept)?)).await?;
        if let (Outcome::Committed(_), Some(cell)) = (&outcome, &mut self.cell) {
            cell.stamp = stamp;
            (self.kept, self.notes, self.saved) = (kept, notes, Instant::now());
            self.fresh.clear();
        }
        Ok(outcome)
    }
}

impl<P: Clone + Serialize + DeserializeOwned + Send> Step<'_, '_, P> {
    /// Commits effects of the chunk that may be repeated.
    pub(crate) async fn commit(&mut self, batch: Batch) -> Under<Outcome> {
        self.task.commit(self.loaded, batch, None).await
    }

    /// Commits the last effects of the chunk, and moves the task on with them. The progress is what
    /// it is once they are there.
    pub(crate) async fn commit_last(&mut self, batch: Batch, progress: P) -> Under<Outcome> {
        let before = (self.task.kept.position.clone(), self.task.kept.progress.clone());
        self.task.move_to(self.next.clone(), progress);
        let outcome = self.task.save(self.loaded, batch).await;
        self.has_moved = matches!(outcome, Ok(Outcome::Committed(_)));
        if !self.has_moved {
            // What was not committed has to be gone over again, also under another schema.
            (self.task.kept.position, self.task.kept.progress) = before;
        }
        outcome
    }

    /// Leaves the task where it is from here on: what the walk goes over now has to be gone over
    /// again.
    pub(crate) fn hold(&mut self) {
        self.task.is_held = true;
    }

    /// Moves the task on, unless that happened with the chunk's effects. What had no effects is
    /// soon gone over again, so that it is kept now and then only.
    async fn finish(self, progress: P) -> Under<()> {
        let Step { task, loaded, next, has_moved } = self;
        task.move_to(next, progress);
        if !has_moved && task.saved.elapsed() >= SAVED_AFTER {
            let batch = Batch { fence: loaded.fence(), ..Batch::new(task.live.space.clone()) };
            task.save(loaded, batch).await?;
        }
        Ok(())
    }
}
