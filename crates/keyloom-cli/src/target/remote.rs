//! A running server.

use std::io::Read;
use std::time::Duration;

use axum::http;
use ureq::Error;

use super::{Answer, Opened};
use crate::exit::{Failure, UNKNOWN, UNREACHABLE, USAGE};

/// A server at its URL.
pub(super) struct Remote {
    pub(super) url: String,
    agent: ureq::Agent,
}

impl Remote {
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(10)))
            .user_agent(concat!("keyloom/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Remote { url: checked(url)?, agent: config.into() })
    }

    pub(super) fn send(&self, request: http::Request<Vec<u8>>) -> Result<Answer, Failure> {
        self.whole(request)
    }

    /// Sends a body that is read while it is sent, once the server is ready for it.
    pub(super) fn upload(
        &self,
        request: http::Request<Vec<u8>>,
        source: Box<dyn Read + Send>,
    ) -> Result<Answer, Failure> {
        let mut request = request.map(|_| ureq::SendBody::from_owned_reader(source));
        // The server can then refuse before the body is sent, and a broken connection does not lose
        // its answer.
        let expected = http::HeaderValue::from_static("100-continue");
        request.headers_mut().insert(http::header::EXPECT, expected);
        self.whole(request)
    }

    fn whole(&self, request: http::Request<impl ureq::AsSendBody>) -> Result<Answer, Failure> {
        let (head, body) = self.run(request)?.into_parts();
        let read = body.into_with_config().limit(u64::MAX).read_to_vec();
        let body = read.map_err(|error| super::broken(&error))?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }

    pub(super) fn stream(&self, request: http::Request<Vec<u8>>) -> Result<Opened, Failure> {
        let (head, body) = self.run(request)?.into_parts();
        let body = Box::new(body.into_reader());
        Ok(Opened { status: head.status.as_u16(), headers: head.headers, body })
    }

    fn run(
        &self,
        request: http::Request<impl ureq::AsSendBody>,
    ) -> Result<http::Response<ureq::Body>, Failure> {
        let is_write = request.method() != http::Method::GET;
        self.agent.run(request).map_err(|error| self.failed(&error, is_write))
    }

    /// A request that never arrived changed nothing. One whose answer is missing may have.
    fn failed(&self, error: &Error, is_write: bool) -> Failure {
        let Self { url, .. } = self;
        let never_arrived = match error {
            Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
            Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) | Error::Tls(_) => {
                true
            }
            _ => false,
        };
        if never_arrived || !is_write {
            return Failure::new(UNREACHABLE, format!("no answer from {url}: {error}"))
                .with_hint("is `keyloom serve` running there?");
        }
        let message =
            format!("the answer of {url} is missing: {error}; the write may have happened");
        Failure::new(UNKNOWN, message).with_hint("look at what is stored before you repeat it")
    }
}

/// The URL of a server, without a trailing slash. It must not contain secrets.
fn checked(url: &str) -> Result<String, Failure> {
    let wrong = |message: &str| {
        Failure::new(USAGE, message).with_hint("as in --server http://127.0.0.1:7117")
    };
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(wrong("the URL of a server begins with http:// or https://"));
    };
    let authority = rest.split('/').next().unwrap_or(rest);
    if authority.contains('@') {
        let message = "the URL of a server carries no name or password";
        return Err(Failure::new(USAGE, message).with_hint("give a token in KEYLOOM_TOKEN"));
    }
    if authority.is_empty() || rest.contains(['?', '#', ' ']) {
        return Err(wrong("the URL of a server is its scheme, host, port, and perhaps a path"));
    }
    let base = url.trim_end_matches('/');
    // People copy the address of the API or of the console from the output of `serve`.
    Ok(["/v1", "/console"].iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base).to_owned())
}
