//! The caller of a request: their rights, their space, and the store as they see it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use keyloom::{Access, Collection, Store};
use serde_json::Value;

use crate::app::App;
use crate::auth::{Grant, Role, Verb};
use crate::guard::{Arrival, Side};
use crate::path::{self, PathParts};
use crate::problem::Problem;

/// Names the acting user, percent-encoded.
pub(crate) const ACT_AS: HeaderName = HeaderName::from_static("keyloom-act-as");

/// Makes a write idempotent: it happens once.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest idempotency key that the library accepts.
pub(crate) const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// One caller, with the store as they see it.
pub(crate) struct Caller {
    pub(crate) grant: Arc<Grant>,
    /// The store, in the space of the path and on behalf of the acting user.
    pub(crate) store: Store,
    /// The acting user, if there is one.
    pub(crate) user: Option<String>,
    /// The idempotency key of the request.
    pub(crate) key: Option<String>,
    /// The prefix before `/v1` in the paths of this space: nothing, or `/s/{space}`.
    pub(crate) base: String,
}

impl Caller {
    /// A collection for reading or writing. If the caller may not see it, the error says that it
    /// does not exist.
    pub(crate) async fn collection(
        &self,
        verb: Verb,
        name: &str,
    ) -> Result<Collection<Value>, Problem> {
        if !self.grant.sees(name) {
            // Exactly the same answer as for a collection that does not exist.
            return Err(Problem::unknown_collection());
        }
        let collection = self.store.documents(name).await?;
        if !self.grant.allows(verb, name) {
            return Err(Problem::forbidden("the token does not allow this on the collection"));
        }
        if self.lacks_user() && needs_user(verb, collection.declaration().await?.access) {
            return Err(unnamed());
        }
        Ok(match &self.key {
            Some(key) if verb != Verb::Read => collection.with_idempotency_key(key)?,
            _ => collection,
        })
    }

    /// Whether the caller may read a collection. A caller who may only write never gets stored
    /// data, not even in the answers to writes.
    pub(crate) fn may_read(&self, collection: &str) -> bool {
        self.grant.allows(Verb::Read, collection)
    }

    /// Whether the caller may read every key of the space.
    pub(crate) fn reads_keys(&self) -> bool {
        self.may_read("*") && !self.lacks_user()
    }

    /// Whether the caller acts for users, but has named none.
    pub(crate) fn lacks_user(&self) -> bool {
        self.user.is_none() && self.grant.works_for_users()
    }

    /// Refuses callers who are not administrators.
    pub(crate) fn admin(&self) -> Result<&Store, Problem> {
        match self.grant.role {
            Role::Admin if self.user.is_none() => Ok(&self.store),
            Role::Admin => Err(Problem::forbidden("an administrator does this in no user's name")),
            Role::Service | Role::User => {
                Err(Problem::forbidden("only administrators may do this"))
            }
        }
    }
}

/// The caller, before the path is known.
pub(crate) struct Recognised {
    pub(crate) grant: Arc<Grant>,
    /// The acting user, if there is one.
    pub(crate) user: Option<String>,
}

impl FromRequestParts<App> for Recognised {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let arrival = parts.extensions.get::<Arrival>();
        let is_console = arrival.is_some_and(|arrival| arrival.side() == Side::Console);
        let grant = app.config().authority.grant(&parts.headers, is_console)?;
        if let Some(arrival) = arrival {
            arrival.recognised(&grant);
        }
        let user = acting_user(&grant, &parts.headers)?;
        Ok(Recognised { grant, user })
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let Recognised { grant, user } = Recognised::from_request_parts(parts, app).await?;
        let path = PathParts::from_request_parts(parts, app).await?;
        let (store, base) = match path.find("space") {
            None => (app.store().clone(), String::new()),
            Some(space) => (app.store().space(space)?, format!("/s/{}", path::encode(space))),
        };
        if !grant.enters(store.space_name()) {
            return Err(Problem::not_found("there is no such space for this caller"));
        }
        let store = match &user {
            Some(user) => store.acting_as(user)?,
            None => store,
        };
        let key = idempotency_key(&parts.headers)?;
        Ok(Caller { grant, store, user, key, base })
    }
}

/// Whether the operation needs a user, because records belong to users who each reach only their
/// own.
pub(crate) fn needs_user(verb: Verb, access: Option<Access>) -> bool {
    match access {
        Some(Access::Owned) => true,
        Some(Access::Hybrid) => verb != Verb::Read,
        Some(Access::Shared | Access::ReadOnly) | None => false,
    }
}

/// The refusal of a service that acts for users but has named none.
pub(crate) fn unnamed() -> Problem {
    Problem::forbidden("records belong to users here: name one in the header Keyloom-Act-As")
}

fn acting_user(grant: &Grant, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let named = header(headers, &ACT_AS)?.map(path::decode).transpose()?;
    match (named, &grant.user) {
        (None, user) => Ok(user.clone()),
        (Some(named), None) if grant.may_act_as => Ok(Some(named)),
        (Some(_), _) => Err(Problem::forbidden("this token may not name an acting user")),
    }
}

/// The idempotency key of a request. It is checked before everything else, so that an invalid key
/// is reported even if nothing is written.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = header(headers, &IDEMPOTENCY_KEY)? else { return Ok(None) };
    if !(1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()) {
        let detail = format!("an idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} bytes");
        return Err(Problem::invalid_request(detail));
    }
    Ok(Some(key.to_owned()))
}

/// The only value of a header, as text.
pub(crate) fn header<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::invalid_request(format!("the header {name} came more than once")));
    }
    let text = value.to_str();
    text.map(Some)
        .map_err(|_| Problem::invalid_request(format!("the header {name} has bytes beyond ASCII")))
}
