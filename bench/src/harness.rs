//! Runs one task on one store and measures it.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::rivals::{Hits, LIST, Rival, Session};
use crate::samples::Samples;
use crate::system;
use crate::workload::{self, Approval, RECORD_BYTES};

/// How many records are handed over at once to be loaded.
pub const LOAD_PART: u64 = 50_000;

/// The most records that are written in one second.
const WRITES_PER_SECOND_MAX: f64 = 50_000.0;

/// The most additions that are made in one second.
const INCREMENTS_PER_SECOND_MAX: f64 = 1_000_000.0;

/// An odd number that shares no factor with a power of ten: its multiples walk over all records.
const STRIDE: u64 = 7_368_787;

/// What is measured.
#[derive(Clone, Debug)]
pub enum Task {
    /// Lists of these users, one after the other.
    List { users: Vec<u64> },
    /// Look-ups of these records by their codes.
    LookUp { records: Vec<u64> },
    /// New records by so many writers for so long.
    Insert { writers: usize, time: Duration },
    /// Changes of status by so many writers for so long.
    Approve { writers: usize, time: Duration },
    /// Changes of one record, read and written, by so many writers for so long.
    Modify { writers: usize, time: Duration },
    /// Additions to one counter by so many writers for so long.
    Increment { writers: usize, time: Duration },
    /// Lists of these users, again and again for so long, while one writer inserts.
    ListWhileWriting { users: Vec<u64>, time: Duration },
}

/// What a task came to.
#[derive(Default)]
pub struct Measured {
    pub latencies: Samples,
    pub elapsed: Duration,
    /// What all threads of the process had of the processors meanwhile. Other load on the machine
    /// hardly changes it.
    pub processor: Duration,
    /// What a writer beside the task did per second; the sum of all rounds.
    pub writes_beside: f64,
    /// What the caches had meanwhile.
    pub hits: Vec<Hits>,
}

impl Measured {
    /// Takes in another round.
    pub fn add(&mut self, round: Measured) {
        self.latencies.append(round.latencies);
        self.elapsed += round.elapsed;
        self.processor += round.processor;
        self.writes_beside += round.writes_beside;
        match self.hits.is_empty() {
            true => self.hits = round.hits,
            false => self.hits.iter_mut().zip(&round.hits).for_each(|(sum, one)| sum.add(one)),
        }
    }
}

/// A rival on its folder. What was loaded stays there for later runs.
pub trait Contestant {
    fn name(&self) -> &'static str;
    fn folder(&self) -> &Path;
    /// Loads records until there are as many as the store is to have. Measures each part of them.
    fn load(&mut self) -> Result<Measured>;
    fn run(&mut self, task: &Task) -> Result<Measured>;
    fn open(&mut self) -> Result<()>;
    fn close(&mut self) -> Result<()>;
}

/// See [`Contestant`].
pub struct Stage<R: Rival> {
    folder: PathBuf,
    cache_bytes: u64,
    /// How many records are loaded. Tasks that write add more.
    size: u64,
    open: Option<Open<R>>,
    progress: Progress,
}

/// An open store with the one session that reads: SQLite's cache belongs to its connection.
struct Open<R: Rival> {
    reader: R::Session,
    rival: R,
}

/// What a store holds, beside it in a file.
#[derive(Clone, Copy, Default)]
struct Progress {
    records: u64,
    approved: u64,
}

impl<R: Rival> Stage<R> {
    pub fn new(parent: &Path, size: u64, cache_bytes: u64) -> Result<Self> {
        let folder = parent.join(format!("{}-{size}", R::NAME.to_lowercase()));
        std::fs::create_dir_all(&folder)?;
        let progress = Progress::read(&folder)?;
        Ok(Stage { folder, cache_bytes, size, open: None, progress })
    }

    fn rival(&self) -> Result<&R> {
        self.open.as_ref().map(|open| &open.rival).context("the store is closed")
    }

    fn approval(&self, number: u64) -> Approval {
        Approval::new(number, workload::users_of(self.size))
    }

    /// More new records than can be written in this time.
    fn fresh(&self, time: Duration) -> Vec<Approval> {
        let first = self.progress.records;
        let end = first + (time.as_secs_f64() * WRITES_PER_SECOND_MAX) as u64;
        (first..end).map(|number| self.approval(number)).collect()
    }

