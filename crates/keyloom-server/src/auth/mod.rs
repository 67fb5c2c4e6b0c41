//! Who may do what.

use axum::http::HeaderMap;

use crate::problem::Problem;

/// Where rights come from.
#[derive(Clone, Debug)]
pub struct Authority {
    /// Whether everyone may do everything.
    pub(crate) is_open: bool,
}

/// What a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What kind of caller it is.
    pub role: Role,
    /// The collections that a service reaches; `*` is all of them.
    pub collections: Vec<String>,
    /// What a service may do with them.
    pub verbs: Vec<Verb>,
    /// Whether the caller may name the acting user.
    pub may_act_as: bool,
    /// The acting user that the caller is, by their own token.
    pub user: Option<String>,
}

/// The kinds of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// May do everything.
    Admin,
    /// A program, with what it was given.
    Service,
    /// A person, as the acting user.
    User,
}

/// What can be done with a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read, query and count.
    Read,
    /// Insert, replace, change and increment.
    Write,
    /// Delete.
    Delete,
}

impl Authority {
    /// Access control is off: everyone may do everything.
    pub fn open() -> Self {
        Authority { is_open: true }
    }

    /// What the caller who sent these headers may do.
    pub(crate) fn grant(&self, _headers: &HeaderMap) -> Result<Grant, Problem> {
        Ok(Grant::admin())
    }

    /// Whether access control is off.
    pub fn is_open(&self) -> bool {
        self.is_open
    }
}

impl Grant {
    /// Everything.
    pub fn admin() -> Self {
        Grant {
            role: Role::Admin,
            collections: vec!["*".to_owned()],
            verbs: vec![Verb::Read, Verb::Write, Verb::Delete],
            may_act_as: true,
            user: None,
        }
    }

    /// Whether the caller may do this with a collection.
    pub(crate) fn allows(&self, verb: Verb, collection: &str) -> bool {
        self.sees(collection) && self.verbs.contains(&verb)
    }

    /// Whether the caller may know of a collection.
    pub(crate) fn sees(&self, collection: &str) -> bool {
        self.collections.iter().any(|name| name == "*" || name == collection)
    }
}
