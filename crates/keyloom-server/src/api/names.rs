//! The names of records in URLs.

use keyloom::{Collection, Error, ErrorKind, Store};
use serde_json::Value;

use crate::app::App;
use crate::caller::Caller;
use crate::path::{PathParts, encode};
use crate::problem::Problem;

/// The name of a record in a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'n> {
    /// The part after `/records/`.
    pub(super) key: &'n str,
    /// The owner of the record, unless it is the acting user.
    pub(super) owner: Option<&'n str>,
}

/// Gives the records of one collection their names. All names of one owner omit the same prefix,
/// which is computed only once for a page.
pub(super) struct Names<'c> {
    app: &'c App,
    path: &'c PathParts,
    caller: &'c Caller,
    collection: &'c Collection<Value>,
    known: Vec<Beginning>,
}

/// The prefix of one owner's keys.
struct Beginning {
    text: String,
    /// If the prefix is a whole key: its name, which is fixed.
    only: Option<String>,
    owner: Option<String>,
}

impl<'c> Names<'c> {
    pub(super) fn new(
        app: &'c App,
        path: &'c PathParts,
        caller: &'c Caller,
        collection: &'c Collection<Value>,
    ) -> Self {
        Names { app, path, caller, collection, known: Vec::new() }
    }

    /// The name of the record with this key.
    pub(super) async fn of<'n>(&'n mut self, stored_at: &'n str) -> Result<Name<'n>, Problem> {
        if self.find(stored_at).is_none() {
            self.learn(stored_at).await?;
        }
        self.find(stored_at).ok_or_else(|| Problem::corrupt("a record has no name"))
    }

    fn find<'n>(&'n self, stored_at: &'n str) -> Option<Name<'n>> {
        self.known.iter().find_map(|beginning| beginning.name(stored_at))
    }

    async fn learn(&mut self, stored_at: &str) -> Result<(), Problem> {
        let (key, owner) = match self.collection.name_of(stored_at).await {
            Err(error) if error.kind() == ErrorKind::InvalidKey && self.caller.user.is_some() => {
                let owner = self.owner(stored_at).await?;
                let theirs = self.collection.acting_as(&owner)?;
                (theirs.name_of(stored_at).await?, Some(owner))
            }
            key => (key?, None),
        };
        self.known.push(Beginning::new(stored_at, &key, owner));
        Ok(())
    }

    /// The owner of the record with this key: the first field of the key.
    async fn owner(&self, stored_at: &str) -> Result<String, Problem> {
        // An acting user has no names for others' records, but the program itself has.
        let all = program(self.app, self.path)?.documents(self.collection.name()).await?;
        let values = all.key_named(&all.name_of(stored_at).await?).await?;
        let owner = values.first().and_then(Value::as_str);
        owner.map(str::to_owned).ok_or_else(|| Problem::corrupt("a record has no owner"))
    }

    /// The path of a record, for `Location` and `Content-Location`.
    pub(super) async fn path(&mut self, stored_at: &str) -> Result<String, Problem> {
        let (base, collection) = (&*self.caller.base, encode(self.collection.name()));
        let Name { key, owner } = self.of(stored_at).await?;
        let (key, owner) = (encode(key), owner.map(encode));
        let owned = owner.as_ref().map_or(["", ""], |owner| ["/owners/", owner]);
        let parts = [base, "/v1/collections/", &collection, owned[0], owned[1], "/records/", &key];
        Ok(parts.concat())
    }

    /// Adds details to an error about a record of this collection. The record that holds a unique
    /// value is named as in URLs, for callers who may read it.
    pub(super) async fn problem(&mut self, error: Error) -> Problem {
        let Some(holder) = error.holder().map(str::to_owned) else { return error.into() };
        let problem = Problem::from(error);
        let Ok(Name { key, owner }) = self.of(&holder).await else { return problem };
        let problem = problem.with("holder", key);
        match owner {
            Some(owner) => problem.with("holder_owner", owner),
            None => problem,
        }
    }
}

impl Beginning {
    fn new(stored_at: &str, name: &str, owner: Option<String>) -> Self {
        match stored_at.strip_suffix(name) {
            // Usually the fixed name of a single record is not a suffix of its key. If it happens
            // to be, treating it as one gives the right name as well.
            Some(text) if name != "-" => Beginning { text: text.to_owned(), only: None, owner },
            _ => Beginning { text: stored_at.to_owned(), only: Some(name.to_owned()), owner },
        }
    }

    fn name<'n>(&'n self, stored_at: &'n str) -> Option<Name<'n>> {
        let rest = stored_at.strip_prefix(&*self.text)?;
        let key = match &self.only {
            Some(only) => rest.is_empty().then_some(&**only)?,
            None => rest,
        };
        Some(Name { key, owner: self.owner.as_deref() })
    }
}

/// The space of a path, acting for no user.
pub(super) fn program(app: &App, path: &PathParts) -> Result<Store, Problem> {
    Ok(match path.get("space") {
        "" => app.store().clone(),
        space => app.store().space(space)?,
    })
}
