//! What a transaction holds while its closure runs, so that it and others who write the same
//! records take turns instead of refusing each other.

use std::time::Duration;

use super::Transaction;
use crate::engine::Address;

/// How long a closure may hold its turns. Turns keep others from writing, and a closure may wait
/// for anything, such as one of those others.
const HELD_MAX: Duration = Duration::from_secs(1);

/// Waits for a closure, and ends what it holds when that takes long.
pub(super) async fn patiently<T>(transaction: &Transaction, closure: impl Future<Output = T>) -> T {
    let mut closure = std::pin::pin!(closure);
    tokio::select! {
        biased;
        answer = &mut closure => return answer,
        () = tokio::time::sleep(HELD_MAX) => {}
    }
    drop(transaction.state().end_turns());
    closure.await
}

impl Transaction {
    /// Before a record is read: takes a share in writing it, so that those who wait for their
    /// turn know of this attempt. Where others wait already, the transaction waits too, if it
    /// holds nothing; otherwise it goes on without, and the commit decides.
    pub(super) async fn join_writers(&self, address: &Address) {
        let turns = &self.session.live.turns;
        let may_wait = {
            let mut state = self.state();
            if state.has_joined(address) {
                return;
            }
            if let Some(share) = turns.share(address) {
                return state.hold(share);
            }
            state.may_wait()
        };
        if may_wait {
            let turn = turns.turn(address).await;
            self.state().hold(turn);
        }
    }
}
