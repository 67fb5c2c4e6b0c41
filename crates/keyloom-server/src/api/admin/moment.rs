//! A snapshot of the store, pinned while an answer is sent.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use keyloom::{ErrorKind, Position, Store};
use tokio::time::Instant;

use crate::app::App;
use crate::problem::Problem;
use crate::refusal;
use crate::slots::Slot;

/// Whether the answer comes from one snapshot: `snapshot`, or else `walk`.
const CONSISTENCY: HeaderName = HeaderName::from_static("keyloom-consistency");

/// The log position after which the log has the changes that the answer does not.
const LOG_POSITION: HeaderName = HeaderName::from_static("keyloom-log-position");

/// The store as an answer reads it. Dropping this releases the snapshot.
pub(super) struct Moment {
    app: App,
    pub(super) store: Store,
    /// Whether everything comes from one snapshot. If not, it is read piece by piece while writers
    /// go on.
    is_one: bool,
    /// The log's next position in the snapshot, or before the first piece; `None` without a log.
    pub(super) position: Option<Position>,
    longest: Duration,
    end: Instant,
    _slot: Slot,
}

impl Moment {
    /// Pins the store as it is now, if its engine can; otherwise reads it while it changes.
    pub(super) async fn hold(app: &App, store: &Store) -> Result<Self, Problem> {
        match store.pinned().await {
            Ok(pinned) => Moment::of(app, pinned, true).await,
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Moment::of(app, store.clone(), false).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn of(app: &App, store: Store, is_one: bool) -> Result<Self, Problem> {
        let limits = &app.config().limits;
        let slot = app.moments().enter(limits.moments_max).ok_or_else(|| {
            let most = limits.moments_max;
            refusal::overloaded(format!(
                "there are {most} exports and backups already, which is the limit"
            ))
        })?;
        let position = match store.log_bounds().await {
            Ok(bounds) => Some(bounds.next),
            Err(error) if error.kind() == ErrorKind::Unsupported => None,
            Err(error) => return Err(error.into()),
        };
        let longest = limits.moment_timeout;
        let end = Instant::now() + longest;
        let app = app.clone();
        Ok(Moment { app, store, is_one, position, longest, end, _slot: slot })
    }

    /// Fails if the server is about to stop, or after the longest allowed time.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.app.is_stopping() {
            return Err(refusal::stopping());
        }
        if Instant::now() < self.end {
            return Ok(());
        }
        let detail = format!(
            "it took longer than {} s, which is the limit; read faster, or raise the limit",
            self.longest.as_secs()
        );
        Err(refusal::limit_exceeded(detail))
    }

    /// The headers that describe the snapshot.
    pub(super) fn headers(&self) -> HeaderMap {
        let consistency = if self.is_one { "snapshot" } else { "walk" };
        let mut headers =
            HeaderMap::from_iter([(CONSISTENCY, HeaderValue::from_static(consistency))]);
        let position = self.position.map(|position| HeaderValue::from(position.number()));
        headers.extend(position.map(|position| (LOG_POSITION, position)));
        headers
    }
}
