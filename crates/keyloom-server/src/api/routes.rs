//! Collects routes before they are added to the router.
//!
//! The router's own nesting rewrites the URI of each request at every level, for handlers that only
//! know the end of their path. Our handlers know the parts by name, so complete paths work as well.

use axum::Router;
use axum::routing::MethodRouter;

use crate::app::App;

/// Paths with their handlers.
pub(super) struct Routes(Vec<(String, MethodRouter<App>)>);

impl Routes {
    pub(super) fn new() -> Self {
        Routes(Vec::new())
    }

    /// Adds a route.
    pub(super) fn route(mut self, path: &str, answer: MethodRouter<App>) -> Self {
        self.0.push((path.to_owned(), answer));
        self
    }

    /// Adds all routes of another list.
    pub(super) fn merge(mut self, others: Routes) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Adds all routes of another list below a path.
    pub(super) fn nest(mut self, below: &str, others: Routes) -> Self {
        self.0
            .extend(others.0.into_iter().map(|(path, answer)| (format!("{below}{path}"), answer)));
        self
    }

    pub(super) fn into_router(self) -> Router<App> {
        let add = |router: Router<App>, (path, answer): (String, _)| router.route(&path, answer);
        self.0.into_iter().fold(Router::new(), add)
    }
}
