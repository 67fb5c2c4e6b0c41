//! The application: one store, its configuration, and the routes to both.

use std::sync::Arc;

use axum::Router;
use keyloom::Store;
use tokio::sync::watch;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::{api, auth, console, guard, openapi};

/// Answers requests about one store. Cloning is cheap and shares everything.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    config: Config,
    metrics: Metrics,
    /// Whether the server has been told to stop.
    is_stopping: watch::Sender<bool>,
}

impl App {
    /// An application on an open store.
    pub fn new(store: Store, config: Config) -> Self {
        let is_stopping = watch::Sender::new(false);
        let metrics = Metrics::default();
        App { shared: Arc::new(Shared { store, config, metrics, is_stopping }) }
    }

    /// Every route, ready to be called with requests.
    pub fn router(&self) -> Router {
        let routes = Router::new()
            .merge(api::routes())
            .merge(auth::session::routes())
            .merge(console::routes())
            .merge(openapi::routes())
            .merge(crate::metrics::routes());
        guard::around(routes, self).with_state(self.clone())
    }

    /// The store, on behalf of nobody.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// How the server behaves.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Tells everything that goes on by itself to end.
    pub(crate) fn stop(&self) {
        self.shared.is_stopping.send_replace(true);
    }

    /// Is over when the server has been told to stop.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut is_stopping = self.shared.is_stopping.subscribe();
        async move {
            // The sender lives as long as the app; without it, there is nothing to go on for.
            drop(is_stopping.wait_for(|is_stopping| *is_stopping).await);
        }
    }
}
