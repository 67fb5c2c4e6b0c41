//! The answer to a write that carries an idempotency key.

use bytes::Bytes;

use super::kept::{Answer, CREATED, Kept, REPLACED};
use crate::engine::{Condition, Effect};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Version;
use crate::side::kind::{CellRole, SideCell};
use crate::side::work::{Before, Change, Refused};
use crate::space::{Claim, Session};

static ROLE: CellRole = CellRole::explained(|_, _, _| Refused::Final(came_first()));

/// The refusal of a write whose key got an answer meanwhile. Whoever sent it looks the key up
/// again, so that nobody else sees it.
pub(crate) fn came_first() -> Error {
    let message = "another write with this idempotency key came first";
    Error::new(ErrorKind::IdempotencyConflict, message)
}

/// The cell of the key, if the write carries one.
pub(super) fn cell(session: &Session, changes: &[Change]) -> Result<Option<SideCell>> {
    let Some(claim) = session.claim() else { return Ok(None) };
    let (answer, text) = match claim.answer() {
        Some(said) => (Answer::Value(said), None),
        None => told_by(changes),
    };
    let (condition, effect) = claim_entry(session, claim, answer, text)?;
    Ok(Some(SideCell {
        address: claim.address.clone(),
        condition: Some(condition),
        effect: Some(effect),
        role: &ROLE,
        number: 0,
    }))
}

/// What a batch asks and does at the cell of a key.
pub(crate) fn claim_entry(
    session: &Session,
    claim: &Claim,
    answer: Answer,
    text: Option<Bytes>,
) -> Result<(Condition, Effect)> {
    let kept = Kept { at: session.now(), request: claim.request.clone(), answer, text };
    let put = Effect::Put { stamp: Version::first().stamp(), bytes: kept.to_bytes()? };
    Ok((claim.condition, put))
}

/// The answer to a write of one record: what becomes of it. A record that moves ends at one key
/// first, and goes on at another. A write without a record only tells that it happened. Expired
/// records that make way were not there for anybody.
fn told_by(changes: &[Change]) -> (Answer, Option<Bytes>) {
    let Some(change) = changes.iter().rfind(|change| !change.is_expiry()) else {
        return (Answer::Done, None);
    };
    let ended = changes.iter().find_map(|change| match &change.before {
        Before::Read { version, .. } => Some(*version),
        // What has expired was not there.
        Before::Absent | Before::SeenAbsent | Before::Expired(_) => None,
    });
    match &change.after {
        None => (Answer::Deleted { version: ended.map(|version| version.to_string()) }, None),
        Some(after) => {
            let effect = if ended.is_some() { REPLACED } else { CREATED };
            Answer::of_record(after.document(&change.collection, &change.key), effect)
        }
    }
}
