//! Routes that are put together before the router sees them.
//!
//! The router's own nesting writes the URI of each request anew at every level, for handlers that
//! know only the end of their path. Ours know parts by name, so that whole paths do.

use axum::Router;
use axum::routing::MethodRouter;

use crate::app::App;

/// Paths, and who answers there.
pub(super) struct Routes(Vec<(String, MethodRouter<App>)>);

impl Routes {
    pub(super) fn new() -> Self {
        Routes(Vec::new())
    }

    /// One more.
    pub(super) fn route(mut self, path: &str, answer: MethodRouter<App>) -> Self {
        self.0.push((path.to_owned(), answer));
        self
    }

    /// All others too.
    pub(super) fn merge(mut self, others: Routes) -> Self {
        self.0.extend(others.0);
        self
    }

    /// All others too, each below a path.
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
