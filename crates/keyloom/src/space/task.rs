//! Work over a whole store that is done once, whoever does it.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | `task:{kind}:{collection}:{name}` | JSON: the subject, the owner and its deadline, the position, the progress |
//!
//! A task walks over a store and commits what each chunk needs. Its cell moves on in the batch of a
//! chunk's last effects; the batches before it are safe to repeat. So a task that ends anywhere
//! goes on from its cell, and nothing is lost or done wrongly.
//!
//! Whoever owns the cell does the work, and others wait for it. They take over when the owner has
//! ended, or has been silent beyond its deadline. The clock only says when to try: each batch of a
//! task rests on the stamp of its cell, so that an owner who was replaced commits nothing more.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::attempt::{Interrupted, Under, past_fence};
use super::live::Live;
use super::loaded::Loaded;
use super::walk::{Chunk, Position, Stage, Walk};
use crate::engine::{Address, Batch, Cause, Cell, Condition, Effect, Entry, Outcome, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Note;
use crate::own::OwnKey;
use crate::record::{Version, now_ms, random_bytes};

/// For how long an owner may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// After how long a position that moved without effects is kept.
const SAVED_AFTER: Duration = Duration::from_secs(2);

/// How long others wait before they look again: at first, and at most.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(250);

/// What a task is about. While one is under way, there is no other of the same kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    /// What is done: one word.
    pub(crate) kind: String,
    pub(crate) collection: String,
    pub(crate) name: String,
    /// Which of all times that it is done.
    pub(crate) number: u64,
    /// A digest of everything declared that the work rests on.
    pub(crate) definition: String,
}

impl Subject {
    fn address(&self) -> Address {
        let Subject { kind, collection, name, .. } = self;
        OwnKey::Task { kind, collection, name }.address()
    }
}

/// What the cell of a task holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept<P> {
    subject: Subject,
    owner: String,
    /// Until when the owner will be heard of again, in milliseconds since 1970.
    until: u64,
    position: Position,
    progress: P,
}

impl<P: DeserializeOwned> Kept<P> {
    fn of(cell: &Cell) -> Option<Self> {
        serde_json::from_slice(cell.bytes()?).ok()
    }

    /// Whether nobody works on it any more, or nobody is known to.
    fn is_abandoned(&self, live: &Live) -> bool {
        let is_alone = !live.engine.capabilities().is_shared;
        Owner::has_ended(&self.owner, is_alone) || self.until < now_ms()
    }
}

/// A task that this process works on.
pub(crate) struct Task<'l, P> {
    live: &'l Live,
    address: Address,
    stamp: Stamp,
    kept: Kept<P>,
    /// When the cell was put last.
    saved: Instant,
    /// Whether the position stays where it is.
    is_held: bool,
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

impl<'l, P: Clone + Default + Serialize + DeserializeOwned + Send> Task<'l, P> {
    /// Makes this process the owner of a task, from where the last one came to. Waits while
    /// somebody else works on it, and hears how far they are; `None` when they have ended it.
    pub(crate) async fn take(
        live: &'l Live,
        loaded: &Loaded,
        subject: &Subject,
        hear: impl Fn(&P) + Send,
    ) -> Under<Option<Self>> {
        let address = subject.address();
        let mut look = Look::default();
        loop {
            let found = live.get_one(&address).await?;
            let seen = found.as_ref().map(|cell| cell.stamp);
            let known = found.as_ref().and_then(Kept::of);
            let (position, progress) = match known.filter(|kept| kept.subject == *subject) {
                Some(kept) if kept.is_abandoned(live) || look.is_silent(seen) => {
                    (kept.position, kept.progress)
                }
                Some(kept) => {
                    hear(&kept.progress);
                    look.pause().await;
                    continue;
                }
                None if found.is_none() && look.has_waited() => return Ok(None),
                None => (Position::default(), P::default()),
            };
            let owner = Owner::new();
            let (name, subject) = (owner.text.clone(), subject.clone());
            let kept = Kept { subject, owner: name, until: deadline(), position, progress };
            let stamp = Version::first().stamp();
            let condition = seen.map_or(Condition::Absent, Condition::Unchanged);
            let mut batch = Batch { fence: loaded.fence(), ..Batch::new(live.space.clone()) };
            batch.push(address.clone(), Some(condition), Some(put(stamp, &kept)?));
            let outcome = live.commit(loaded, batch, Note::of_program).await?;
            if let Outcome::Committed(_) = past_fence(outcome)? {
                let saved = Instant::now();
                let is_held = false;
                return Ok(Some(Task {
                    live,
                    address,
                    stamp,
                    kept,
                    saved,
                    is_held,
                    _owner: owner,
                }));
            }
        }
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.kept.subject
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
            let mut step = Step { task: self, loaded, next, has_moved: false };
            let goes_on = visitor.visit(&mut step, chunk).await?;
            step.finish(visitor.progress()).await?;
            if !goes_on {
                return Ok(());
            }
        }
        self.move_to(walk.position().clone(), visitor.progress());
        Ok(())
    }

    /// What ends the task, as part of the batch that says what it came to.
    pub(crate) fn ending(&self) -> Entry {
        let condition = Some(Condition::Unchanged(self.stamp));
        Entry { address: self.address.clone(), condition, effect: Some(Effect::Delete) }
    }

    fn move_to(&mut self, position: Position, progress: P) {
        if !self.is_held {
            self.kept.position = position;
            self.kept.progress = progress;
        }
    }

    /// Commits a batch while this process is the owner.
    async fn commit(
        &self,
        loaded: &Loaded,
        mut batch: Batch,
        put: Option<Effect>,
    ) -> Under<Outcome> {
        let own = batch.entries.len();
        let unchanged = Condition::Unchanged(self.stamp);
        batch.push(self.address.clone(), Some(unchanged), put);
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
    async fn save(&mut self, loaded: &Loaded, batch: Batch) -> Under<Outcome> {
        let stamp = Version::first().stamp();
        self.kept.until = deadline();
        let outcome = self.commit(loaded, batch, Some(put(stamp, &self.kept)?)).await?;
        if let Outcome::Committed(_) = outcome {
            self.stamp = stamp;
            self.saved = Instant::now();
        }
        Ok(outcome)
    }
}

