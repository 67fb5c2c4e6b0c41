//! A store that this process has open, used through the server's application.

use std::io::{self, Read};
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
use crate::exit::{FAILED, Failure, UNREACHABLE};

/// How many bytes of a file are sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// A store and its application.
pub(super) struct Local {
    runtime: Arc<Runtime>,
    app: App,
}

/// Opens a store. A missing folder is created only for commands that may create one.
pub(crate) fn open_store(
    runtime: &Runtime,
    address: &str,
    is_made: bool,
) -> Result<Store, Failure> {
    let opened = match is_made {
        true => runtime.block_on(Store::open(address)),
        false => runtime.block_on(Store::open_existing(address)),
    };
    opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => no_store(error.context_value("path").unwrap_or(address)),
        ErrorKind::InvalidArgument => {
            Failure::from(error).with_hint("a folder: --store ./data; for trials: --store memory:")
        }
        _ => Failure::from(error),
    })
}

fn no_store(path: &str) -> Failure {
    if path == "memory" {
        let message = "memory is read as the name of a folder, which is not there";
        return Failure::new(UNREACHABLE, message).with_hint("in memory: --store memory:");
    }
    let hint = "`keyloom schema --apply FILE` and `keyloom serve` make one, `keyloom demo` shows \
                one; --store names another, --server asks a running server";
    Failure::new(UNREACHABLE, format!("there is no store at {path}")).with_hint(hint)
}

/// The runtime of a command.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Runtime::new().map_err(|error| Failure::new(FAILED, format!("no threads: {error}")))
}

impl Local {
    /// Opens a store that must exist.
    pub(super) fn open(address: &str) -> Result<Self, Failure> {
        Local::at(address, false)
    }

    /// Opens a store, and creates it if it is missing.
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

    /// Sends a body that is read while it is sent.
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
    /// All writes are durable already; closing only releases the folder properly.
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

/// The content of a file, piece by piece.
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

/// The body of an answer, read as it arrives.
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
