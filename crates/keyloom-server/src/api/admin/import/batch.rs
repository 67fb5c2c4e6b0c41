//! A batch of an import: its lines are written once, however often the batch is sent.
//!
//! How the lines are written is decided once, and stored under the key of the batch:
//!
//! | kept | meaning |
//! | --- | --- |
//! | `together` | one commit wrote all lines that were not refused, and stored this answer with them |
//! | `halves` | they are too many for one commit: each half is a batch with a key of its own |
//! | `apart` | one line prevented the commit of the others: each line has a key of its own |
//!
//! A batch that is sent again is written in the stored way. Otherwise a line that was written alone
//! could be written again by a later commit of all lines.

use std::collections::HashSet;
use std::ops::Range;

use futures_util::{StreamExt, stream};
use keyloom::{Error, ErrorKind, Transaction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::line::{Import, Mode, Unwritten};
use super::lines::{Line, Lines};
use super::{AT_ONCE, Report, Task};
use crate::api::batch::derived_key;
use crate::problem::Problem;
use crate::refusal;

/// The most lines of a batch, and the most bytes that they have together.
pub(super) const LINES_MAX: usize = 1_000;
const BYTES_MAX: usize = 4 << 20;

/// After this many lines, other requests get their turn.
const LINES_AT_A_TIME: usize = 64;

/// A batch and its predecessor.
pub(super) struct Batch {
    /// The idempotency key of the request.
    pub(super) key: String,
    /// The key of an earlier batch. If this batch is to be written now, the answer to the earlier
    /// one must still be stored.
    pub(super) after: Option<String>,
}

/// One line that is not empty.
struct Read {
    /// Its number in the request, from 1.
    number: u64,
    /// The SHA-256 of its text.
    print: [u8; 32],
    import: Result<Import, Problem>,
}

/// The decision that is stored under the key of a batch.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The SHA-256 of the lines, in hex.
    print: String,
    way: Way,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Together { written: u64, errors: Vec<Value> },
    Halves,
    Apart,
}

/// Why the lines of a batch were not written together.
enum Refused {
    /// The commit was refused.
    Commit(Error),
    /// A line cannot be undone alone.
    Apart,
    /// The import cannot continue.
    Ended(Problem),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Refused::Commit(error)
    }
}

impl Refused {
    /// Another way to write the batch, if there is one.
    fn other_way(self, lines: usize) -> Result<Way, Problem> {
        let error = match self {
            Refused::Apart => return Ok(Way::Apart),
            Refused::Ended(problem) => return Err(problem),
            Refused::Commit(error) => error,
        };
        let kind = error.kind();
        let problem = Problem::from(error);
        // With many records, contention with other writers is more likely than with a single one.
        let is_of_lines = !problem.status().is_server_error() || kind == ErrorKind::Contention;
        match kind {
            _ if !is_of_lines => Err(problem),
            ErrorKind::LimitExceeded if lines > 1 => Ok(Way::Halves),
            _ => Ok(Way::Apart),
        }
    }
}

