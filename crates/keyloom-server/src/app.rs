//! The application: one store, its configuration, and the routes to both.

use std::sync::Arc;

use axum::Router;
use keyloom::Store;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::{api, console, guard, openapi, problem};

/// Answers requests about one store. Cloning is cheap and shares everything.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    config: Config,
    metrics: Metrics,
}

impl App {
    /// An application on an open store.
    pub fn new(store: Store, config: Config) -> Self {
        App { shared: Arc::new(Shared { store, config, metrics: Metrics::default() }) }
    }

    /// Every route, ready to be called with requests.
    pub fn router(&self) -> Router {
        let routes = Router::new()
            .merge(api::routes())
            .merge(console::routes())
            .merge(openapi::routes())
            .merge(problem::routes())
            .merge(crate::metrics::routes())
            .fallback(Problem::unknown_path)
            .method_not_allowed_fallback(Problem::method_not_allowed);
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
}
