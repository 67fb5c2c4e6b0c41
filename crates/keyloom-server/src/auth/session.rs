//! Signs visitors in to the console: a token in a form, then a cookie.
//!
//! A browser cannot add a header to a link or a form, so people need a cookie. It contains only a
//! random text. Browsers send it only from the same site (`SameSite=Strict`) and only below
//! `/console`, and scripts cannot read it (`HttpOnly`). Requests that change something must also
//! come from a page of this server (`guard::origin`). Sessions live in memory and end with the
//! process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use maud::{DOCTYPE, Markup, html};

use super::grant::Grant;
use super::token::{Hash, hash, random_text};
use super::{Authority, now};
use crate::app::App;
use crate::body::{WordsBody, has_media_type};
use crate::params::Params;
use crate::path;
use crate::problem::Problem;

const COOKIE: &str = "keyloom_session";
const HOME: &str = "/console";
pub(crate) const LOGIN: &str = "/console/login";

/// Twelve hours: long enough for a working day, and not for the night after it.
const SECONDS: u64 = 12 * 60 * 60;

/// More sessions than one console needs. When they are all taken, the one that ends first is
/// dropped.
const SESSIONS_MAX: usize = 10_000;

/// What the page of the form may load, and where the form may lead.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The sessions of signed-in visitors, by the hashes of their cookies.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<Hash, Session>>);

struct Session {
    grant: Arc<Grant>,
    until: u64,
}

impl Sessions {
    /// Starts a session and gives the text of its cookie.
    fn begin(&self, grant: Arc<Grant>, now: u64) -> String {
        let id = random_text();
        let until = (now + SECONDS).min(grant.until.unwrap_or(u64::MAX));
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.until > now);
        if sessions.len() >= SESSIONS_MAX {
            let first = sessions.iter().min_by_key(|(_, session)| session.until);
            if let Some(first) = first.map(|(id, _)| *id) {
                sessions.remove(&first);
            }
        }
        sessions.insert(hash(&id), Session { grant, until });
        id
    }

    /// The grant of the visitor with this cookie.
    pub(super) fn find(&self, headers: &HeaderMap, now: u64) -> Option<Arc<Grant>> {
        let id = hash(cookie(headers)?);
        let sessions = self.lock();
        let session = sessions.get(&id).filter(|session| session.until > now)?;
        Some(session.grant.clone())
    }

    fn end(&self, headers: &HeaderMap) {
        if let Some(id) = cookie(headers) {
            self.lock().remove(&hash(id));
        }
    }

    /// Each change of the map is a single call, so the map is consistent even after a panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<Hash, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authority {
    fn sign_in(&self, credential: &str) -> Option<String> {
        let known = self.0.as_ref()?;
        let grant = self.recognise(credential)?;
        tracing::info!(caller = %grant.name, "signed in to the console");
        Some(known.sessions.begin(grant, now()))
    }

    fn sign_out(&self, headers: &HeaderMap) {
        if let Some(known) = &self.0 {
            known.sessions.end(headers);
        }
    }
}

pub(crate) fn routes() -> Router<App> {
    Router::new().route(LOGIN, get(form).post(sign_in)).route("/console/logout", post(sign_out))
}

/// `GET /console/login?next=`
async fn form(State(app): State<App>, mut params: Params) -> Result<Response, Problem> {
    let next = params.take("next")?.unwrap_or_default();
    params.finish()?;
    if app.config().authority.is_open() {
        return Ok(Redirect::to(inside(&next)).into_response());
    }
    Ok(answer(StatusCode::OK, page(inside(&next), None)))
}

/// `POST /console/login`, a form with `token` and `next`.
async fn sign_in(
    State(app): State<App>,
    headers: HeaderMap,
    body: WordsBody,
) -> Result<Response, Problem> {
    const FORM: &str = "application/x-www-form-urlencoded";
    if !has_media_type(&headers, &[FORM]) {
        return Err(Problem::unsupported_media_type(FORM));
    }
    let mut fields = Params::read(&String::from_utf8_lossy(&body.0));
    let token = fields.take("token")?.unwrap_or_default();
    let next = fields.take("next")?.unwrap_or_default();
    fields.finish()?;
    if app.config().authority.is_open() {
        return Ok(Redirect::to(inside(&next)).into_response());
    }
    match app.config().authority.sign_in(token.trim()) {
        Some(id) => {
            let cookie =
                format!("{COOKIE}={id}; Path={HOME}; Max-Age={SECONDS}; {}", flags(&headers));
            Ok(with_cookie(Redirect::to(inside(&next)).into_response(), &cookie))
        }
        None => {
            let reason = "This token is not known, or is out of its time.";
            Ok(answer(StatusCode::UNAUTHORIZED, page(inside(&next), Some(reason))))
        }
    }
}

