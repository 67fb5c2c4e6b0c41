//! The engine that keeps everything in one folder: fjall behind one commit thread.
//!
//! A commit is acknowledged when the disk has it, and until then nobody sees it. Concurrent
//! commits share a sync. Reads run on the caller's thread, at the last published snapshot, and
//! never wait for writers. `docs/formats/embedded.md` describes the folder byte by byte.
//!
//! The data path: [`prepare`] readies batches with the bytes of [`layout`], [`commit`] takes them,
//! [`group`] decides them, [`fjall`] makes them durable, [`view`] shows them, for a moment that is
//! [`pinned`] also later, with the [`cache`] in front, and [`log`] is what batches append. Writers
//! hear of it by way of the [`reply_thread`]. Keys go all this way with their hashes: [`hashed`].
//! [`folder`] says whose folder it is. All that rests on how fjall works is in its own folder, which
//! lists it.

mod cache;
mod commit;
mod figures;
mod fjall;
mod folder;
mod gate;
mod group;
mod hashed;
mod layout;
mod log;
mod options;
mod pinned;
mod prepare;
mod reply_thread;
mod view;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;

pub use gate::SyncGate;
pub use options::{Durability, Options};

use self::fjall::{Database, Trust};
use super::log::{Allowance, check_entries};
use super::quantum::pay_for_log;
use super::{
    Address, Area, Batch, Capabilities, Cell, Direction, Engine, Figure, Link, LogBounds, LogSlice,
    Outcome, Position, Range, Reading, Row, Space, Stretch, Trail,
};
use crate::error::{Error, ErrorKind, Fate, Result};
use cache::Cache;
use commit::{CommitThread, Extend, Request, Trim};
use figures::{Work, figures};
use folder::Folder;
use pinned::Pinned;
use prepare::Prepared;
use reply_thread::{Ask, ReplyThread};
use view::{Published, View, closed};

