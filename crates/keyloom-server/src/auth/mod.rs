//! Who may do what.
//!
//! An [`Authority`] is made from an access file. It turns the credentials of a request into a
//! [`Grant`]. A credential is a token of the file, the JWT of a user, or, on the pages of the
//! console, the cookie of a visitor who signed in with one of these.

mod file;
mod grant;
mod jwt;
pub(crate) mod session;
mod token;

use std::fmt;
use std::sync::{Arc, LazyLock};

use axum::http::{HeaderMap, header};
use keyloom::Timestamp;

pub use self::grant::{Grant, Role, Verb};
pub use self::token::new_token;
pub(crate) use self::token::random_text;

use self::jwt::Users;
use self::session::Sessions;
use self::token::Tokens;
use crate::caller::header as one_header;
use crate::problem::Problem;

/// The source of all rights. Cloning is cheap, and clones share the sessions of the console.
#[derive(Clone)]
pub struct Authority(Option<Arc<Known>>);

/// All credentials that the server accepts.
struct Known {
    tokens: Tokens,
    users: Option<Users>,
    sessions: Sessions,
}

/// The grant of everyone while access control is off.
static EVERYTHING: LazyLock<Arc<Grant>> = LazyLock::new(|| Arc::new(Grant::admin()));

impl Authority {
    /// Turns access control off: everyone may do everything.
    pub fn open() -> Self {
        Authority(None)
    }

    fn new(tokens: Tokens, users: Option<Users>) -> Self {
        Authority(Some(Arc::new(Known { tokens, users, sessions: Sessions::default() })))
    }

    /// Whether access control is off.
    pub fn is_open(&self) -> bool {
        self.0.is_none()
    }

    /// The grant of the caller who sent these headers. A session counts only for the console: other
    /// sites can make a browser send a cookie, but no header.
    pub(crate) fn grant(
        &self,
        headers: &HeaderMap,
        is_console: bool,
    ) -> Result<Arc<Grant>, Problem> {
        let Some(known) = &self.0 else { return Ok(EVERYTHING.clone()) };
        if let Some(credentials) = one_header(headers, &header::AUTHORIZATION)? {
            let bearer = bearer(credentials).ok_or_else(refused)?;
            return self.recognise(bearer).ok_or_else(refused);
        }
        if is_console && let Some(grant) = known.sessions.find(headers, now()) {
            return Ok(grant);
        }
        let detail = "send the header Authorization with the word Bearer and a token";
        Err(Problem::unauthenticated(detail))
    }

    /// The grant for this token or JWT.
    fn recognise(&self, credential: &str) -> Option<Arc<Grant>> {
        let Some(known) = &self.0 else { return Some(EVERYTHING.clone()) };
        let by_token = known.tokens.find(credential);
        by_token.or_else(|| known.users.as_ref()?.verify(credential, now()).map(Arc::new))
    }
}

/// Shows neither tokens nor secrets, so that a logged configuration reveals none.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(known) = &self.0 else { return f.write_str("Authority(open)") };
        f.debug_struct("Authority")
            .field("tokens", &known.tokens.names().collect::<Vec<_>>())
            .field("has_users", &known.users.is_some())
            .finish_non_exhaustive()
    }
}

/// The same answer for every invalid credential, so that it does not reveal the reason.
fn refused() -> Problem {
    Problem::unauthenticated("the token is not known, was altered, or is out of its time")
}

/// The credential after the word `Bearer`, in upper or lower case.
fn bearer(credentials: &str) -> Option<&str> {
    let (scheme, credential) = credentials.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| credential.trim_matches(' '))
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(Timestamp::now().millis() / 1_000).unwrap_or(0)
}
