//! The target of a command: a running server, or the same application in this process.
//!
//! Every command that reads or writes records uses the HTTP API, so it does the same on a store and
//! on a server. On a store, the requests never leave the process.

mod local;
mod remote;
mod request;

pub(crate) use local::{open_store, runtime};
pub(crate) use request::{Answer, Request};

use std::io::Read;

use axum::http::{self, HeaderMap, header};
use keyloom::did_you_mean;
use serde_json::Value;

use self::local::Local;
use self::remote::Remote;
use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure, UNREACHABLE, USAGE};

/// The target of a command.
pub(crate) struct Target {
    place: GlobalOptions,
    kind: Kind,
}

enum Kind {
    Local(Local),
    Remote(Remote),
}

/// An answer whose body is read as it arrives.
pub(crate) struct Opened {
    status: u16,
    headers: HeaderMap,
    pub(crate) body: Box<dyn Read + Send>,
}

impl Opened {
    /// A header of the answer, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Target {
    /// The named server, or the store, which must exist.
    pub(crate) fn open(place: &GlobalOptions) -> Result<Self, Failure> {
        let kind = match place.server() {
            Some(url) => Kind::Remote(Remote::new(&url)?),
            None => Kind::Local(Local::open(&place.address())?),
        };
        Ok(Target { place: place.clone(), kind })
    }

    /// As [`open`](Self::open), but creates a missing store.
    pub(crate) fn open_or_make(place: &GlobalOptions) -> Result<Self, Failure> {
        let kind = match place.server() {
            Some(url) => Kind::Remote(Remote::new(&url)?),
            None => Kind::Local(Local::make(&place.address())?),
        };
        Ok(Target { place: place.clone(), kind })
    }