/// `POST /console/logout`
async fn sign_out(State(app): State<App>, headers: HeaderMap) -> Response {
    app.config().authority.sign_out(&headers);
    let cookie = format!("{COOKIE}=; Path={HOME}; Max-Age=0; {}", flags(&headers));
    with_cookie(Redirect::to(LOGIN).into_response(), &cookie)
}

/// Sends a browser to sign in, and back to `wanted` afterwards.
pub(crate) fn login_for(wanted: &str) -> Response {
    Redirect::to(&format!("{LOGIN}?next={}", path::encode(wanted))).into_response()
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// The flags that protect the cookie. The server itself speaks plain HTTP, but a proxy before it
/// may speak TLS. The origin of the page, or a header of the proxy, tells. A caller who fakes that
/// only gets a cookie that browsers send less often.
fn flags(headers: &HeaderMap) -> &'static str {
    let starts = |name: &str, prefix: &[u8]| {
        headers.get(name).is_some_and(|value| value.as_bytes().starts_with(prefix))
    };
    let is_https = starts("origin", b"https:") || starts("x-forwarded-proto", b"https");
    if is_https { "HttpOnly; SameSite=Strict; Secure" } else { "HttpOnly; SameSite=Strict" }
}

/// The session's cookie, if there is exactly one.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut found = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    match (found.next(), found.next()) {
        (Some(id), None) => Some(id),
        _ => None,
    }
}

/// The page to open after signing in: always one of the console, never another site.
fn inside(next: &str) -> &str {
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_inside = next == HOME || next.starts_with("/console/") || next.starts_with("/console?");
    if is_inside && is_plain { next } else { HOME }
}

fn answer(status: StatusCode, page: Markup) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    (status, headers, page.into_string()).into_response()
}

fn page(next: &str, reason: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Sign in · Keyloom" }
                link rel="stylesheet" href=(crate::console::style_url());
            }
            body.alone {
                main {
                    h1 { "Sign in to Keyloom" }
                    @if let Some(reason) = reason { p.notice.bad role="alert" { (reason) } }
                    form method="post" action=(LOGIN) {
                        input type="hidden" name="next" value=(next);
                        p {
                            label for="token" { "Token" }
                            " "
                            input id="token" name="token" type="password" required autofocus
                                autocomplete="current-password";
                        }
                        p { button { "Sign in" } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn with(cookies: &[&str]) -> HeaderMap {
        let cookies = cookies.iter().map(|text| (header::COOKIE, text.parse().unwrap()));
        cookies.collect()
    }

    #[test]
    fn a_session_ends_in_time_with_its_token_and_when_it_is_ended() {
        let sessions = Sessions::default();
        let id = sessions.begin(Arc::new(Grant::admin()), 1_000);
        let headers = with(&[&format!("{COOKIE}={id}")]);
        assert!(sessions.find(&headers, 1_000 + SECONDS - 1).is_some());
        assert!(sessions.find(&headers, 1_000 + SECONDS).is_none());
        sessions.end(&headers);
        assert!(sessions.find(&headers, 1_001).is_none());

        let short = sessions.begin(Arc::new(Grant { until: Some(1_060), ..Grant::admin() }), 1_000);
        let headers = with(&[&format!("a=b; {COOKIE}={short}")]);
        assert!(sessions.find(&headers, 1_059).is_some());
        assert!(sessions.find(&headers, 1_060).is_none());
    }

    #[test]
    fn a_full_console_forgets_the_session_that_ends_first() {
        let sessions = Sessions::default();
        let first = sessions.begin(Arc::new(Grant::admin()), 1_000);
        for _ in 1..SESSIONS_MAX {
            sessions.begin(Arc::new(Grant::admin()), 1_001);
        }
        let last = sessions.begin(Arc::new(Grant::admin()), 1_002);
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        assert!(sessions.find(&with(&[&format!("{COOKIE}={first}")]), 1_002).is_none());
        assert!(sessions.find(&with(&[&format!("{COOKIE}={last}")]), 1_002).is_some());
    }

    #[test]
    fn two_cookies_of_the_name_are_none() {
        assert_eq!(cookie(&with(&["keyloom_session=a"])), Some("a"));
        assert_eq!(cookie(&with(&["keyloom_session=a; keyloom_session=b"])), None);
        assert_eq!(cookie(&with(&["keyloom_session=a", "keyloom_session=b"])), None);
    }

    #[test]
    fn signing_in_leads_to_the_console_and_nowhere_else() {
        for next in ["/console", "/console/keys?prefix=a%2F", "/console?x=1"] {
            assert_eq!(inside(next), next);
        }
        for next in [
            "",
            "https://evil.example",
            "//evil.example",
            "/consoles",
            "/console/\r\nx",
            "/console/\\x",
            "/v1",
        ] {
            assert_eq!(inside(next), HOME, "{next}");
        }
    }
}
