//! The application: one store, its configuration, and the routes to both.

use std::sync::Arc;

use axum::Router;
use keyloom::Store;
use tokio::sync::watch;

use crate::api::KeptPages;
use crate::config::Config;
use crate::jobs::Jobs;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::slots::Slots;
use crate::{api, auth, console, guard, openapi, problem};

/// Answers requests about one store. Cloning is cheap and shares everything.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    config: Config,
    metrics: Metrics,
    jobs: Jobs,
    streams: Slots,
    moments: Slots,
    kept_pages: KeptPages,
    memory: Memory,
    /// Whether the server is about to stop.
    stopping: watch::Sender<bool>,
}

impl App {
    /// An application on an open store.
    pub fn new(store: Store, config: Config) -> Self {
        let shared = Shared {
            store,
            kept_pages: KeptPages::new(config.limits.kept_pages_bytes_max),
            memory: Memory::new(&config.limits),
            config,
            metrics: Metrics::default(),
            jobs: Jobs::default(),
            streams: Slots::default(),
            moments: Slots::default(),
            stopping: watch::Sender::new(false),
        };
        App { shared: Arc::new(shared) }
    }

    /// All routes, ready to answer requests.
    pub fn router(&self) -> Router {
        let routes = Router::new()
            .merge(api::routes())
            .merge(auth::session::routes())
            .merge(console::routes())
            .merge(openapi::routes())
            .merge(problem::routes())
            .merge(crate::metrics::routes())
            .fallback(Problem::unknown_path)
            .method_not_allowed_fallback(Problem::method_not_allowed);
        guard::around(routes, self).with_state(self.clone())
    }

    /// Goes on with the jobs that an earlier server left in the store. [`Server::run`] does so by
    /// itself; a program that serves the [router](Self::router) in its own way calls it once. A
    /// server without them is still a server: what hinders it is logged.
    ///
    /// [`Server::run`]: crate::Server::run
    pub async fn resume_jobs(&self) {
        if let Err(error) = self.jobs().resume(self).await {
            let error = error.message();
            tracing::warn!(error, "jobs that an earlier server left could not be gone on with");
        }
    }

    /// The store, on behalf of nobody.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// The configuration of the server.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.shared.jobs
    }

    /// The open streams of changes.
    pub(crate) fn streams(&self) -> &Slots {
        &self.shared.streams
    }

    /// The snapshots of the store that exports and backups have pinned.
    pub(crate) fn moments(&self) -> &Slots {
        &self.shared.moments
    }

    pub(crate) fn kept_pages(&self) -> &KeptPages {
        &self.shared.kept_pages
    }

    /// The memory that requests may hold.
    pub(crate) fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// Tells streams and jobs to end; afterwards the server waits for its requests.
    pub(crate) fn stop(&self) {
        self.shared.stopping.send_replace(true);
    }

    /// Whether the server is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.shared.stopping.borrow()
    }

    /// Waits until the server is about to stop.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stopping = self.shared.stopping.subscribe();
        async move {
            // Fails only if the application is gone, which ends the wait too.
            drop(stopping.wait_for(|is_stopping| *is_stopping).await);
        }
    }
}
