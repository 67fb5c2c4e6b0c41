//! Who works on a task, and how others wait for them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::Stamp;
use crate::record::{now_ms, random_bytes};

/// For how long an owner may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// How long others wait before they look again: at first, and at most.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(250);

/// Until when an owner will be heard of again, in milliseconds since 1970.
pub(super) fn deadline() -> u64 {
    now_ms().saturating_add(u64::try_from(SILENCE.as_millis()).unwrap_or(u64::MAX))
}

/// Somebody who waits for the owner of a task.
#[derive(Default)]
pub(super) struct Look {
    looks: u32,
    /// The cell as it is, and since when.
    unchanged: Option<(Stamp, Instant)>,
}

impl Look {
    /// Whether the cell has been as it is for longer than an owner is silent.
    pub(super) fn is_silent(&mut self, seen: Option<Stamp>) -> bool {
        match (&self.unchanged, seen) {
            (Some((stamp, since)), Some(seen)) if *stamp == seen => since.elapsed() > SILENCE,
            (_, seen) => {
                self.unchanged = seen.map(|seen| (seen, Instant::now()));
                false
            }
        }
    }

    pub(super) fn has_waited(&self) -> bool {
        self.looks > 0
    }

    pub(super) async fn pause(&mut self) {
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
pub(super) struct Owner {
    number: u64,
    pub(super) text: String,
}

impl Owner {
    pub(super) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        at_work().insert(number);
        Owner { number, text: format!("{}-{number}", *PROCESS) }
    }

    /// Whether an owner is known to have ended: one of this process that is no longer at work, or
    /// any other one where no other process can have the store open.
    pub(super) fn has_ended(text: &str, is_alone: bool) -> bool {
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