impl Task {
    /// Writes a batch, or reports what an earlier attempt did.
    pub(super) async fn run_batch(
        &self,
        batch: &Batch,
        lines: Lines,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let read = self.read_batch(lines, report).await?;
        let mut parts = Vec::from([Range { start: 0, end: read.len() }]);
        while let Some(range) = parts.pop() {
            let part = &read[range.clone()];
            let is_whole = range.len() == read.len();
            let (key, after) = match is_whole {
                true => (batch.key.clone(), batch.after.as_deref()),
                // The way of the whole batch was stored, which checked its predecessor.
                false => {
                    (derived_key(&batch.key, format!("{}+{}", range.start, range.len())), None)
                }
            };
            match self.way(&key, part, after).await? {
                Way::Together { written, errors } => report.add(written, errors),
                Way::Halves => {
                    let middle = range.start + range.len() / 2;
                    parts.extend([middle..range.end, range.start..middle]);
                }
                Way::Apart => {
                    let part = part.iter().map(|line| (line.number, line.import.as_ref()));
                    self.write_apart(part.collect(), report).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads every line of a batch.
    async fn read_batch(
        &self,
        mut lines: Lines,
        report: &mut Report,
    ) -> Result<Vec<Read>, Problem> {
        let (mut read, mut bytes) = (Vec::new(), 0);
        while let Some(line) = lines.next().await? {
            report.lines += 1;
            let (print, length) = match &line {
                Line::Text(text) => (Sha256::digest(text).into(), text.len()),
                Line::TooLong => ([0; 32], 0),
            };
            bytes += length;
            if read.len() == LINES_MAX || bytes > BYTES_MAX {
                return Err(refusal::limit_exceeded(format!(
                    "a batch of an import has at most {LINES_MAX} lines and {BYTES_MAX} bytes"
                )));
            }
            if let Line::Text(text) = &line
                && text.trim_ascii().is_empty()
            {
                continue;
            }
            read.push(Read { number: report.lines, print, import: self.read(line).await });
            if read.len().is_multiple_of(LINES_AT_A_TIME) {
                tokio::task::yield_now().await;
            }
        }
        Ok(read)
    }

    /// The way to write these lines, which is stored from now on. Lines that can be written are.
    async fn way(&self, key: &str, lines: &[Read], after: Option<&str>) -> Result<Way, Problem> {
        let print = self.print(lines);
        let attempt = |transaction| self.together(transaction, lines, after, &print);
        let kept: Kept = match self.store.transaction_once(key, attempt).await {
            Ok(kept) => kept,
            Err(refused) => {
                let way = refused.other_way(lines.len())?;
                let decided = || Kept { print: print.clone(), way: way.clone() };
                let decide = |_| async move { Ok::<_, Error>(decided()) };
                self.store.transaction_once(key, decide).await?
            }
        };
        match kept.print == print {
            true => Ok(kept.way),
            false => Err(Problem::idempotency_conflict()),
        }
    }

    /// Writes all lines in one transaction, except those that are refused.
    async fn together(
        &self,
        transaction: Transaction,
        lines: &[Read],
        after: Option<&str>,
        print: &str,
    ) -> Result<Kept, Refused> {
        if let Some(earlier) = after {
            self.require(earlier).await?;
        }
        let kept = |way| Kept { print: print.to_owned(), way };
        if !are_of_different_records(lines) {
            return Ok(kept(Way::Apart));
        }
        let write = |place: usize| self.write_within(&transaction, &lines[place]);
        let mut ended = stream::iter(0..lines.len()).map(write).buffered(AT_ONCE);
        let (mut written, mut errors) = (0, Vec::new());
        while let Some(end) = ended.next().await {
            match end? {
                None => written += 1,
                Some(error) => errors.push(error),
            }
        }
        Ok(kept(Way::Together { written, errors }))
    }

    /// Writes a line within a transaction; gives the report of it if it is refused.
    async fn write_within(
        &self,
        transaction: &Transaction,
        line: &Read,
    ) -> Result<Option<Value>, Refused> {
        let told = |problem: &Problem| json!({"line": line.number, "problem": problem.to_json()});
        let import = match &line.import {
            Ok(import) => import,
            Err(problem) => return Ok(Some(told(problem))),
        };
        match import.write_within(&self.store, transaction, self.mode).await {
            Ok(()) => Ok(None),
            Err(Unwritten::InPart(_)) => Err(Refused::Apart),
            Err(Unwritten::Whole(error)) => {
                let problem = Problem::from(error);
                match problem.status().is_server_error() {
                    true => Err(Refused::Ended(problem.with("line", line.number))),
                    false => Ok(Some(told(&problem))),
                }
            }
        }
    }

    /// Refuses to write an unknown batch, unless the answer to an earlier batch is still stored. If
    /// it is, this store took the earlier batch. Had this batch been written too, its answer would
    /// still be stored, since it is newer.
    async fn require(&self, earlier: &str) -> Result<(), Refused> {
        let unknown = |_| async { Err::<Value, _>(Refused::Ended(unknown_batch(earlier))) };
        self.store.transaction_once(earlier, unknown).await.map(drop)
    }

    /// Distinguishes batches with the same key.
    fn print(&self, lines: &[Read]) -> String {
        let mut hash = Sha256::new();
        hash.update(json!([self.collection, self.mode == Mode::Put]).to_string());
        lines.iter().for_each(|line| hash.update(line.print));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Within a transaction, the second write of a record leaves no trace of the first.
fn are_of_different_records(lines: &[Read]) -> bool {
    let mut subjects = HashSet::new();
    let mut known = lines.iter().filter_map(|line| line.import.as_ref().ok()?.subject());
    known.all(|subject| subjects.insert(subject))
}

fn unknown_batch(earlier: &str) -> Problem {
    let detail = "the store does not keep the answer to the batch that comes before this one, so \
                  that it cannot tell whether this one was written: it is another store, an older \
                  copy, or the time in [idempotency] keep is over";
    Problem::unknown_batch(detail).with("after", earlier)
}
