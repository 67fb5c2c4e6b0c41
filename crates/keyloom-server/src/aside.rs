//! Threads for long computations, separate from those that serve.
//!
//! Parsing megabytes of JSON, or preparing a thousand operations, takes a thread for many
//! milliseconds, and every connection of that thread would wait. So such a request is moved to a
//! few separate threads: see [`Arrival::go_aside`](crate::guard::Arrival::go_aside).

use std::io;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use futures_util::FutureExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Half as many threads as there are processors, so that the other half is left for everything
/// else.
static ASIDE: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    let threads = (available_parallelism().map_or(1, usize::from) / 2).max(1);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("keyloom-aside")
        .enable_time()
        .build()
});

/// Aborts the work when nobody waits for it any more.
struct Aborting<T>(JoinHandle<T>);

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Finishes some work on the separate threads; `None` if it panicked there. If these threads could
/// not be started, the work is finished here.
pub(crate) async fn finish<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    match &*ASIDE {
        Ok(runtime) => {
            let mut going = Aborting(runtime.spawn(work));
            (&mut going.0).await.ok()
        }
        Err(error) => {
            tracing::warn!(%error, "there are no threads for large requests");
            std::panic::AssertUnwindSafe(work).catch_unwind().await.ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn work_goes_on_where_it_is_sent() {
        let begun = Box::pin(async {
            let before = name();
            tokio::task::yield_now().await;
            (before, name())
        });
        let mut begun = begun;
        assert!(begun.as_mut().now_or_never().is_none());
        let (before, after) = finish(begun).await.unwrap_or_default();
        assert_ne!(before, "keyloom-aside");
        assert_eq!(after, "keyloom-aside");
    }

    #[tokio::test]
    async fn a_panic_aside_is_told() {
        #[allow(clippy::panic, reason = "it is what is tested")]
        let panicking = async { panic!("on purpose") };
        assert_eq!(finish::<()>(panicking).await, None);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_ended() {
        let (ended, mut has_ended) = tokio::sync::mpsc::channel::<()>(1);
        let work = async move {
            std::future::pending::<()>().await;
            drop(ended);
        };
        let mut waiting = Box::pin(finish(work));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(waiting);
        assert_eq!(has_ended.recv().await, None);
    }
}
