//! Lines that are written by themselves, several at once, those of one record in their order.
//!
//! In a batch a line that is refused stays refused: its key keeps the refusal. Otherwise it could
//! be written when the batch is sent again, over a later line of its record, or by an answer that
//! differs from the first.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use futures_util::{StreamExt, TryStreamExt, stream};
use keyloom::{Error, ErrorKind};
use serde_json::{Value, json};

use super::line::{Import, KeptLine};
use super::{AT_ONCE, Report, Task};
use crate::api::batch::derived_key;
use crate::api::operation::{Lane, lanes};
use crate::problem::Problem;

/// What a line came to.
pub(super) enum LineEnd {
    Written,
    Refused(Problem),
    /// It was refused, and its key tells so.
    StaysRefused(Value),
}

impl LineEnd {
    /// Whether a line may only have come too soon: a value that it claims is given up by another
    /// line that is written at the same time.
    fn may_be_early(&self) -> bool {
        matches!(self, LineEnd::Refused(problem) if problem.status() == StatusCode::CONFLICT)
    }
}

impl Task {
    /// Writes lines. A refusal of one line is noted, an error of the store ends the import.
    pub(super) async fn write_apart(
        &self,
        read: Vec<(u64, Result<&Import, &Problem>)>,
        report: &mut Report,
    ) -> Result<(), Problem> {
        let subjects = read.iter().map(|(_, read)| read.ok().and_then(Import::subject));
        let lanes = lanes(subjects.collect::<Vec<_>>());
        let mut is_followed = vec![false; read.len()];
        for place in lanes.iter().flat_map(|lane| lane.iter().rev().skip(1)) {
            is_followed[*place] = true;
        }
        let (read, is_followed) = (&read, &is_followed);
        let work_off = |lane: Lane| async move {
            let mut ended = Vec::with_capacity(lane.len());
            for place in lane {
                let Some((number, Ok(import))) = read.get(place) else { continue };
                let end = self.write(*number, import).await;
                // It is written again later, and what follows of its record after it.
                if end.may_be_early() {
                    break;
                }
                ended.push((place, self.before_next(*number, end, is_followed[place]).await));
            }
            ended
        };
        let ended = stream::iter(lanes).map(work_off).buffer_unordered(AT_ONCE);
        let mut ended: Vec<(usize, Result<LineEnd, Problem>)> =
            ended.collect::<Vec<_>>().await.into_iter().flatten().collect();
        ended.sort_by_key(|(place, _)| *place);
        let mut ended = ended.into_iter().peekable();
        let mut ends = Vec::with_capacity(read.len());
        for (place, (number, read)) in read.iter().enumerate() {
            let end = match (read, ended.next_if(|(of, _)| *of == place)) {
                (Err(problem), _) => Err(problem.to_json()),
                (Ok(_), Some((_, end))) => told(*number, end?)?,
                (Ok(import), None) => {
                    let end = self.write(*number, import).await;
                    told(*number, self.before_next(*number, end, is_followed[place]).await?)?
                }
            };
            ends.push((*number, end));
        }
        let settle = |(number, end)| async move {
            let settled = self.settled(number, end).await;
            settled.map(|end| (number, end))
        };
        let settled = stream::iter(ends).map(settle).buffered(AT_ONCE).try_collect::<Vec<_>>();
        settled.await?.into_iter().for_each(|(number, end)| report.note(number, end));
        Ok(())
    }

    async fn write(&self, number: u64, import: &Import) -> LineEnd {
        let once = self.once.as_ref().map(|key| derived_key(key, number));
        import.write(&self.store, self.mode, once.as_deref()).await
    }

    /// Makes sure that a refused line stays refused before the next line of its record is written.
    async fn before_next(
        &self,
        number: u64,
        end: LineEnd,
        is_followed: bool,
    ) -> Result<LineEnd, Problem> {
        match end {
            LineEnd::Refused(problem) if is_followed && !problem.status().is_server_error() => {
                match self.settled(number, Err(problem.to_json())).await? {
                    Ok(()) => Ok(LineEnd::Written),
                    Err(refusal) => Ok(LineEnd::StaysRefused(refusal)),
                }
            }
            end => Ok(end),
        }
    }

    /// Has the key of a refused line of a batch keep the refusal. Whoever sends the same batch at
    /// the same time may have come first, with another end.
    async fn settled(
        &self,
        number: u64,
        end: Result<(), Value>,
    ) -> Result<Result<(), Value>, Problem> {
        let (Err(refusal), true, Some(key)) = (&end, self.is_batch, &self.once) else {
            return Ok(end);
        };
        let key = derived_key(key, number);
        let kept = match self.keep(&key, refusal).await {
            // What it says of the record does not fit beside the rest.
            Err(error) if error.kind() == ErrorKind::LimitExceeded => {
                self.keep(&key, &shortened(refusal)).await?
            }
            kept => kept?,
        };
        Ok(kept.refusal.map_or(Ok(()), Err))
    }

    async fn keep(&self, key: &str, refusal: &Value) -> Result<KeptLine, Error> {
        let refuse = |_| async { Ok::<_, Error>(KeptLine::refused(refusal)) };
        self.store.transaction_once(key, refuse).await
    }
}

/// A refusal without its particulars.
fn shortened(refusal: &Value) -> Value {
    let kept = ["type", "title", "status", "outcome", "retry"];
    json!(kept.map(|name| (name, &refusal[name])).into_iter().collect::<BTreeMap<_, _>>())
}

/// What is told of a line; an error of the store itself, which the next lines would meet too, is
/// the end of the import.
fn told(number: u64, end: LineEnd) -> Result<Result<(), Value>, Problem> {
    match end {
        LineEnd::Written => Ok(Ok(())),
        LineEnd::StaysRefused(refusal) => Ok(Err(refusal)),
        LineEnd::Refused(problem) if problem.status().is_server_error() => {
            Err(problem.with("line", number))
        }
        LineEnd::Refused(problem) => Ok(Err(problem.to_json())),
    }
}
