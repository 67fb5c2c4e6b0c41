//! How writers hear what became of their batches.
//!
//! Waking a writer takes the processor about as long as writing its batch to the journal. So the
//! commit thread leaves the writers of a large group to a thread that does nothing else, and goes on
//! with the next group. Those of a small group it wakes itself: they would wait for the other thread
//! to be woken first.

use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::super::Outcome;
use super::prepare::Prepared;
use super::start_thread;
use crate::error::Result;

/// From how many batches on a group is large.
const MANY: usize = 16;

/// A batch and whom to answer.
pub(super) struct Ask {
    pub(super) prepared: Box<Prepared>,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// What became of a batch. The batch goes back with it, so that its memory is released by the
/// thread that took it: the allocator is slower for others, and the commit thread has no time to lose.
pub(super) struct Answer {
    pub(super) outcome: Result<Outcome>,
    #[expect(dead_code, reason = "it is only carried back to be dropped there")]
    prepared: Box<Prepared>,
}

impl Ask {
    pub(super) fn answer(self, outcome: Result<Outcome>) {
        let Ask { prepared, reply } = self;
        answer(reply, Answer { outcome, prepared });
    }
}

/// Answers a caller, who may have stopped waiting.
pub(super) fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    let _ = reply.send(value);
}

type Answered = (Ask, Result<Outcome>);

fn answer_all(group: impl IntoIterator<Item = Answered>) {
    group.into_iter().for_each(|(ask, outcome)| ask.answer(outcome));
}

/// The thread that wakes the writers of large groups. It ends when this is dropped and all are
/// answered.
pub(super) struct ReplyThread {
    groups: Sender<Vec<Answered>>,
    thread: JoinHandle<()>,
}

impl ReplyThread {
    pub(super) fn start() -> Result<Self> {
        let (groups, received) = mpsc::channel::<Vec<Answered>>();
        let thread = start_thread("keyloom-answer", move || {
            received.into_iter().for_each(answer_all);
        })?;
        Ok(ReplyThread { groups, thread })
    }

    /// Answers the batches of one group, now or very soon.
    pub(super) fn answer(&self, group: impl ExactSizeIterator<Item = Answered>) {
        if group.len() < MANY {
            return answer_all(group);
        }
        // The thread ends by a defect alone, and then this one does its work.
        if let Err(unsent) = self.groups.send(group.collect()) {
            answer_all(unsent.0);
        }
    }

    /// Waits until all are answered.
    pub(super) fn finish(self) {
        drop(self.groups);
        // Writers whose answers a panic has taken hear that the thread is gone.
        let _ = self.thread.join();
    }
}
