//! The answer to a write that carries an idempotency key.

use bytes::Bytes;

use super::{Beside, Role};
use crate::engine::{Condition, Effect};
use crate::error::Result;
use crate::idempotency::{Answer, Claim, Kept};
use crate::record::Version;
use crate::space::Session;
use crate::write::assemble::{Before, Change};
use crate::write::once::of_record;
use crate::write::operations;

/// The cell of the key, if the write carries one.
pub(super) fn cells(session: &Session, changes: &[Change]) -> Result<Option<Beside>> {
    let Some(claim) = session.claim() else { return Ok(None) };
    let (answer, text) = claim.answer().map_or_else(|| told_by(changes), |said| (said, None));
    let (condition, effect) = claim_entry(session, claim, answer, text)?;
    Ok(Some(Beside {
        address: claim.address.clone(),
        condition: Some(condition),
        effect: Some(effect),
        role: Role::Idempotency,
    }))
}

/// What a batch asks and does at the cell of a key.
pub(in crate::write) fn claim_entry(
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
            let effect = match ended {
                Some(_) => operations::Effect::Replaced,
                None => operations::Effect::Created,
            };
            of_record(&after.document(&change.collection, &change.key), effect)
        }
    }
}
