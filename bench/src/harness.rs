//! Runs one task on one store and measures it.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::rivals::{LIST, Rival, Session};
use crate::samples::Samples;
use crate::system;
use crate::workload::{self, Approval, RECORD_BYTES};

/// How many records are loaded with one sync.
const LOAD_BATCH: u64 = 1_000;

/// The most records that a writer is given for one second.
const INSERTS_PER_SECOND_MAX: f64 = 50_000.0;

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
    /// Lists of these users, again and again for so long, while one writer inserts.
    ListWhileWriting { users: Vec<u64>, time: Duration },
}

/// What a task came to.
#[derive(Default)]
pub struct Measured {
    pub latencies: Samples,
    pub elapsed: Duration,
    /// What a writer beside the task did per second.
    pub writes_beside: f64,
}

/// A rival on its folder. What was loaded stays there for later runs.
pub trait Contestant {
    fn name(&self) -> &'static str;
    fn folder(&self) -> &Path;
    /// Loads records until there are as many as the store is to have. Measures each batch.
    fn load(&mut self) -> Result<Measured>;
    fn run(&mut self, task: &Task) -> Result<Measured>;
    fn open(&mut self) -> Result<()>;
    fn close(&mut self) -> Result<()>;
}

/// See [`Contestant`].
pub struct Stage<R> {
    folder: PathBuf,
    cache_bytes: u64,
    /// How many records are loaded. Tasks that write add more.
    size: u64,
    rival: Option<R>,
    progress: Progress,
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
        Ok(Stage { folder, cache_bytes, size, rival: None, progress })
    }

    fn rival(&self) -> Result<&R> {
        self.rival.as_ref().context("the store is closed")
    }

    fn approval(&self, number: u64) -> Approval {
        Approval::new(number, workload::users_of(self.size))
    }

    fn insert(&mut self, writers: usize, time: Duration) -> Result<Measured> {
        let most = (time.as_secs_f64() * INSERTS_PER_SECOND_MAX) as u64;
        let first = self.progress.records;
        let pool: Vec<Approval> =
            (first..first + most).map(|number| self.approval(number)).collect();
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
        let most = left.min((time.as_secs_f64() * INSERTS_PER_SECOND_MAX) as u64);
        let first = self.progress.approved;
        let pool: Vec<String> =
            (first..first + most).map(|turn| workload::id((turn * STRIDE) % self.size)).collect();
        let approve = async |session: &mut R::Session, id: &String| session.approve(id).await;
        let measured = self.race(writers, time, &pool, approve)?;
        self.progress.approved += measured.latencies.count() as u64;
        self.progress.write(&self.folder)?;
        Ok(measured)
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
        let (next, start) = (AtomicUsize::new(0), Barrier::new(writers));
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
                anyhow::Ok(())
            })?;
            anyhow::Ok((latencies, began.elapsed()))
        };
        let done: Result<Vec<_>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..writers).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(join).collect()
        });
        let mut measured = Measured::default();
        for (latencies, elapsed) in done? {
            measured.latencies.append(latencies);
            measured.elapsed = measured.elapsed.max(elapsed);
        }
        Ok(measured)
    }

    fn read(
        &self,
        items: &[String],
        read: impl AsyncFn(&mut R::Session, &str) -> Result<usize>,
    ) -> Result<Measured> {
        let mut session = self.rival()?.session()?;
        let mut latencies = Samples::default();
        let began = Instant::now();
        wait(async {
            for item in items {
                let began = Instant::now();
                let bytes = read(&mut session, item).await?;
                latencies.push(began.elapsed());
                ensure!(
                    bytes.is_multiple_of(RECORD_BYTES) && bytes > 0 || bytes > LIST,
                    "{item} has {bytes} bytes"
                );
            }
            Ok(())
        })?;
        Ok(Measured { latencies, elapsed: began.elapsed(), writes_beside: 0.0 })
    }

    fn list_while_writing(&mut self, users: &[u64], time: Duration) -> Result<Measured> {
        let most = (time.as_secs_f64() * INSERTS_PER_SECOND_MAX) as u64;
        let first = self.progress.records;
        let pool: Vec<Approval> =
            (first..first + most).map(|number| self.approval(number)).collect();
        let users: Vec<String> = users.iter().map(|&user| workload::user(user)).collect();
        let rival = self.rival()?;
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
        let measured = std::thread::scope(|scope| {
            let writer = scope.spawn(write);
            let mut session = rival.session()?;
            let mut latencies = Samples::default();
            let began = Instant::now();
            let listed = wait(async {
                for user in users.iter().cycle() {
                    let began_list = Instant::now();
                    session.list(user).await?;
                    latencies.push(began_list.elapsed());
                    if began.elapsed() > time {
                        break;
                    }
                }
                anyhow::Ok(())
            });
            let elapsed = began.elapsed();
            is_over.store(true, Ordering::Relaxed);
            join(writer)?;
            listed?;
            let writes_beside = written.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64();
            anyhow::Ok(Measured { latencies, elapsed, writes_beside })
        })?;
        self.progress.records += written.into_inner();
        self.progress.write(&self.folder)?;
        Ok(measured)
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
            let end = self.size.min(first + LOAD_BATCH);
            let batch: Vec<Approval> = (first..end).map(|number| self.approval(number)).collect();
            let began = Instant::now();
            wait(session.load(&batch))?;
            measured.latencies.push(began.elapsed() / (end - first) as u32);
            measured.elapsed += began.elapsed();
            self.progress.records = end;
        }
        self.progress.write(&self.folder)?;
        Ok(measured)
    }

    fn run(&mut self, task: &Task) -> Result<Measured> {
        let names = |numbers: &[u64], name: fn(u64) -> String| {
            numbers.iter().map(|&number| name(number)).collect::<Vec<_>>()
        };
        match task {
            Task::List { users } => self
                .read(&names(users, workload::user), async |session, user| {
                    session.list(user).await
                }),
            Task::LookUp { records } => self
                .read(&names(records, workload::code), async |session, code| {
                    session.look_up(code).await
                }),
            Task::Insert { writers, time } => self.insert(*writers, *time),
            Task::Approve { writers, time } => self.approve(*writers, *time),
            Task::ListWhileWriting { users, time } => self.list_while_writing(users, *time),
        }
    }

    fn open(&mut self) -> Result<()> {
        if self.rival.is_none() {
            self.rival = Some(R::open(&self.folder, self.cache_bytes)?);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.rival.take().map_or(Ok(()), R::close)
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