    fn insert(&mut self, writers: usize, time: Duration) -> Result<Measured> {
        let pool = self.fresh(time);
        let insert =
            async |session: &mut R::Session, record: &Approval| session.insert(record).await;
        let measured = self.race(writers, time, &pool, insert)?;
        self.progress.records += measured.latencies.count() as u64;
        self.progress.write(&self.folder)?;
        Ok(measured)
    }

    fn approve(&mut self, writers: usize, time: Duration) -> Result<Measured> {
        let left = self.size.saturating_sub(self.progress.approved);
        ensure!(left > 0, "every record is approved already; load the store again");
        let most = left.min((time.as_secs_f64() * WRITES_PER_SECOND_MAX) as u64);
        let first = self.progress.approved;
        let pool: Vec<String> =
            (first..first + most).map(|turn| workload::id((turn * STRIDE) % self.size)).collect();
        let approve = async |session: &mut R::Session, id: &String| session.approve(id).await;
        let measured = self.race(writers, time, &pool, approve)?;
        self.progress.approved += measured.latencies.count() as u64;
        self.progress.write(&self.folder)?;
        Ok(measured)
    }

    fn modify(&mut self, writers: usize, time: Duration) -> Result<Measured> {
        let pool = vec![(); (time.as_secs_f64() * WRITES_PER_SECOND_MAX) as usize];
        self.race(writers, time, &pool, async |session: &mut R::Session, ()| session.modify().await)
    }

    fn increment(&mut self, writers: usize, time: Duration) -> Result<Measured> {
        let pool = vec![(); (time.as_secs_f64() * INCREMENTS_PER_SECOND_MAX) as usize];
        self.race(writers, time, &pool, async |session: &mut R::Session, ()| {
            session.increment().await
        })
    }

