//! The change log as server-sent events.
//!
//! | event | when |
//! | --- | --- |
//! | `id: 17`, `event: commit`, `data: {…}` | a commit; `id` is its position |
//! | `id: 17`, a comment, no data | at the beginning, and after a while without wanted changes: everything up to `id` need not be read again |
//! | `event: problem`, `data: {…}` | the last event: why the stream ends |

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{iter, unfold};
use keyloom::{Logged, Position, Store, Watch, WatchOptions};

use super::told::commit;
use super::{Wanted, refused, too_many};
use crate::app::App;
use crate::problem::Problem;
use crate::refusal;
use crate::slots::Slot;

/// The state of a stream.
struct Following {
    app: App,
    watch: Watch,
    pulse: Duration,
    is_over: bool,
    _slot: Slot,
}

/// Answers with a stream from this position on, or from now on.
pub(super) async fn answer(
    app: &App,
    store: &Store,
    from: Option<Position>,
    wanted: &Wanted,
) -> Result<Response, Problem> {
    let limits = &app.config().limits;
    let slot = app.streams().enter(limits.streams_max);
    let slot = slot.ok_or_else(|| too_many(limits.streams_max))?;
    let options = from.map_or_else(WatchOptions::from_now, WatchOptions::from_position);
    let collections = wanted.collections.iter().flatten();
    let options = collections.fold(options, |options, name| options.collection(name));
    let options = wanted.prefix.iter().fold(options, |options, text| options.key_prefix(text));
    let following = Following {
        app: app.clone(),
        watch: store.watch(options).await.map_err(refused)?,
        pulse: limits.stream_pulse,
        is_over: false,
        _slot: slot,
    };
    // A caller who loses the connection before the first change must also know where to continue.
    let begin = iter([following.beat("from here on")]);
    let events = begin.chain(unfold(following, |mut following| async {
        let event = following.next().await?;
        Some((event, following))
    }));
    let events = events.map(|event| Ok::<Bytes, Infallible>(Bytes::from(event)));
    let headers = [
        (header::CONTENT_TYPE, super::EVENT_STREAM),
        (header::CACHE_CONTROL, "no-store"),
        // Tells proxies not to buffer events.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

impl Following {
    /// The next event as text; `None` after the last.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let stopped = self.app.stopped();
        tokio::select! {
            biased;
            () = stopped => Some(self.end(&refusal::stopping())),
            next = self.watch.next() => Some(match next {
                Ok(logged) => event(logged),
                Err(error) => self.end(&error.into()),
            }),
            () = tokio::time::sleep(self.pulse) => Some(self.beat("nothing new")),
        }
    }

    /// The last event.
    fn end(&mut self, problem: &Problem) -> String {
        self.is_over = true;
        format!("event: problem\ndata: {}\n\n", problem.to_json())
    }

    /// A sign of life. It says how far the log was read, so that a reader who wants few changes
    /// does not fall behind the part that is kept.
    fn beat(&self, comment: &str) -> String {
        let seen = self.watch.position().number().checked_sub(1).filter(|seen| *seen > 0);
        match seen {
            Some(seen) => format!("id: {seen}\n: {comment}\n\n"),
            None => format!(": {comment}\n\n"),
        }
    }
}

/// A commit as an event. The JSON text has no line breaks, so it is a single line of data.
fn event(logged: Logged) -> String {
    let position = logged.position;
    format!("id: {position}\nevent: commit\ndata: {}\n\n", commit(logged))
}
