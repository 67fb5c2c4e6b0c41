//! Puts right a cell that is kept beside records, as its kind says.

use super::pair_repair::{Hand, Mended, Mender, condition, stamp_of};
use crate::engine::{Address, Effect};
use crate::side::{Judging, Kind};
use crate::space::{Retry, Under};

/// Puts the cell right that is the first of its witnesses, if it is still wrong and everything by
/// which it was judged is as it was seen.
pub(super) async fn mend(
    mender: &Mender<'_>,
    judging: &Judging<'_>,
    kind: &'static dyn Kind,
    witnesses: &[Address],
    hand: Hand,
) -> Under<Mended> {
    let retry = Retry::eager();
    let mut made = 0;
    loop {
        let cells = mender.live.get(witnesses).await?;
        let Some(flaw) = kind.judge(judging, witnesses, &cells) else { return Ok(Mended::Sound) };
        let mended = match flaw.remedy {
            Effect::Delete => Mended::Removed,
            _ => Mended::Rewritten,
        };
        let mut remedy = (hand == Hand::Real).then_some(flaw.remedy);
        let mut batch = mender.batch();
        for (address, cell) in witnesses.iter().zip(&cells) {
            let seen = condition(stamp_of(cell.as_ref()));
            batch.push(address.clone(), Some(seen), remedy.take());
        }
        made += 1;
        if mender.commit(batch).await? {
            return Ok(mended);
        }
        if !retry.pause(made).await {
            return Ok(Mended::Contended);
        }
    }
}
