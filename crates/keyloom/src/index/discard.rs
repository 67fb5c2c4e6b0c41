//! Deletes cells of Keyloom's own area that cannot be read or belong to nothing: of histories, of
//! idempotency keys, of leases. Nobody can make anything of them, and no record is lost with them.

use super::mend::{Hand, Mended, Mender, condition, stamp_of};
use super::suspect::Suspect;
use crate::engine::Effect;
use crate::space::Under;
use crate::write::Retry;

/// Deletes the cell that the suspect is about, the first of its addresses, if it is still wrong and
/// everything by which it was judged is as it was seen.
pub(super) async fn discard(mender: &Mender<'_>, suspect: &Suspect, hand: Hand) -> Under<Mended> {
    let retry = Retry::eager();
    let addresses = suspect.addresses();
    let mut made = 0;
    loop {
        let cells = mender.live.get(&addresses).await?;
        if suspect.judge(mender.loaded, &cells).is_none() {
            return Ok(Mended::Sound);
        }
        let mut batch = mender.batch();
        for (place, (address, cell)) in addresses.iter().zip(&cells).enumerate() {
            let effect = (place == 0 && hand == Hand::Real).then_some(Effect::Delete);
            batch.push(address.clone(), Some(condition(stamp_of(cell.as_ref()))), effect);
        }
        made += 1;
        if mender.commit(batch).await? {
            return Ok(Mended::Removed);
        }
        if !retry.pause(made).await {
            return Ok(Mended::Contended);
        }
    }
}
