//! What every request passes before it is answered.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;

use crate::app::App;

/// Puts the guards around the routes, the outermost last.
pub(crate) fn around(routes: Router<App>, app: &App) -> Router<App> {
    routes.layer(from_fn_with_state(app.clone(), count))
}

async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    app.metrics().request();
    next.run(request).await
}
