//! Goes over a whole space, and reports or mends what is wrong.

use super::account::{Account, Found};
use super::mend::Hand;
use super::not_ready::NotReady;
use super::repair::{Fate, HearRepair, RepairProgress, mend, tidy_up};
use super::verification::VerifyOptions;
use super::verify::{Fault, Verifier};
use crate::error::Result;
use crate::space::{Ended, Live, Session, Task};

/// What came of it.
pub(super) struct Examination {
    pub(super) account: Account,
    pub(super) found: Found,
    pub(super) not_ready: Vec<NotReady>,
}

/// Goes over what is left of a space. Faults are left as they are where there is no hand.
///
/// What is mended is told of later than it is mended. If the process ends in between, the next one
/// finds it sound, and the report has at most the faults of one chunk less.
pub(super) async fn examine(
    task: &mut Task<'_, Account>,
    session: &Session,
    options: &VerifyOptions,
    hand: Option<Hand>,
    hear: HearRepair<'_>,
) -> Result<Examination, Ended> {
    let mut account = task.progress().clone();
    let mut found = Found::of(&task.take_notes());
    let mut verifier = Verifier::at(session, options, task.position().clone(), &account).await?;
    while let Some(examined) = task.while_at(verifier.next_examined(), |_| {}).await?? {
        let keys = examined.records + examined.entries;
        account.records += examined.records;
        account.entries += examined.entries;
        account.unsettled += examined.unsettled;
        let fated = match hand {
            None => examined.faults.into_iter().map(|fault| (fault, left())).collect(),
            Some(hand) => {
                task.while_at(mend(&mut verifier, examined.faults, hand), |_| {}).await??
            }
        };
        let has_mended = hand == Some(Hand::Real) && !fated.is_empty();
        let notes = tell(fated, &mut account, &mut found, options.findings_max);
        account.tallied = verifier.tallied().clone();
        task.move_on(verifier.position().clone(), account.clone(), notes, has_mended).await?;
        hear(RepairProgress {
            records: account.records,
            entries: account.entries,
            mended: account.mended.total(),
            left: account.left.total(),
        });
        task.pause_after(keys).await?;
    }
    if hand == Some(Hand::Real) {
        let live: &Live = session.program()?;
        task.while_at(tidy_up(live), |_| {}).await??;
    }
    Ok(Examination { account, found, not_ready: verifier.not_ready().await? })
}

fn left() -> Fate {
    Fate::Left(String::new())
}

/// Counts what became of faults, and gives what is to be noted of them.
fn tell(
    fated: Vec<(Fault, Fate)>,
    account: &mut Account,
    found: &mut Found,
    findings_max: usize,
) -> Vec<String> {
    let mut notes = Vec::new();
    for (Fault { mut finding, .. }, fate) in fated {
        match fate {
            Fate::Mended => {
                account.mended.add(finding.kind);
                notes.extend(found.add(true, finding, findings_max));
            }
            Fate::Left(reason) => {
                finding.reason.push_str(&reason);
                account.left.add(finding.kind);
                notes.extend(found.add(false, finding, findings_max));
            }
            Fate::Gone => {}
        }
    }
    notes
}