    /// Whether it is a server, which runs on after this command.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.kind, Kind::Remote(_))
    }

    /// Sends a request, and gives the answer unless it is a problem.
    pub(crate) fn ask(&self, request: Request) -> Result<Answer, Failure> {
        let (is_read, collection) = (request.is_read(), request.collection());
        let answer = self.send(request)?;
        match answer.status {
            200..=299 => self.understood(answer, is_read),
            304 => Ok(answer),
            _ => Err(self.refused(collection, answer.status, &answer.headers, &answer.body)),
        }
    }

    /// Sends a request for JSON.
    pub(crate) fn value(&self, request: Request) -> Result<Value, Failure> {
        self.ask(request)?.json()
    }

    /// Sends a request for an answer that is read as it arrives.
    pub(crate) fn stream(&self, request: Request) -> Result<Box<dyn Read + Send>, Failure> {
        self.open_stream(request).map(|opened| opened.body)
    }

    /// As [`stream`](Self::stream), with the status and the headers of the answer.
    pub(crate) fn open_stream(&self, request: Request) -> Result<Opened, Failure> {
        let collection = request.collection();
        let request = self.addressed(request)?;
        let mut opened = match &self.kind {
            Kind::Local(local) => local.stream(request),
            Kind::Remote(remote) => remote.stream(request)?,
        };
        if opened.status == 200 {
            return Ok(opened);
        }
        let mut body = Vec::new();
        opened.body.read_to_end(&mut body).map_err(|error| broken(&error))?;
        Err(self.refused(collection, opened.status, &opened.headers, &body))
    }

    /// Sends a body that is read while it is sent, and gives the answer unless it is a problem.
    pub(crate) fn upload(
        &self,
        request: Request,
        body: Box<dyn Read + Send>,
    ) -> Result<Answer, Failure> {
        let collection = request.collection();
        let request = self.addressed(request)?;
        let answer = match &self.kind {
            Kind::Local(local) => local.upload(request, body)?,
            Kind::Remote(remote) => remote.upload(request, body)?,
        };
        match answer.status {
            200..=299 => Ok(answer),
            _ => Err(self.refused(collection, answer.status, &answer.headers, &answer.body)),
        }
    }

    fn send(&self, request: Request) -> Result<Answer, Failure> {
        let request = self.addressed(request)?;
        match &self.kind {
            Kind::Local(local) => local.send(request),
            Kind::Remote(remote) => remote.send(request),
        }
    }

    /// Checks that the answer is not a web page: another server may listen at the URL, and answer
    /// every request with success.
    fn understood(&self, answer: Answer, is_read: bool) -> Result<Answer, Failure> {
        let is_page = media(&answer.headers).is_some_and(|media| media.starts_with("text/html"));
        if is_read && is_page { Err(self.stranger(answer.status)) } else { Ok(answer) }
    }

    /// The failure in an answer, for a request about this collection.
    fn refused(
        &self,
        collection: Option<String>,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Failure {
        let is_problem = media(headers) == Some("application/problem+json");
        let problem: Option<Value> = serde_json::from_slice(body).ok().filter(|_| is_problem);
        let Some(problem) = problem else { return self.stranger(status) };
        let failure = Failure::of_problem(&problem);
        if failure.kind() == Some("not-found") {
            return self.not_found(collection.as_deref(), failure);
        }
        failure
    }

    /// Adds the existing collections to the failure, if the wanted one does not exist.
    fn not_found(&self, wanted: Option<&str>, failure: Failure) -> Failure {
        if !failure.message().contains("no collection of that name") {
            return failure;
        }
        let Ok(answer) = self.send(Request::get(&["collections"])) else { return failure };
        let Ok(there) = answer.json() else { return failure };
        let collections = there["collections"].as_array().into_iter().flatten();
        let names: Vec<&str> = collections.filter_map(|it| it["name"].as_str()).collect();
        let space = match self.place.space.as_str() {
            "main" => String::new(),
            other => format!(" --space {other}"),
        };
        match names.is_empty() {
            true => failure.with_hint(format!(
                "this space has no schema yet: `keyloom serve --schema PATH{space}` gives it one"
            )),
            false => {
                let meant = wanted.and_then(|wanted| did_you_mean(wanted, &names));
                let meant = meant.map(|name| format!("did you mean {name}? "));
                let (meant, names) = (meant.unwrap_or_default(), names.join(", "));
                failure.with_hint(format!("{meant}the collections are {names}"))
            }
        }
    }

    fn stranger(&self, status: u16) -> Failure {
        let Kind::Remote(Remote { url, .. }) = &self.kind else {
            return Failure::new(FAILED, format!("an answer with status {status} and no reason"));
        };
        let message = format!("{url} does not answer as a Keyloom server does (status {status})");
        Failure::new(UNREACHABLE, message).with_hint(format!(
            "this is keyloom {}; another program, or another version, may listen there",
            env!("CARGO_PKG_VERSION")
        ))
    }

    fn addressed(&self, request: Request) -> Result<http::Request<Vec<u8>>, Failure> {
        let base = match &self.kind {
            Kind::Local(_) => "http://localhost",
            Kind::Remote(remote) => &remote.url,
        };
        let space = match self.place.space.as_str() {
            "main" => String::new(),
            space => format!("/s/{}", request::encoded(space)),
        };
        let uri = format!("{base}{space}/v1{}", request.path_and_query());
        let mut made = http::Request::builder().method(request.method).uri(uri);
        if matches!(self.kind, Kind::Local(_)) {
            made = made.header(header::HOST, "localhost");
        }
        if let (Some(token), Kind::Remote(_)) = (&self.place.token, &self.kind) {
            made = made.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(user) = &self.place.act_as {
            made = made.header("keyloom-act-as", request::encoded(user));
        }
        for (name, value) in request.headers {
            made = made.header(name, value);
        }
        made.body(request.body).map_err(|_| {
            let message =
                "this cannot be sent: a version, token or URL has characters that HTTP refuses";
            Failure::new(USAGE, message)
        })
    }
}

fn media(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or(text).trim())
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(UNREACHABLE, format!("the answer broke off: {error}"))
}
