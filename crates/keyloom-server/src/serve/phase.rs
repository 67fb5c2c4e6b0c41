//! The phase of a connection and when it began, in one word. The connection's task writes it, and
//! the register reads it.
//!
//! | phase | begins |
//! | --- | --- |
//! | head | when the connection is opened; with the first byte of a further request |
//! | busy | when the head has arrived |
//! | sending | when the answer is complete, although a part may still be in the server's memory |
//! | idle | when the last byte of the answer was passed to the operating system |
//! | gone | when it was decided to close the connection |
//!
//! A connection **waits** while it is in its head or idle: the server does nothing for it. Only a
//! waiting connection may be closed for another one. Both sides change the word by
//! compare-and-swap, so a request that begins at that moment is either answered or never begun.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

/// The lowest bits of the word hold the phase; above them are microseconds.
const BITS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Head,
    Busy,
    Sending,
    Idle,
    Gone,
}

const PHASES: [Phase; 5] = [Phase::Head, Phase::Busy, Phase::Sending, Phase::Idle, Phase::Gone];

/// The phase of one connection.
#[derive(Debug)]
pub(super) struct State {
    word: AtomicU64,
    /// The time from which the microseconds count.
    epoch: Instant,
    told: Notify,
}

/// A waiting connection, as it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    since_us: u64,
    word: u64,
}

impl State {
    /// A new connection. All connections that are compared with each other must share one epoch.
    pub(super) fn new(epoch: Instant) -> Self {
        let state = State { word: AtomicU64::new(0), epoch, told: Notify::new() };
        state.word.store(state.word_of(Phase::Head), Ordering::Release);
        state
    }

    pub(super) fn phase(&self) -> Phase {
        phase_in(self.word.load(Ordering::Acquire))
    }

    /// The first byte of a further request has arrived.
    pub(super) fn begin_head(&self) {
        self.change(Phase::Head, |phase| phase == Phase::Idle);
    }

    /// The head of a request has arrived. Says whether the request may be answered.
    pub(super) fn begin_request(&self) -> bool {
        self.change(Phase::Busy, |phase| phase != Phase::Gone)
    }

    /// The answer is complete.
    pub(super) fn end_request(&self) {
        self.change(Phase::Sending, |phase| phase == Phase::Busy);
    }

    /// Everything was passed to the operating system.
    pub(super) fn sent(&self) {
        self.change(Phase::Idle, |phase| phase == Phase::Sending);
    }

    /// Ends the connection, whatever its phase is.
    pub(super) fn give_up(&self) {
        self.change(Phase::Gone, |_| true);
    }

    /// The connection as one that may be closed, if it waits. A connection that is already gone
    /// counts as the longest waiting.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        let word = self.word.load(Ordering::Acquire);
        match phase_in(word) {
            Phase::Head | Phase::Idle => Some(Waiting { since_us: word >> BITS, word }),
            Phase::Gone => Some(Waiting { since_us: 0, word }),
            Phase::Busy | Phase::Sending => None,
        }
    }

    /// Closes the connection, if it is still waiting as observed.
    pub(super) fn close(&self, seen: Waiting) -> bool {
        let gone = self.word_of(Phase::Gone);
        let closed =
            self.word.compare_exchange(seen.word, gone, Ordering::AcqRel, Ordering::Acquire);
        self.told.notify_one();
        closed.is_ok()
    }

    /// Waits until somebody closes the connection.
    pub(super) async fn closed(&self) {
        while self.phase() != Phase::Gone {
            self.told.notified().await;
        }
    }

    fn change(&self, to: Phase, is_allowed: impl Fn(Phase) -> bool) -> bool {
        let next = |word| is_allowed(phase_in(word)).then(|| self.word_of(to));
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    fn word_of(&self, phase: Phase) -> u64 {
        let micros = self.epoch.elapsed().as_micros() as u64;
        micros << BITS | phase as u64
    }
}

fn phase_in(word: u64) -> Phase {
    let place = word as usize & ((1 << BITS) - 1);
    // No other values are ever written.
    PHASES.get(place).copied().unwrap_or(Phase::Gone)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn a_word_holds_its_phase() {
        for phase in PHASES {
            assert_eq!(phase_in(phase as u64), phase);
            assert_eq!(phase_in(1 << 40 << BITS | phase as u64), phase);
        }
    }

    #[tokio::test]
    async fn a_request_that_began_is_not_closed_and_one_that_was_closed_does_not_begin() {
        let state = State::new(Instant::now());
        let seen = state.waiting().unwrap();
        assert!(state.begin_request());
        assert_eq!(state.waiting(), None);
        assert!(!state.close(seen), "it is being answered");
        state.end_request();
        assert_eq!(state.waiting(), None, "a part of the answer may be here");
        state.sent();
        let seen = state.waiting().unwrap();
        assert!(state.close(seen));
        assert!(!state.begin_request(), "it is closed");
        state.closed().await;
    }

    #[tokio::test]
    async fn what_is_over_waits_longest() {
        let state = State::new(Instant::now());
        state.begin_request();
        state.give_up();
        assert_eq!(state.waiting().unwrap().since_us, 0);
    }
}
