//! A gate in front of the sync, so that tests can look at a store whose batches are decided but
//! not durable.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Holds the commit thread between the decision on a group and its sync. Starts open.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct SyncGate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_shut: bool,
    is_reached: bool,
    passes: usize,
}

impl SyncGate {
    /// Stops the next group that arrives.
    pub fn shut(&self) {
        self.state().is_shut = true;
    }

    /// Lets the group that waits, and all later ones, go on.
    pub fn open(&self) {
        self.state().is_shut = false;
        self.0.changed.notify_all();
    }

    /// Lets one group go on, the one that waits or the next, and stays shut for later ones.
    pub fn let_one_through(&self) {
        self.state().passes += 1;
        self.0.changed.notify_all();
    }

    /// Waits until a group stands at the gate, decided and not durable.
    pub fn wait_until_reached(&self) {
        let waited = self.0.changed.wait_while(self.state(), |state| !state.is_reached);
        drop(waited);
    }

    /// Called by the commit thread.
    pub(super) fn pass(&self) {
        let mut state = self.state();
        state.is_reached = true;
        self.0.changed.notify_all();
        let waited = self.0.changed.wait_while(state, |state| state.is_shut && state.passes == 0);
        state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_reached = false;
        state.passes = state.passes.saturating_sub(1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
