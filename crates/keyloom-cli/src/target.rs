//! Whom a command asks: a running server, or the same application in this process.
//!
//! Every command that reads or writes records speaks the HTTP API, so that it does the same on a
//! store and on a server. On a store the requests never leave the process.

use axum::body::Body;
use axum::http;
use http_body_util::BodyExt;
use keyloom::Store;
use keyloom_server::{App, Config};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::cli::Place;
use crate::exit::Failure;

/// Everything that is not unreserved in a URL (RFC 3986) is encoded.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Whom a command asks.
pub(crate) struct Target {
    place: Place,
    kind: Kind,
}

enum Kind {
    /// A store that this process holds.
    Local { runtime: Runtime, app: App },
    /// A server.
    Remote { url: String, agent: ureq::Agent },
}

/// One request below `/v1`.
pub(crate) struct Request {
    method: http::Method,
    /// The path below `/v1`, encoded, with its parameters.
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

/// An answer that was read whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A request without a body.
    pub(crate) fn get(parts: &[&str]) -> Self {
        Request::new(http::Method::GET, parts)
    }

    /// A request for a path of these parts, each encoded by itself.
    pub(crate) fn new(method: http::Method, parts: &[&str]) -> Self {
        let encoded = parts.iter().map(|part| utf8_percent_encode(part, RESERVED).to_string());
        let path = encoded.fold(String::new(), |path, part| path + "/" + &part);
        Request { method, path, headers: Vec::new(), body: Vec::new() }
    }
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::new(1, format!("the answer is not JSON: {error}")))
    }
}

impl Target {
    /// The server that was named, or the store.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        let kind = match &place.server {
            Some(url) => {
                let config = ureq::Agent::config_builder().http_status_as_error(false).build();
                let url = url.trim_end_matches('/').to_owned();
                Kind::Remote { url, agent: config.into() }
            }
            None => {
                let runtime = Runtime::new().map_err(|error| Failure::new(1, error.to_string()))?;
                let store = runtime.block_on(Store::open(&place.store))?;
                Kind::Local { runtime, app: App::new(store, Config::default()) }
            }
        };
        Ok(Target { place: place.clone(), kind })
    }

    /// Asks, and gives the answer if it is not a problem.
    pub(crate) fn ask(&self, request: Request) -> Result<Answer, Failure> {
        let answer = self.send(request)?;
        if answer.status >= 400 {
            return Err(Failure::of_problem(&answer.json().unwrap_or_default()));
        }
        Ok(answer)
    }

    fn send(&self, request: Request) -> Result<Answer, Failure> {
        let request = self.addressed(request)?;
        match &self.kind {
            Kind::Local { runtime, app } => runtime.block_on(async {
                let (head, body) = request.into_parts();
                let request = http::Request::from_parts(head, Body::from(body));
                let answer = app.router().oneshot(request).await;
                let (head, body) = answer.unwrap_or_else(|never| match never {}).into_parts();
                let body = body.collect().await.map_err(|error| broken(&error))?;
                let (status, body) = (head.status.as_u16(), body.to_bytes().to_vec());
                Ok(Answer { status, headers: head.headers, body })
            }),
            Kind::Remote { agent, .. } => {
                let answer = agent.run(request).map_err(|error| {
                    Failure::new(5, format!("the server cannot be reached: {error}"))
                        .with_hint("is `keyloom serve` running there?")
                })?;
                let (head, mut body) = answer.into_parts();
                let body = body.read_to_vec().map_err(|error| broken(&error))?;
                Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
            }
        }
    }

    fn addressed(&self, request: Request) -> Result<http::Request<Vec<u8>>, Failure> {
        let base = match &self.kind {
            Kind::Local { .. } => "",
            Kind::Remote { url, .. } => url,
        };
        let space = match self.place.space.as_str() {
            "main" => String::new(),
            space => format!("/s/{}", utf8_percent_encode(space, RESERVED)),
        };
        let mut made = http::Request::builder()
            .method(request.method)
            .uri(format!("{base}{space}/v1{}", request.path));
        if let Some(token) = &self.place.token {
            made = made.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(user) = &self.place.act_as {
            let user = utf8_percent_encode(user, RESERVED).to_string();
            made = made.header("keyloom-act-as", user);
        }
        for (name, value) in request.headers {
            made = made.header(name, value);
        }
        made.body(request.body).map_err(|error| Failure::new(2, format!("no request: {error}")))
    }
}

fn broken(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(5, format!("the answer broke off: {error}"))
}
