//! A store that this process holds, asked through the server's application.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http;
use futures_util::stream;
use http_body_util::BodyExt;
use keyloom::{ErrorKind, Store};
use keyloom_server::{App, Config};
use tokio::runtime::Runtime;
use tower::ServiceExt;

use super::{Answer, Opened};
use crate::exit::{FAILED, Failure, UNREACHABLE, WRONG_INPUT};

/// How much of a file is sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// A store and its application.
pub(super) struct Local {
    runtime: Arc<Runtime>,
    app: App,
}

/// Opens a store. A folder that is not there is made only where the command is meant to.
pub(crate) fn open_store(
    runtime: &Runtime,
    address: &str,
    is_made: bool,
) -> Result<Store, Failure> {
    if let Some(engine) = later_engine(address) {
        let message = format!("Keyloom cannot keep its records in {engine} yet");
        return Err(Failure::new(WRONG_INPUT, message).with_hint("file:PATH and memory: work"));
    }
    if let Some(path) = address.strip_prefix("file:")
        && !path.is_empty()
        && !is_made
        && has_nothing(Path::new(path))
    {
        if path == "memory" {
            let message = "memory is read as the name of a folder, which is not there";
            return Err(Failure::new(UNREACHABLE, message).with_hint("in memory: --store memory:"));
        }
        let message = format!("there is no store at {path}");
        let hint = "`keyloom schema --apply FILE` and `keyloom serve` make one, `keyloom demo` \
                    shows one; --store names another, --server asks a running server";
        return Err(Failure::new(UNREACHABLE, message).with_hint(hint));
    }
    runtime.block_on(Store::open(address)).map_err(|error| {
        let is_unknown = error.kind() == ErrorKind::InvalidArgument;
        let failure = Failure::from(error);
        match is_unknown {
            true => failure.with_hint("a folder: --store ./data; for trials: --store memory:"),
            false => failure,
        }
    })
}

/// Whether there is no such folder, or an empty one, in which a store would be made.
fn has_nothing(folder: &Path) -> bool {
    let is_empty = |mut entries: std::fs::ReadDir| entries.next().is_none();
    !folder.exists() || std::fs::read_dir(folder).is_ok_and(is_empty)
}

/// The engines whose addresses are known and that do not exist yet.
fn later_engine(address: &str) -> Option<&'static str> {
    let (scheme, _) = address.split_once(':')?;
    match scheme {
        "redis" | "rediss" => Some("Redis"),
        "postgres" | "postgresql" => Some("PostgreSQL"),
        "dynamodb" => Some("DynamoDB"),
        _ => None,
    }
}

/// The runtime of a command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| Failure::new(FAILED, format!("no threads: {error}")))
}

impl Local {
    /// A store that must be there.
    pub(super) fn open(address: &str) -> Result<Self, Failure> {
        Local::at(address, false)
    }

    /// A store that is made where it is not there.
    pub(super) fn make(address: &str) -> Result<Self, Failure> {
        Local::at(address, true)
    }

    fn at(address: &str, is_made: bool) -> Result<Self, Failure> {
        let runtime = runtime()?;
        let store = open_store(&runtime, address, is_made)?;
        let app = {
            let _inside = runtime.enter();
            App::new(store, patient())
        };
        Ok(Local { runtime: Arc::new(runtime), app })
    }

    pub(super) fn send(&self, request: http::Request<Vec<u8>>) -> Result<Answer, Failure> {
        self.whole(request.map(Body::from))
    }

    /// Sends a body that is read as it goes.
    pub(super) fn upload(
        &self,
        request: http::Request<Vec<u8>>,
        source: Box<dyn Read + Send>,
    ) -> Result<Answer, Failure> {
        self.whole(request.map(|_| Body::from_stream(stream::iter(Pieces(source)))))
    }

    fn whole(&self, request: http::Request<Body>) -> Result<Answer, Failure> {
        let (head, body) = self.answer(request);
        let body = self.runtime.block_on(body.collect()).map_err(|error| super::broken(&error))?;
        let (status, body) = (head.status.as_u16(), body.to_bytes().to_vec());
        Ok(Answer { status, headers: head.headers, body })
    }

    pub(super) fn stream(&self, request: http::Request<Vec<u8>>) -> Opened {
        let (head, body) = self.answer(request.map(Body::from));
        let body = BodyReader { runtime: Arc::clone(&self.runtime), body, rest: Bytes::new() };
        Opened { status: head.status.as_u16(), headers: head.headers, body: Box::new(body) }
    }

    fn answer(&self, request: http::Request<Body>) -> (http::response::Parts, Body) {
        let answer = self.runtime.block_on(self.app.router().oneshot(request));
        answer.unwrap_or_else(|never| match never {}).into_parts()
    }
}

impl Drop for Local {
    /// What was written is durable already; closing only lets go of the folder in order.
    fn drop(&mut self) {
        if let Err(error) = self.runtime.block_on(self.app.store().close()) {
            crate::output::note(&format!("the store did not close well: {error}"));
        }
    }
}

/// Limits protect a server from its callers. This caller is the one who holds the store. What they
/// interrupt does not go on by itself.
fn patient() -> Config {
    let mut config = Config { keeps_jobs: false, ..Config::default() };
    config.limits.answer_timeout = Duration::from_secs(24 * 60 * 60);
    config.limits.moment_timeout = config.limits.answer_timeout;
    config.limits.body_bytes_max = 1 << 30;
    config.limits.read_max = usize::MAX;
    config
}

/// What is read from a file, piece by piece.
struct Pieces(Box<dyn Read + Send>);

impl Iterator for Pieces {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut piece = vec![0; PIECE_BYTES];
        match self.0.read(&mut piece) {
            Ok(0) => None,
            Ok(count) => {
                piece.truncate(count);
                Some(Ok(piece.into()))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// The body of an answer, as it comes.
struct BodyReader {
    runtime: Arc<Runtime>,
    body: Body,
    rest: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.runtime.block_on(self.body.frame()) {
                None => return Ok(0),
                Some(frame) => {
                    let frame = frame.map_err(io::Error::other)?;
                    self.rest = frame.into_data().unwrap_or_default();
                }
            }
        }
        let count = target.len().min(self.rest.len());
        let taken = self.rest.split_to(count);
        target[..count].copy_from_slice(&taken);
        Ok(count)
    }
}
