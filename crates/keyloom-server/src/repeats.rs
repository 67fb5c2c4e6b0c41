//! Limits how often the same line is logged.
//!
//! A caller can cause the same log line with every request, for instance by writing to a store that
//! has turned read-only, or by reading a damaged record a thousand times in one batch. The first
//! such line is logged at once. Afterwards it is logged at most once a minute, with the number of
//! those in between.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Level;

/// How long a logged line is not logged again.
const PAUSE: Duration = Duration::from_secs(60);

/// How many lines are remembered. If there are more, all of them may be logged again.
const LINES_MAX: usize = 256;

/// The lines that this process has logged.
static TOLD: Repeats = Repeats::new();

/// Warns about something that callers cause, but that no single caller is to blame for.
pub(crate) fn warn(what: &str) {
    if tracing::enabled!(Level::WARN)
        && let Some(repeated) = TOLD.come(what)
    {
        tracing::warn!(repeated, "{what}");
    }
}

/// Logs why requests fail.
pub(crate) fn error(why: &str) {
    if tracing::enabled!(Level::ERROR)
        && let Some(repeated) = TOLD.come(why)
    {
        tracing::error!(error = why, repeated, "a request failed");
    }
}

/// The logged lines.
#[derive(Debug)]
struct Repeats(Mutex<Option<HashMap<String, Told>>>);

#[derive(Clone, Copy, Debug)]
struct Told {
    last: Instant,
    /// How many times the line was suppressed since.
    kept_back: u64,
}

impl Repeats {
    /// Starts without any lines.
    const fn new() -> Self {
        Repeats(Mutex::new(None))
    }

    /// If the line is to be logged now: how many times it was suppressed since the last time.
    fn come(&self, line: &str) -> Option<u64> {
        let now = Instant::now();
        // Each change leaves the map consistent before anything can panic.
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = lines.get_or_insert_default();
        match lines.get_mut(line) {
            Some(told) if now.duration_since(told.last) < PAUSE => {
                told.kept_back += 1;
                None
            }
            Some(told) => {
                let before = told.kept_back;
                *told = Told { last: now, kept_back: 0 };
                Some(before)
            }
            None => {
                if lines.len() >= LINES_MAX {
                    lines.clear();
                }
                lines.insert(line.to_owned(), Told { last: now, kept_back: 0 });
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_told_and_then_one_a_minute_with_the_number_of_the_others() {
        let repeats = Repeats::new();
        assert_eq!(repeats.come("full"), Some(0));
        for _ in 0..40 {
            assert_eq!(repeats.come("full"), None);
        }
        assert_eq!(repeats.come("other"), Some(0), "another line has a minute of its own");
        tokio::time::advance(PAUSE - Duration::from_millis(1)).await;
        assert_eq!(repeats.come("full"), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(repeats.come("full"), Some(41));
        assert_eq!(repeats.come("full"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_remembers_so_many_and_no_more() {
        let repeats = Repeats::new();
        for line in 0..10 * LINES_MAX {
            assert_eq!(repeats.come(&line.to_string()), Some(0));
        }
        let remembered = repeats.0.lock().map(|lines| lines.as_ref().map_or(0, HashMap::len));
        assert!(remembered.is_ok_and(|count| count <= LINES_MAX));
    }
}
