//! Backs up a space as the bytes of one file, and restores it.

use std::io;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::BodyExt as _;
use keyloom::{Backup, BackupInfo, Error, ErrorKind, Restorer};
use serde_json::{Value, json};

use super::moment::Moment;
use crate::api::answer;
use crate::api::routes::Routes;
use crate::app::App;
use crate::body::refuse_encodings;
use crate::caller::Caller;
use crate::params::Params;
use crate::problem::Problem;
use crate::refusal;

/// The media type that one route sends and the other accepts.
const MEDIA: &str = "application/octet-stream";

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/backup", get(backup)).route("/restore", post(restore))
}

/// `GET /admin/backup`
async fn backup(
    State(app): State<App>,
    caller: Caller,
    params: Params,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    params.finish()?;
    let moment = Moment::hold(&app, store).await?;
    let backup = moment.store.backup().await?;
    let headers = moment.headers();
    let name = format!("attachment; filename=\"{}.keyloom\"", store.space_name());
    let going = Going { moment, backup, is_broken: false };
    let parts = unfold(going, |mut going| async { Some((going.next().await?, going)) });
    let disposition = [(header::CONTENT_DISPOSITION, name)];
    Ok((headers, CONTENT, disposition, Body::from_stream(parts)).into_response())
}

const CONTENT: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, MEDIA), (header::CACHE_CONTROL, "no-store")];

/// A backup in progress.
struct Going {
    moment: Moment,
    backup: Backup,
    is_broken: bool,
}

impl Going {
    /// The next bytes; `None` after the last. A backup that breaks off ends with an error and
    /// without its end, so that nobody takes it for complete.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.is_broken {
            return None;
        }
        let part = match self.moment.check() {
            Ok(()) => self.backup.next().await.map_err(Problem::from),
            Err(problem) => Err(problem),
        };
        match part {
            Ok(part) => part.map(Ok),
            Err(problem) => {
                self.is_broken = true;
                Some(Err(io::Error::other(problem.detail().to_owned())))
            }
        }
    }
}

/// `POST /admin/restore`
async fn restore(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    params.finish()?;
    refuse_encodings(request.headers())?;
    // A space that is in use is refused at once, before the body is read.
    let restorer = store.restorer().await.map_err(refused)?;
    let restoring = take(restorer, request.into_body(), &app);
    let info = tokio::select! {
        restored = restoring => restored?,
        () = app.stopped() => return Err(refusal::stopping()),
    };
    Ok(answer::json(&told(&info)))
}

/// Restores from a body. Each piece may take as long to arrive as a body.
async fn take(mut restorer: Restorer, mut body: Body, app: &App) -> Result<BackupInfo, Problem> {
    let patience = app.config().limits.body_timeout;
    loop {
        match tokio::time::timeout(patience, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    restorer.write(&data).await.map_err(refused)?;
                }
            }
            Ok(Some(Err(_))) => return Err(Problem::invalid_request("the body broke off")),
            Ok(None) => return restorer.finish().await.map_err(refused),
            Err(_) => return Err(Problem::request_timeout()),
        }
    }
}

/// An unreadable backup is a fault of the caller, and not of the store.
fn refused(error: Error) -> Problem {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::UnknownFormat => {
            let sent = Error::new(ErrorKind::InvalidArgument, error.message());
            error.context().fold(sent, |sent, (name, value)| sent.with(name, value)).into()
        }
        _ => error.into(),
    }
}

/// A summary of a backup, as JSON.
fn told(info: &BackupInfo) -> Value {
    let log = info.log.map(|log| json!({ "oldest": log.oldest, "next": log.next }));
    let mut told = json!({
        "id": info.id,
        "space": info.space,
        "taken_at": info.taken_at_ms,
        "release": info.release,
        "keys": info.cells,
        "log_entries": info.log_entries,
        "bytes": info.bytes,
        "sha256": info.sha256,
    });
    if let Some(log) = log {
        told["log"] = log;
    }
    told
}
