//! Goes over a whole space, and reports or mends what is wrong.

use super::account::{Account, Found, HearAccount, Ledger};
use super::not_ready::NotReady;
use super::pair_repair::Hand;
use super::repair::{Fate, mend, tidy_up};
use super::verification::VerifyOptions;
use super::verify::{Fault, Verifier};
use crate::space::{Ended, Session, Task};

/// What came of it.
pub(super) struct Examination {
    pub(super) account: Account,
    pub(super) found: Found,
    pub(super) not_ready: Vec<NotReady>,
}

/// Goes over what is left of a space. Faults are left as they are where there is no hand.
///
/// What is mended together is told of in the batch that mends it. What has to be mended by itself
/// is told of a little later: if the process ends in between, the next one finds it sound, and the
/// report lacks it.
pub(super) async fn examine(
    task: &mut Task<'_, Account>,
    session: &Session,
    options: &VerifyOptions,
    hand: Option<Hand>,
    hear: HearAccount<'_>,
) -> Result<Examination, Ended> {
    let position = task.position().clone();
    let mut ledger = Ledger::new(task, options.findings_max);
    let mut verifier = Verifier::at(session, options, position, &ledger.account).await?;
    while let Some(examined) = ledger.task.while_at(verifier.next_examined(), |_| {}).await?? {
        match hand {
            None => examined.faults.into_iter().for_each(|Fault { finding, .. }| {
                ledger.note(finding, Fate::Left(String::new()));
            }),
            Some(hand) => mend(&mut verifier, examined.faults, hand, &mut ledger).await?,
        }
        ledger.account.records += examined.records;
        ledger.account.entries += examined.entries;
        ledger.account.unsettled += examined.unsettled;
        ledger.account.compared = verifier.compared().clone();
        ledger.move_on(verifier.position().clone()).await?;
        hear(&ledger.account);
        ledger.task.pause_after(examined.records + examined.entries).await?;
    }
    if hand == Some(Hand::Real) {
        ledger.task.while_at(tidy_up(session.program()?), |_| {}).await??;
    }
    let Ledger { account, found, .. } = ledger;
    Ok(Examination { account, found, not_ready: verifier.not_ready().await? })
}
