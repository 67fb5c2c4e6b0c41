//! The runtime of blocking stores.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::runtime::{Builder, Handle, Runtime as Tokio, worker_index};
use tokio::sync::oneshot;
use tokio::task;

use crate::error::{Error, ErrorKind, Result};

/// A runtime of the store's own, without threads of its own, with which a blocking store waits.
pub struct Runtime(Option<Tokio>);

impl Runtime {
    pub(super) fn new() -> Result<Self> {
        let built = Builder::new_current_thread().enable_time().build();
        built.map(|runtime| Runtime(Some(runtime))).map_err(unavailable)
    }

    /// Waits for a future of the store.
    pub(crate) fn run<A, E: From<Error>>(
        &self,
        future: impl Future<Output = Result<A, E>>,
    ) -> Result<A, E> {
        self.wait(future)?
    }

    /// Waits for any future.
    pub(super) fn wait<F: Future>(&self, future: F) -> Result<F::Output> {
        let closed = || Error::new(ErrorKind::Internal, "the runtime is gone before its store");
        let runtime = self.0.as_ref().ok_or_else(closed)?;
        match CurrentThread::here() {
            CurrentThread::Outside => Ok(runtime.block_on(future)),
            CurrentThread::LentThread => wait_on_lent_thread(runtime, future).map_err(unavailable),
            CurrentThread::Task => Err(Error::new(
                ErrorKind::InvalidArgument,
                "a blocking store cannot wait inside an async task: it would keep the thread from \
                 other tasks, and maybe from the one that it waits for",
            )
            .with("instead", "keyloom::Store, whose methods are awaited")
            .with("or", "tokio::task::spawn_blocking, on whose threads a blocking store may wait")),
        }
    }
}

fn unavailable(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "a runtime to wait with cannot be made")
        .with("reason", &error)
        .with_source(error)
}

/// How the current thread relates to a runtime that may already run on it.
enum CurrentThread {
    /// No runtime runs here.
    Outside,
    /// It runs a closure of `spawn_blocking`, and may wait.
    LentThread,
    /// It runs async tasks, and must not wait.
    Task,
}

impl CurrentThread {
    fn here() -> Self {
        if Handle::try_current().is_err() {
            return CurrentThread::Outside;
        }
        // Both kinds of threads run something with a task id, but only workers have an index. The
        // thread of `Runtime::block_on` may have neither.
        match (worker_index(), task::try_id()) {
            (None, Some(_)) => CurrentThread::LentThread,
            _ => CurrentThread::Task,
        }
    }
}

/// Waits on a thread of `spawn_blocking`.
///
/// Tokio lets such a thread enter another runtime. But it panics if a thread only looks like one: a
/// task of a `LocalSet` also has an id and no worker's index. So this thread does not enter the
/// runtime. It polls the future itself, and another thread drives the runtime's timers meanwhile.
fn wait_on_lent_thread<F: Future>(runtime: &Tokio, future: F) -> io::Result<F::Output> {
    let _timers = runtime.enter();
    let mut future = pin!(future);
    let parked =
        Arc::new(ParkedThread { waiting: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(parked.clone());
    let mut context = Context::from_waker(&waker);
    // An engine in memory answers at once, and needs no timers.
    if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
        return Ok(answer);
    }
    thread::scope(|scope| {
        // Dropped when this thread has its answer, or when it panics.
        let (_waiting, is_over) = oneshot::channel::<()>();
        thread::Builder::new().spawn_scoped(scope, || runtime.block_on(is_over))?;
        loop {
            parked.wait();
            if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
                return Ok(answer);
            }
        }
    })
}

/// Wakes the waiting thread. It remembers that it was woken, since the future may park the same
/// thread itself and would consume the wake-up.
struct ParkedThread {
    waiting: Thread,
    is_woken: AtomicBool,
}

impl ParkedThread {
    fn wait(&self) {
        while !self.is_woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.waiting.unpark();
    }
}

impl Drop for Runtime {
    /// The last handle may be dropped inside an async runtime, where waiting for this runtime's end
    /// would panic.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runtime")
    }
}
