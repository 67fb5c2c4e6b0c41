//! What is asked of the operating system: idle processors, cold files, memory, disk space.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long the process must have been idle to count as settled, and how long to wait for it.
const IDLE: Duration = Duration::from_millis(1_500);
const IDLE_WAIT_MAX: Duration = Duration::from_secs(300);
const IDLE_STEP: Duration = Duration::from_millis(250);
const BUSY_MIN: Duration = Duration::from_millis(10);

/// A runtime that runs everything on the thread that waits.
#[allow(clippy::expect_used, reason = "without a runtime there is nothing to measure")]
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Waits until the threads of the stores (compaction, flushing) have nothing left to do.
pub fn settle() {
    let began = Instant::now();
    let (mut before, mut idle) = (processor_time(), Duration::ZERO);
    while idle < IDLE && began.elapsed() < IDLE_WAIT_MAX {
        std::thread::sleep(IDLE_STEP);
        let now = processor_time();
        idle = if now - before < BUSY_MIN { idle + IDLE_STEP } else { Duration::ZERO };
        before = now;
    }
}

/// The time that all threads of this process have had a processor.
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Makes the operating system forget the files below a folder, after it has written them.
pub fn evict(folder: &Path) -> Result<()> {
    for_each_file(folder, &mut |path| {
        let file = File::open(path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    })
}

/// The bytes that the files below a folder occupy.
pub fn disk_bytes(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for_each_file(folder, &mut |path| {
        bytes += fs::metadata(path)?.blocks() * 512;
        Ok(())
    })?;
    Ok(bytes)
}

/// The memory of this process that is its own, not the operating system's cache of files.
pub fn memory_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).context("RssAnon")?;
    let kib: u64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kib * 1024)
}

fn for_each_file(folder: &Path, action: &mut impl FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { for_each_file(&path, action)? } else { action(&path)? }
    }
    Ok(())
}
