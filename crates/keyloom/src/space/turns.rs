//! Writers of one record within one process, once they have met: they take turns.
//!
//! A write that reads first (an update, a transaction) rests on what it read, and is refused when
//! another writer was faster. If everybody just tried again, each round would have one winner, and
//! on a store that takes milliseconds to commit the unlucky would run out of attempts.
//!
//! | moment | what a writer holds |
//! | --- | --- |
//! | nobody waits for the record | a share: attempts go side by side, and the first to commit wins |
//! | it lost | its turn: first come, first served, alone, after every share has ended |
//! | somebody waits already | no share any more: it joins the queue before it reads |
//!
//! Turns are a courtesy and no lock. The batch's conditions decide what commits, as they do
//! between processes, and nobody waits for a turn without end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::engine::Address;

/// How long a writer waits for its turn. After that it tries without: whoever has the turn may
/// be waiting for something else, such as the very same writer.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The records of a space that are being written.
#[derive(Default)]
pub(crate) struct Turns {
    queues: Mutex<HashMap<Address, Arc<RwLock<()>>>>,
}

/// The right to attempt a write: beside others, or alone. It ends when it is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    address: Address,
    held: Option<Held>,
}

enum Held {
    Share(#[expect(dead_code, reason = "held, not read")] OwnedRwLockReadGuard<()>),
    Turn(#[expect(dead_code, reason = "held, not read")] OwnedRwLockWriteGuard<()>),
}

impl Turn {
    pub(crate) fn is_of(&self, address: &Address) -> bool {
        self.address == *address
    }

    /// Whether this is the turn to write that record, and not only a share. A turn that was
    /// waited for too long counts: waiting once more would not be better.
    pub(crate) fn is_turn_of(&self, address: &Address) -> bool {
        self.is_of(address) && !matches!(self.held, Some(Held::Share(_)))
    }
}

impl Turns {
    /// A share in writing the record; `None` if somebody has the turn or waits for it.
    pub(crate) fn share(self: &Arc<Self>, address: &Address) -> Option<Turn> {
        let share = self.queue(address).try_read_owned().ok().map(Held::Share)?;
        Some(self.held(address, Some(share)))
    }

    /// The turn to write the record, after all who wait for it already.
    pub(crate) async fn turn(self: &Arc<Self>, address: &Address) -> Turn {
        // Made first, so that the queue is forgotten also if nobody waits for this any more.
        let mut turn = self.held(address, None);
        let waiting = self.queue(address).write_owned();
        turn.held = tokio::time::timeout(WAIT_MAX, waiting).await.ok().map(Held::Turn);
        turn
    }

    /// The turns to write several records. All take them in the same order, so that no two wait
    /// for each other.
    pub(crate) async fn turns(self: &Arc<Self>, mut addresses: Vec<Address>) -> Vec<Turn> {
        addresses.sort_unstable();
        let mut turns = Vec::with_capacity(addresses.len());
        for address in addresses {
            turns.push(self.turn(&address).await);
        }
        turns
    }

    fn held(self: &Arc<Self>, address: &Address, held: Option<Held>) -> Turn {
        Turn { turns: self.clone(), address: address.clone(), held }
    }

    fn queue(&self, address: &Address) -> Arc<RwLock<()>> {
        self.queues().entry(address.clone()).or_default().clone()
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<Address, Arc<RwLock<()>>>> {
        // Nothing that is done under this lock can panic half-way.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // The queue is given back before it is counted who else has it.
        self.held = None;
        let mut queues = self.turns.queues();
        if queues.get(&self.address).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Area;

    fn address(key: &'static str) -> Address {
        Address::new(Area::default_area(), key)
    }

    fn is_empty(turns: &Turns) -> bool {
        turns.queues().is_empty()
    }

    #[tokio::test]
    async fn shares_go_side_by_side_until_somebody_waits() {
        let turns = Arc::new(Turns::default());
        let record = address("r");
        let (share, beside) = (turns.share(&record), turns.share(&record));
        assert!(beside.is_some_and(|share| !share.is_turn_of(&record)));
        let mut waiting = Box::pin(turns.turn(&record));
        assert!(futures_now(&mut waiting).await.is_none(), "a share is held");
        assert!(turns.share(&record).is_none(), "somebody waits");
        assert!(turns.share(&address("other")).is_some());
        drop(share);
        let turn = waiting.await;
        assert!(turn.is_turn_of(&record) && turns.share(&record).is_none());
        drop(turn);
        assert!(turns.share(&record).is_some());
        assert!(is_empty(&turns), "nothing stays of records that nobody writes");
    }

    #[tokio::test]
    async fn turns_are_served_in_the_order_of_asking() {
        let turns = Arc::new(Turns::default());
        let record = address("r");
        let first = turns.turn(&record).await;
        let mut second = Box::pin(turns.turn(&record));
        let mut third = Box::pin(turns.turn(&record));
        assert!(futures_now(&mut second).await.is_none());
        assert!(futures_now(&mut third).await.is_none());
        drop(first);
        assert!(futures_now(&mut third).await.is_none());
        drop(second.await);
        drop(third.await);
        assert!(is_empty(&turns));
    }

    #[tokio::test]
    async fn who_gives_up_waiting_leaves_nothing() {
        let turns = Arc::new(Turns::default());
        let record = address("r");
        let first = turns.turn(&record).await;
        let mut second = Box::pin(turns.turn(&record));
        assert!(futures_now(&mut second).await.is_none());
        drop(second);
        drop(first);
        assert!(is_empty(&turns));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_without_end() {
        let turns = Arc::new(Turns::default());
        let first = turns.turn(&address("r")).await;
        let without = turns.turn(&address("r")).await;
        assert!(first.held.is_some() && without.held.is_none());
    }

    /// What a future has by now.
    async fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }
}
