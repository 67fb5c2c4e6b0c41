//! Checks the rights and finds the keys of operations before anything happens.

use std::collections::HashMap;
use std::sync::Arc;

use keyloom::{Collection, CollectionDeclaration};
use serde_json::Value;

use super::{Action, Answered, NewRecord, Operation, Told};
use crate::api::template::{fields_of, take_key, value_at};
use crate::api::written_key::key_of;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::problem::Problem;

/// An operation that the caller is allowed to do, with everything that it needs.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// Its number among several.
    pub(crate) number: Option<usize>,
    pub(crate) operation: Operation,
    pub(crate) collection: Collection<Value>,
    /// The values of the record's key; none for inserts, which have them in the record.
    pub(crate) key: Vec<Value>,
    /// Whether the caller may read the record that they write.
    pub(crate) may_read: bool,
    declaration: Arc<CollectionDeclaration>,
}

/// The collections that were looked up while operations are prepared.
pub(crate) struct Preparing<'c> {
    caller: &'c Caller,
    collections: HashMap<(String, u8), Collection<Value>>,
}

impl<'c> Preparing<'c> {
    /// Prepares the operations of a caller.
    pub(crate) fn new(caller: &'c Caller) -> Self {
        Preparing { caller, collections: HashMap::new() }
    }

    /// Checks the rights to an operation and finds its record. Refusals have the operation's
    /// number.
    pub(crate) async fn prepare(
        &mut self,
        number: usize,
        operation: Operation,
    ) -> Result<Prepared, Problem> {
        let prepared = self.prepared(number, operation).await;
        prepared.map_err(|problem| problem.with("operation", number))
    }

    async fn prepared(&mut self, number: usize, operation: Operation) -> Result<Prepared, Problem> {
        let collection = self.collection(operation.verb(), &operation.collection).await?;
        let prepared = Prepared::new(self.caller, collection, operation).await?;
        Ok(Prepared { number: Some(number), ..prepared })
    }

    async fn collection(&mut self, verb: Verb, name: &str) -> Result<Collection<Value>, Problem> {
        let known = (name.to_owned(), verb as u8);
        if let Some(collection) = self.collections.get(&known) {
            return Ok(collection.clone());
        }
        let collection = self.caller.collection(verb, name).await?;
        self.collections.insert(known, collection.clone());
        Ok(collection)
    }
}

impl Prepared {
    /// An operation on a collection that the caller may use for it. Finds the operation's record.
    pub(crate) async fn new(
        caller: &Caller,
        collection: Collection<Value>,
        mut operation: Operation,
    ) -> Result<Self, Problem> {
        let declaration = collection.declaration().await?;
        let key = match operation.key() {
            Some(key) => key_of(&collection, caller.user.as_deref(), key).await?,
            None => Vec::new(),
        };
        if let Action::Put { record, .. } = &mut operation.action {
            take_key(record, &declaration.key, &key)?;
        }
        let may_read = caller.may_read(&operation.collection);
        Ok(Prepared { number: None, operation, collection, key, may_read, declaration })
    }

    /// Adds the number of the operation, if it has one, to a refusal.
    pub(crate) fn numbered(&self, problem: Problem) -> Problem {
        match self.number {
            Some(number) => problem.with("operation", number),
            None => problem,
        }
    }

    /// Whether the operation names the record with this key in the store.
    pub(crate) async fn is_about(&self, stored_at: &str) -> bool {
        let Ok(name) = self.collection.name_of(stored_at).await else { return false };
        let key = self.collection.key_named(&name).await;
        self.operation.key().is_some() && key.is_ok_and(|key| key == self.key)
    }

    /// The answer as one of several.
    pub(crate) async fn body(&self, answered: &Answered) -> Result<Told, Problem> {
        let name = match (self.operation.key(), &answered.stored_at) {
            (Some(key), _) => key,
            (None, Some(stored_at)) => &*self.collection.name_of(stored_at).await?,
            (None, None) => "",
        };
        Ok(answered.body(self.operation.name(), name))
    }

    /// Identifies the operation's record: the same text for the same record; `None` for an insert
    /// that generates its key.
    pub(crate) fn subject(&self) -> Option<String> {
        let key: Vec<&Value> = match &self.operation.action {
            Action::Insert { record: NewRecord::Text(_) } => return None,
            Action::Insert { record: NewRecord::Read(record) } => {
                let fields = fields_of(&self.declaration.key).into_iter();
                fields.map(|path| value_at(record, path)).collect::<Option<_>>()?
            }
            _ => self.key.iter().collect(),
        };
        let key: Vec<String> = key.into_iter().map(Value::to_string).collect();
        Some(format!("{} {}", self.operation.collection, key.join(" ")))
    }
}
