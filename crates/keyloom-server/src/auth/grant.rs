//! The rights of one caller.

/// The rights of one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The name of the caller's token, for the log. All users with JWTs share the name `user`.
    pub name: String,
    /// The kind of the caller.
    pub role: Role,
    /// The collections that the caller may use; `*` means all of them.
    pub collections: Vec<String>,
    /// What the caller may do with them.
    pub verbs: Vec<Verb>,
    /// The spaces that the caller may use; `*` means all of them.
    pub spaces: Vec<String>,
    /// Whether the caller may name the acting user.
    pub may_act_as: bool,
    /// The acting user whose own token the caller has.
    pub user: Option<String>,
    /// When the grant expires, in seconds since 1970.
    pub until: Option<u64>,
}

/// The kinds of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// May do everything.
    Admin,
    /// A program, with only the rights that it was given.
    Service,
    /// A person, as the acting user.
    User,
}

/// The kinds of operations on a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read, query and count.
    Read,
    /// Insert, replace, change and increment.
    Write,
    /// Delete.
    Delete,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Verb; 3] = [Verb::Read, Verb::Write, Verb::Delete];

    /// The verb with this name in an access file.
    pub(crate) fn named(name: &str) -> Option<Verb> {
        match name {
            "read" => Some(Verb::Read),
            "write" => Some(Verb::Write),
            "delete" => Some(Verb::Delete),
            _ => None,
        }
    }
}

impl Grant {
    /// A grant for everything.
    pub fn admin() -> Self {
        Grant {
            name: "anyone".to_owned(),
            role: Role::Admin,
            collections: vec!["*".to_owned()],
            verbs: Verb::ALL.to_vec(),
            spaces: vec!["*".to_owned()],
            may_act_as: true,
            user: None,
            until: None,
        }
    }

    /// Whether the caller may do this with a collection.
    pub(crate) fn allows(&self, verb: Verb, collection: &str) -> bool {
        self.sees(collection) && self.verbs.contains(&verb)
    }

    /// Whether the caller may know that a collection exists. For `*`: of every collection,
    /// including future ones.
    pub(crate) fn sees(&self, collection: &str) -> bool {
        has(&self.collections, collection)
    }

    /// Whether the caller acts for users. If so, it must name the user wherever records belong to
    /// users: a service that forgets the name must not reach the records of all users.
    pub(crate) fn works_for_users(&self) -> bool {
        self.role == Role::Service && self.may_act_as
    }

    /// Whether the caller may enter a space.
    pub(crate) fn enters(&self, space: &str) -> bool {
        has(&self.spaces, space)
    }
}

fn has(names: &[String], wanted: &str) -> bool {
    names.iter().any(|name| name == "*" || name == wanted)
}
