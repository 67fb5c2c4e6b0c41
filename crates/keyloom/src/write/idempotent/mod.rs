//! Writes that carry an idempotency key happen once, however often they are sent.
//!
//! The key is looked up first. If it has no answer yet, the write puts one in its own batch, under
//! the condition that there still is none. When that fails, the key is looked up again: an answer
//! that was lost is there, and so is that of a rival that sent the same. So an outcome that is not
//! known can be repeated, and is.

mod replay;
mod request;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use replay::{Added, Failed, Failure, Json, Replay};
pub(crate) use request::Request;

use bytes::Bytes;

use crate::engine::{Batch, Condition, Outcome, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::side::{Answer, Kept, came_first, claim_entry, is_over};
use crate::space::{Claim, Loaded, Retry, Session, Under, past_fence};

/// How a write is repeated whose outcome is not known.
const RETRY: Retry = Retry {
    attempts: 8,
    first_pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(500),
    jitter: 0.5,
};

/// How often a write is tried again because the schema changed under it.
const SCHEMAS: usize = 16;

/// What is known of a key.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    /// It has no answer; what is there, if anything, is over.
    Free(Option<Stamp>),
    Answered(Box<Kept>),
}

/// Carries out a write with the session that it is given; or gives the answer that it got before,
/// if its key was used already. A macro, since no bound can say that the future of an async
/// closure may be sent to another thread.
macro_rules! once {
    ($session:expr, $request:expr, |$armed:ident| $write:expr) => {{
        let mut sending = $crate::write::Sending::new($session, &$request);
        loop {
            let $armed = match sending.begin().await {
                Ok($crate::write::Begun::Write(session)) => session,
                Ok($crate::write::Begun::Answered(answer)) => break Ok(answer),
                Err(failure) => break Err(failure),
            };
            let outcome = $write.await;
            if let Some(settled) = sending.settle(outcome).await {
                break settled;
            }
        }
    }};
}

pub(crate) use once;

/// A write on its way, from the first attempt to its answer.
pub(crate) struct Sending<'s, E> {
    session: &'s Session,
    /// The fingerprint of the request.
    asked: String,
    /// What is known of the key, if that was looked up since the last attempt.
    known: Option<Known>,
    /// The stamp that the present attempt replaces, and the session that it has.
    armed: Option<(Option<Stamp>, Session)>,
    /// The schema as it was known when the attempt began.
    schema: Option<Arc<Loaded>>,
    /// How often an attempt was refused by a schema that has changed since.
    outdated: usize,
    /// How often the store could not be reached.
    missed: u32,
    /// The gravest of these failures.
    in_doubt: Option<E>,
}

/// What is to be done next.
pub(crate) enum Begun<A> {
    /// The write, with this session.
    Write(Session),
    /// Nothing: it was answered before.
    Answered(A),
}

impl<'s, E: Failure> Sending<'s, E> {
    pub(crate) fn new(session: &'s Session, request: &Request<'_>) -> Self {
        Sending {
            session,
            asked: session.key().map(|_| request.fingerprint()).unwrap_or_default(),
            // A write that reads nothing does not read its key either.
            known: request.is_blind().then_some(Known::Free(None)),
            armed: None,
            schema: None,
            outdated: 0,
            missed: 0,
            in_doubt: None,
        }
    }

    /// Looks the key up, unless that is known, and begins an attempt.
    pub(crate) async fn begin<A: Replay>(&mut self) -> Result<Begun<A>, E> {
        // If it cannot be read, the write itself will say so.
        self.schema = self.session.live.loaded().await.ok();
        let Some(key) = self.session.key() else {
            return Ok(Begun::Write(self.session.clone()));
        };
        let stamp = loop {
            let known = match self.known.take() {
                Some(known) => Ok(known),
                None => look_up(self.session).await,
            };
            match known {
                Ok(Known::Free(stamp)) => break stamp,
                Ok(Known::Answered(kept)) => {
                    return Ok(Begun::Answered(replayed(&kept, &self.asked)?));
                }
                Err(error) => self.try_again(error.into()).await?,
            }
        };
        let condition = stamp.map_or(Condition::Absent, Condition::Unchanged);
        let address = key.address(self.session.actor());
        let claim = Claim::new(address, condition, self.asked.clone());
        let session = self.session.claiming(Arc::new(claim));
        self.armed = Some((stamp, session.clone()));
        Ok(Begun::Write(session))
    }

