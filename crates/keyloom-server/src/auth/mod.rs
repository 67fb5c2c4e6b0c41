//! Who may do what.
//!
//! An [`Authority`] is made from an access file. It turns the credentials of a request into a
//! [`Grant`]: a token of the file, a JWT of a user, or, on the pages of the console, the cookie of
//! somebody who signed in with one of these.

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

/// Where rights come from. Cloning is cheap, and clones share the sessions of the console.
#[derive(Clone)]
pub struct Authority(Option<Arc<Known>>);

/// Everything by which somebody can say who they are.
struct Known {
    tokens: Tokens,
    users: Option<Users>,
    sessions: Sessions,
}

/// What everyone may do when access control is off.
static EVERYTHING: LazyLock<Arc<Grant>> = LazyLock::new(|| Arc::new(Grant::admin()));

impl Authority {
    /// Access control is off: everyone may do everything.
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

    /// What the caller who sent these headers may do. A session counts for the console only: no
    /// other site can make a browser send a header, but all of them can make it send a cookie.
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

    /// What somebody with this token or JWT may do.
    fn recognise(&self, credential: &str) -> Option<Arc<Grant>> {
        let Some(known) = &self.0 else { return Some(EVERYTHING.clone()) };
        let by_token = known.tokens.find(credential);
        by_token.or_else(|| known.users.as_ref()?.verify(credential, now()).map(Arc::new))
    }
}

/// Tells nothing of tokens and secrets, so that a logged configuration tells nothing either.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(known) = &self.0 else { return f.write_str("Authority(open)") };
        f.debug_struct("Authority")
            .field("tokens", &known.tokens.names().collect::<Vec<_>>())
            .field("has_users", &known.users.is_some())
            .finish_non_exhaustive()
    }
}

/// The one answer to every credential that does not hold, so that it tells nobody why.
fn refused() -> Problem {
    Problem::unauthenticated("the token is not known, was altered, or is out of its time")
}

/// The credential after the word `Bearer`, which is written in any case.
fn bearer(credentials: &str) -> Option<&str> {
    let (scheme, credential) = credentials.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| credential.trim_matches(' '))
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(Timestamp::now().millis() / 1_000).unwrap_or(0)
}