impl<P: Clone + Default + Serialize + DeserializeOwned + Send> Step<'_, '_, P> {
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

fn deadline() -> u64 {
    now_ms().saturating_add(u64::try_from(SILENCE.as_millis()).unwrap_or(u64::MAX))
}

fn put<P: Serialize>(stamp: Stamp, kept: &Kept<P>) -> Result<Effect> {
    let bytes = serde_json::to_vec(kept).map_err(|source| {
        let message = "the progress of a task cannot be written as JSON";
        Error::new(ErrorKind::Internal, message).with_source(source)
    })?;
    Ok(Effect::Put { stamp, bytes: bytes.into() })
}

/// Somebody who waits for the owner of a task.
#[derive(Default)]
struct Look {
    looks: u32,
    /// The cell as it is, and since when.
    unchanged: Option<(Stamp, Instant)>,
}

impl Look {
    /// Whether the cell has been as it is for longer than an owner is silent.
    fn is_silent(&mut self, seen: Option<Stamp>) -> bool {
        match (&self.unchanged, seen) {
            (Some((stamp, since)), Some(seen)) if *stamp == seen => since.elapsed() > SILENCE,
            (_, seen) => {
                self.unchanged = seen.map(|seen| (seen, Instant::now()));
                false
            }
        }
    }

    fn has_waited(&self) -> bool {
        self.looks > 0
    }

    async fn pause(&mut self) {
        let pause = LOOK_FIRST.saturating_mul(2_u32.saturating_pow(self.looks));
        self.looks += 1;
        tokio::time::sleep(pause.min(LOOK_LAST)).await;
    }
}

/// The owners of this process that are at work.
static AT_WORK: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// What tells this process from all others.
static PROCESS: LazyLock<String> = LazyLock::new(|| {
    let bytes: [u8; 8] = random_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
});

/// Somebody in this process who works on a task. Dropped, it has ended.
struct Owner {
    number: u64,
    text: String,
}

impl Owner {
    fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        at_work().insert(number);
        Owner { number, text: format!("{}-{number}", *PROCESS) }
    }

    /// Whether an owner is known to have ended: one of this process that is no longer at work, or
    /// any other one where no other process can have the store open.
    fn has_ended(text: &str, is_alone: bool) -> bool {
        let own = text.strip_prefix(PROCESS.as_str()).and_then(|rest| rest.strip_prefix('-'));
        match own.and_then(|number| number.parse().ok()) {
            Some(number) => !at_work().contains(&number),
            None => is_alone,
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        at_work().remove(&self.number);
    }
}

/// The lock is held for moments only, by code that does not panic.
fn at_work() -> std::sync::MutexGuard<'static, BTreeSet<u64>> {
    AT_WORK.lock().unwrap_or_else(PoisonError::into_inner)
}