/// A store in one folder of the file system.
///
/// It needs the feature `embedded`, which is on by default.
///
/// One process at a time may have it open. After a failure to write (a full disk, an I/O error)
/// it is read-only: reads go on, commits fail with [`ErrorKind::ReadOnly`], and opening it again
/// recovers everything that was acknowledged.
///
/// [`close`](Engine::close) leaves a store that opens fast. Dropping the handle does the same,
/// and blocks the thread for as long as that takes; a process that just ends loses nothing that
/// was acknowledged, and pays with a slower open.
pub struct Embedded {
    capabilities: Capabilities,
    view: Arc<View>,
    requests: mpsc::Sender<Request>,
    work: Arc<Work>,
    trust: Arc<Trust>,
    path: PathBuf,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Embedded {
    /// Opens the store in a folder, and creates it where there is none.
    ///
    /// Blocks the thread while files are read. A folder that another process has open is refused
    /// with [`ErrorKind::Locked`]; one that a newer Keyloom wrote, or that holds something else,
    /// with [`ErrorKind::UnknownFormat`], and stays untouched.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let database = Database::open(Folder::open(path.as_ref())?, &options)?;
        let trust = Arc::clone(database.trust());
        let view = Arc::new(View::new(Published::new(0, &database), Cache::new(&options)));
        let (requests, received) = mpsc::channel();
        let work = Arc::new(Work::default());
        let (seen, noted) = (Arc::clone(&view), Arc::clone(&work));
        let reply_thread = ReplyThread::start()?;
        let commit_thread =
            CommitThread::new(received, reply_thread, database, seen, noted, &options);
        let thread = start_thread("keyloom-commit", || commit_thread.run())?;
        Ok(Embedded {
            capabilities: Capabilities {
                engine: "embedded",
                reading: Reading::Snapshot,
                batch_entries_max: 10_000,
                batch_bytes_max: 16 * 1024 * 1024,
                adds_spread: 1,
                is_shared: false,
                persistent: true,
                keeps_log: true,
                pins: true,
            },
            view,
            requests,
            work,
            trust,
            path: path.as_ref().to_path_buf(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// What became of a request that the commit thread did not answer. It answers all that it
    /// takes up, unless it dies of a defect.
    fn unanswered(&self, fate: Fate) -> Error {
        if self.view.is_closed() {
            return closed();
        }
        Error::new(ErrorKind::Internal, "the commit thread has ended; open the store again")
            .with_fate(fate)
    }
}

#[async_trait]
impl Engine for Embedded {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn announce(&self, address: &str) {
        if !self.view.is_closed() {
            // Whoever finds the folder locked is told less, and nothing else depends on it.
            let _ = folder::announce(&self.path, address);
        }
    }

    async fn get(&self, space: &Space, addresses: &[Address]) -> Result<Vec<Option<Cell>>> {
        addresses.iter().try_for_each(Address::check)?;
        self.view.moment()?.get(space, addresses).await
    }

    async fn scan(
        &self,
        space: &Space,
        ranges: &[Range],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Row>>> {
        self.view.moment()?.scan(space, ranges, limit, direction).await
    }

    async fn follow(
        &self,
        space: &Space,
        trails: &[Trail<'_>],
        limit: usize,
        direction: Direction,
    ) -> Result<Vec<Stretch<Link>>> {
        self.view.moment()?.follow(space, trails, limit, direction).await
    }

    async fn areas(&self, space: &Space) -> Result<Vec<Area>> {
        self.view.moment()?.areas(space)
    }

    async fn pin(&self) -> Result<Arc<dyn Engine>> {
        Ok(Arc::new(Pinned::new(&self.capabilities, self.view.pin()?)))
    }

    async fn commit(&self, batch: Batch) -> Result<Outcome> {
        batch.check(&self.capabilities)?;
        let prepared = Box::new(Prepared::new(batch, &self.view.moment()?));
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Request::Commit(Ask { prepared, reply }))
            .map_err(|_| self.unanswered(Fate::DidNotHappen))?;
        match answer.await {
            Ok(answer) => answer.outcome,
            Err(_) => Err(self.unanswered(Fate::MayHaveHappened)),
        }
    }

    async fn read_log(
        &self,
        space: &Space,
        from: Position,
        entries_max: usize,
        bytes_max: usize,
    ) -> Result<LogSlice> {
        let allowance = Allowance::new(entries_max, bytes_max);
        let slice = log::read(&self.view.moment()?, space, from, allowance)?;
        pay_for_log(&slice).await;
        Ok(slice)
    }

    async fn trim_log(
        &self,
        space: &Space,
        before: Position,
        entries_max: usize,
    ) -> Result<LogBounds> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(Request::Trim(Trim { space: space.clone(), before, entries_max, reply }))
            .map_err(|_| self.unanswered(Fate::DidNotHappen))?;
        answer.await.unwrap_or_else(|_| Err(self.unanswered(Fate::MayHaveHappened)))
    }

    async fn extend_log(
        &self,
        space: &Space,
        at: Position,
        entries: &[Bytes],
    ) -> Result<LogBounds> {
        check_entries(&self.capabilities, entries)?;
        let (reply, answer) = oneshot::channel();
        let (space, entries) = (space.clone(), entries.to_vec());
        self.requests
            .send(Request::Extend(Extend { space, at, entries, reply }))
            .map_err(|_| self.unanswered(Fate::DidNotHappen))?;
        answer.await.unwrap_or_else(|_| Err(self.unanswered(Fate::MayHaveHappened)))
    }

    async fn wait_log(&self, space: &Space, beyond: Position) -> Result<Position> {
        let look = || {
            let next = log::bounds(&self.view.moment()?, space)?.next;
            Ok((next > beyond).then_some(next))
        };
        self.view.log_waiters().wait(space, look).await
    }

    fn figures(&self) -> Vec<Figure> {
        let mut figures = figures(&self.work, &self.view, &self.path);
        figures.push(Figure::count("disabled short cuts", self.trust.lost().into()));
        figures
    }

    async fn close(&self) -> Result<()> {
        let (reply, answer) = oneshot::channel();
        if self.requests.send(Request::Close(reply)).is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        let _ = self.requests.send(Request::Close(reply));
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread was reported to those who waited for it.
            let _ = thread.join();
        }
    }
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|error| {
        Error::new(ErrorKind::Unavailable, "a thread of the store cannot be started")
            .with("thread", name)
            .with("reason", &error)
            .with_source(error)
    })
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("is_closed", &self.view.is_closed()).finish()
    }
}