    /// What follows from the outcome of an attempt: the end, or another attempt.
    pub(crate) async fn settle<A: Replay>(
        &mut self,
        outcome: Result<A, E>,
    ) -> Option<Result<A, E>> {
        let armed = self.armed.take();
        if self.is_outdated(&outcome).await {
            return None;
        }
        let Some((stamp, session)) = armed else { return Some(outcome) };
        let failure = match outcome {
            Err(failure) => failure,
            Ok(answer) => match keep(&session, &answer).await {
                Ok(true) => return Some(Ok(answer)),
                Ok(false) => return None,
                Err(error) => error.into(),
            },
        };
        if failure.is_unavailable() {
            return self.try_again(failure).await.err().map(Err);
        }
        match look_up(self.session).await {
            // It was refused for another reason than its key.
            Ok(now) if now == Known::Free(stamp) => Some(Err(self.for_certain(failure))),
            Ok(now) => {
                self.known = Some(now);
                None
            }
            // It may have been refused because it happened before.
            Err(error) => self.try_again(error.into()).await.err().map(Err),
        }
    }

    /// Whether another attempt, under a schema that somebody else has changed, may come to
    /// something else: this one was refused or passed over by what the old one says.
    async fn is_outdated<A: Replay>(&mut self, outcome: &Result<A, E>) -> bool {
        let Some(known) = self.schema.take().filter(|_| self.outdated < SCHEMAS) else {
            return false;
        };
        let is_outdated = match outcome {
            Err(failure) => match failure.error() {
                Some(refusal) => self.session.is_outdated(&known, refusal).await,
                None => false,
            },
            Ok(answer) if answer.is_passed_over() => {
                self.session.live.reload().await.is_ok_and(|latest| !Arc::ptr_eq(&latest, &known))
            }
            Ok(_) => false,
        };
        self.outdated += usize::from(is_outdated);
        is_outdated
    }

    /// Waits for the next attempt; an error when there were enough.
    async fn try_again(&mut self, failure: E) -> Result<(), E> {
        if !failure.is_unavailable() {
            return Err(self.for_certain(failure));
        }
        self.missed += 1;
        // What may have happened outweighs what did not.
        let failure = match self.in_doubt.take() {
            Some(earlier) if !failure.may_have_happened() => earlier,
            _ => failure,
        };
        if !RETRY.pause(self.missed).await {
            return Err(failure);
        }
        self.in_doubt = Some(failure);
        Ok(())
    }

    /// A refusal that is certain; but an earlier attempt may still come through.
    fn for_certain(&self, failure: E) -> E {
        failure.after_doubt(self.in_doubt.as_ref().is_some_and(Failure::may_have_happened))
    }
}

/// Makes sure that the answer to a write is kept: by its own batch or, if it changed nothing, by
/// itself. `false` when the schema changed before it could be.
async fn keep(session: &Session, answer: &impl Replay) -> Result<bool> {
    if session.claim().is_none_or(|claim| claim.is_settled()) {
        return Ok(true);
    }
    let loaded = session.live.loaded().await?;
    let batch = Batch::new(session.live.space.clone());
    let kept = commit_claimed(session, &loaded, batch, || answer.to_answer()).await;
    Ok(session.live.writes().settle(kept).await?.is_some())
}

/// Commits a batch of a few entries together with the answer to the key of the session, if it has
/// one.
pub(crate) async fn commit_claimed(
    session: &Session,
    loaded: &Loaded,
    mut batch: Batch,
    answer: impl Fn() -> Result<(Answer, Option<Bytes>)>,
) -> Under<()> {
    batch.fence = loaded.fence();
    if let Some(claim) = session.claim() {
        let (answer, text) = answer()?;
        let (condition, effect) = claim_entry(session, claim, answer, text)?;
        batch.push(claim.address.clone(), Some(condition), Some(effect));
    }
    match past_fence(session.live.commit(loaded, batch, || session.note()).await?)? {
        Outcome::Committed(_) => {
            session.claim().inspect(|claim| claim.settle());
            Ok(())
        }
        Outcome::Rejected(_) => Err(came_first().into()),
    }
}

async fn look_up(session: &Session) -> Result<Known> {
    let Some(key) = session.key() else { return Ok(Known::Free(None)) };
    let address = key.address(session.actor());
    let Some(cell) = session.live.get_one(&address).await? else {
        return Ok(Known::Free(None));
    };
    let kept = Kept::from_cell(&cell).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "the answer to an idempotency key cannot be read")
            .with("key", crate::engine::ShowKey(&address.key))
    })?;
    let keep_ms = session.live.loaded().await?.schema.idempotency_keep_ms;
    Ok(match is_over(&kept, keep_ms, session.now()) {
        true => Known::Free(Some(cell.stamp)),
        false => Known::Answered(Box::new(kept)),
    })
}

/// The answer that was given before, if it was to the same request.
fn replayed<A: Replay>(kept: &Kept, asked: &str) -> Result<A> {
    if kept.request != asked {
        let message = "the idempotency key was used for another request; use another key";
        return Err(Error::new(ErrorKind::IdempotencyConflict, message).with("at", kept.at));
    }
    A::from_answer(&kept.answer, kept.text.as_ref()).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "the answer to an idempotency key is of another kind")
    })
}
