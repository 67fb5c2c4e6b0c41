//! Writes lines one by one: several at once, but those of one record in order.
//!
//! A refused line of a batch stays refused: the refusal is stored under its key. Otherwise the line
//! could be written when the batch is sent again. It could then overwrite a later line of the same
//! record, and the answer would differ from the first.

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

/// The outcome of a line.
pub(super) enum LineEnd {
    Written,
    Refused(Problem),
    /// It was refused, and the refusal is stored under its key.
    StaysRefused(Value),
}

impl LineEnd {
    /// Whether the line may only have come too early: another line that is written at the same time
    /// gives up the value that it claims.
    fn may_be_early(&self) -> bool {
        matches!(self, LineEnd::Refused(problem) if problem.status() == StatusCode::CONFLICT)
    }
}

impl Task {
    /// Writes lines. The refusal of a line is reported; an error of the store ends the import.
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
                // It is written again later, followed by the later lines of its record.
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

    /// Makes sure that a refused line stays refused, before the next line of its record is written.
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

    /// Stores the refusal of a line in a batch under its key. Another request with the same batch
    /// may have been first, with another outcome.
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
            // The details about the record do not fit beside the rest.
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

/// A refusal without details.
fn shortened(refusal: &Value) -> Value {
    let kept = ["type", "title", "status", "outcome", "retry"];
    json!(kept.map(|name| (name, &refusal[name])).into_iter().collect::<BTreeMap<_, _>>())
}

/// The report of a line. An error of the store itself would meet the next lines too, so it ends the
/// import.
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
