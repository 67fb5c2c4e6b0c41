//! The calls of an operator to a running server.

mod backup;
mod export;
mod import;
mod jobs;
mod keys;
mod moment;
mod stats;

use crate::api::routes::Routes;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .merge(keys::routes())
        .merge(stats::routes())
        .merge(jobs::routes())
        .merge(import::routes())
        .merge(export::routes())
        .merge(backup::routes())
}
