//! Rights and keys of operations, before anything happens.

use std::collections::HashMap;

use keyloom::{Collection, SchemaDeclaration};
use serde_json::Value;

use super::{Action, Operation};
use crate::api::template::{fields_of, take_key, value_at};
use crate::api::written_key::key_of;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::problem::Problem;

/// An operation that the caller may ask for, with what it takes to do it.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) number: usize,
    pub(crate) operation: Operation,
    pub(crate) collection: Collection<Value>,
    /// The values of the record's key; none for inserts, which have them in the record.
    pub(crate) key: Vec<Value>,
    /// Whether the caller may read what they write.
    pub(crate) may_read: bool,
    /// The template of the record's key.
    template: String,
}

/// What is known of the collections while operations are prepared.
pub(crate) struct Preparing<'c> {
    caller: &'c Caller,
    schema: SchemaDeclaration,
    collections: HashMap<(String, u8), Collection<Value>>,
}

impl<'c> Preparing<'c> {
    /// Prepares operations of a caller.
    pub(crate) async fn new(caller: &'c Caller) -> Result<Self, Problem> {
        let schema = caller.store.schema().await?.declaration();
        Ok(Preparing { caller, schema, collections: HashMap::new() })
    }

    /// Checks the rights to an operation and finds the record that it is about. Refusals carry
    /// its number.
    pub(crate) async fn prepare(
        &mut self,
        number: usize,
        operation: Operation,
    ) -> Result<Prepared, Problem> {
        let prepared = self.prepared(number, operation).await;
        prepared.map_err(|problem| problem.with("operation", number))
    }

    async fn prepared(
        &mut self,
        number: usize,
        mut operation: Operation,
    ) -> Result<Prepared, Problem> {
        let verb = operation.verb();
        let collection = self.collection(verb, &operation.collection).await?;
        let declared = self.schema.collections.get(&operation.collection);
        let template = declared.map(|declared| declared.key.clone()).unwrap_or_default();
        let key = match operation.key() {
            Some(key) => key_of(&collection, self.caller.user.as_deref(), key).await?,
            None => Vec::new(),
        };
        if let Action::Put { record, .. } = &mut operation.action {
            take_key(record, &template, &key)?;
        }
        let may_read = self.caller.may_read(&operation.collection);
        Ok(Prepared { number, operation, collection, key, may_read, template })
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
    /// The record that the operation is about, as text that is the same for the same record;
    /// `None` for an insert that makes its own key.
    pub(crate) fn subject(&self) -> Option<String> {
        let key: Vec<&Value> = match &self.operation.action {
            Action::Insert { record } => {
                let fields = fields_of(&self.template).into_iter();
                fields.map(|path| value_at(record, path)).collect::<Option<_>>()?
            }
            _ => self.key.iter().collect(),
        };
        let key: Vec<String> = key.into_iter().map(Value::to_string).collect();
        Some(format!("{} {}", self.operation.collection, key.join(" ")))
    }
}
