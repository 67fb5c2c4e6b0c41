//! What every request passes before it is answered.

use axum::Router;
use axum::middleware::from_fn_with_state;

use crate::app::App;
use crate::metrics::measure;

/// Puts the guards around the routes, the outermost last.
pub(crate) fn around(routes: Router<App>, app: &App) -> Router<App> {
    routes.layer(from_fn_with_state(app.clone(), measure))
}