    /// Writers take work from the pool until it is empty or the time is over. What is begun is
    /// finished, so that the pool is used up to one point.
    fn race<W: Sync>(
        &self,
        writers: usize,
        time: Duration,
        pool: &[W],
        write: impl AsyncFn(&mut R::Session, &W) -> Result<()> + Sync,
    ) -> Result<Measured> {
        let rival = self.rival()?;
        let (next, start) = (AtomicUsize::new(0), Barrier::new(writers + 1));
        let work = || {
            let mut session = rival.session()?;
            let mut latencies = Samples::default();
            start.wait();
            let began = Instant::now();
            wait(async {
                while began.elapsed() < time {
                    let Some(item) = pool.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let began = Instant::now();
                    write(&mut session, item).await?;
                    latencies.push(began.elapsed());
                }
                anyhow::Ok(latencies)
            })
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
            start.wait();
            let watch = Watch::start();
            let mut all = Samples::default();
            for thread in threads {
                all.append(join(thread)?);
            }
            Ok(watch.stop(all))
        })
    }

    /// Reads one thing after the other; each answer has at least so many bytes.
    fn read(
        &mut self,
        items: &[String],
        bytes_min: usize,
        read: impl AsyncFn(&mut R::Session, &str) -> Result<usize>,
    ) -> Result<Measured> {
        let Open { reader, .. } = self.open.as_mut().context("the store is closed")?;
        let mut latencies = Samples::default();
        let watch = Watch::start();
        wait(async {
            for item in items {
                let began = Instant::now();
                let bytes = read(reader, item).await?;
                latencies.push(began.elapsed());
                ensure!(bytes >= bytes_min, "{item} has {bytes} bytes");
            }
            Ok(())
        })?;
        Ok(watch.stop(latencies))
    }

    fn list_while_writing(&mut self, users: &[u64], time: Duration) -> Result<Measured> {
        let pool = self.fresh(time);
        let users: Vec<String> = users.iter().map(|&user| workload::user(user)).collect();
        let Open { reader, rival } = self.open.as_mut().context("the store is closed")?;
        let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        let write = || {
            let mut session = rival.session()?;
            wait(async {
                for record in &pool {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    session.insert(record).await?;
                    written.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        };
        let mut measured = std::thread::scope(|scope| {
            let writer = scope.spawn(write);
            let mut latencies = Samples::default();
            let watch = Watch::start();
            let listed = wait(async {
                for user in users.iter().cycle() {
                    let began = Instant::now();
                    reader.list(user).await?;
                    latencies.push(began.elapsed());
                    if watch.elapsed() > time {
                        break;
                    }
                }
                anyhow::Ok(())
            });
            let measured = watch.stop(latencies);
            is_over.store(true, Ordering::Relaxed);
            join(writer)?;
            listed.map(|()| measured)
        })?;
        let written = written.into_inner();
        measured.writes_beside = written as f64 / measured.elapsed.as_secs_f64();
        self.progress.records += written;
        self.progress.write(&self.folder)?;
        Ok(measured)
    }
}

/// Measures the time of a task, and what it takes of the processors.
struct Watch {
    began: Instant,
    processor: Duration,
}

impl Watch {
    fn start() -> Self {
        Watch { began: Instant::now(), processor: system::processor_time() }
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn stop(&self, latencies: Samples) -> Measured {
        let processor = system::processor_time().saturating_sub(self.processor);
        Measured { latencies, elapsed: self.elapsed(), processor, ..Measured::default() }
    }
}

impl<R: Rival> Contestant for Stage<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn load(&mut self) -> Result<Measured> {
        let mut measured = Measured::default();
        let mut session = self.rival()?.session()?;
        while self.progress.records < self.size {
            let first = self.progress.records;
            let end = self.size.min(first + LOAD_PART);
            let part: Vec<Approval> = (first..end).map(|number| self.approval(number)).collect();
            let watch = Watch::start();
            wait(session.load(&part))?;
            let mut latencies = Samples::default();
            latencies.push(watch.elapsed() / (end - first) as u32);
            measured.add(watch.stop(latencies));
            self.progress.records = end;
        }
        self.progress.write(&self.folder)?;
        Ok(measured)
    }

    fn run(&mut self, task: &Task) -> Result<Measured> {
        let names = |numbers: &[u64], name: fn(u64) -> String| {
            numbers.iter().map(|&number| name(number)).collect::<Vec<_>>()
        };
        let before = self.rival()?.hits();
        let mut measured = match task {
            Task::List { users } => {
                let users = names(users, workload::user);
                self.read(&users, LIST * RECORD_BYTES, async |session, user| {
                    session.list(user).await
                })
            }
            Task::LookUp { records } => {
                let codes = names(records, workload::code);
                self.read(&codes, RECORD_BYTES, async |session, code| session.look_up(code).await)
            }
            Task::Insert { writers, time } => self.insert(*writers, *time),
            Task::Approve { writers, time } => self.approve(*writers, *time),
            Task::Modify { writers, time } => self.modify(*writers, *time),
            Task::Increment { writers, time } => self.increment(*writers, *time),
            Task::ListWhileWriting { users, time } => self.list_while_writing(users, *time),
        }?;
        let after = self.rival()?.hits();
        measured.hits =
            after.iter().zip(&before).map(|(after, before)| after.since(before)).collect();
        Ok(measured)
    }

    fn open(&mut self) -> Result<()> {
        if self.open.is_none() {
            let rival = R::open(&self.folder, self.cache_bytes)?;
            self.open = Some(Open { reader: rival.session()?, rival });
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some(Open { reader, rival }) = self.open.take() else { return Ok(()) };
        drop(reader);
        rival.close()
    }
}

impl Progress {
    fn path(folder: &Path) -> PathBuf {
        folder.with_extension("progress")
    }

    fn read(folder: &Path) -> Result<Self> {
        let Ok(text) = std::fs::read_to_string(Progress::path(folder)) else {
            return Ok(Progress::default());
        };
        let (records, approved) = text.trim().split_once(' ').context("two numbers")?;
        Ok(Progress { records: records.parse()?, approved: approved.parse()? })
    }

    fn write(self, folder: &Path) -> Result<()> {
        let Progress { records, approved } = self;
        Ok(std::fs::write(Progress::path(folder), format!("{records} {approved}\n"))?)
    }
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}

/// Runs a future on this thread.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = system::runtime();
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
