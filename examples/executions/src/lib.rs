//! An index of workflow executions: one idempotent upsert per event, and lists by agent or
//! status between two instants.

mod event;
mod server;

pub use event::{NotAnEvent, execution_of};
pub use server::Server;

use keyloom::{Collection, Order, Page, Query, Result, Schema, Store, Stored, Written};
use serde_json::Value;

/// The schema. Keyloom keeps the two indexes; this program only says what it wants.
pub const SCHEMA: &str = include_str!("../keyloom.toml");

/// The executions of a store.
pub struct Executions {
    executions: Collection<Value>,
}

/// A list of executions: those of an agent, or those in a status.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// Of this agent.
    Agent(&'a str),
    /// In this status.
    Status(&'a str),
}

impl Executions {
    /// The executions in a store, which is given the schema.
    pub async fn open(store: &Store) -> Result<Self> {
        store.apply(&Schema::from_toml(SCHEMA)?).await?;
        Ok(Executions { executions: store.documents("execution").await? })
    }

    /// Takes in an event. The same event twice, and a late one, change nothing.
    pub async fn observe(&self, execution: &Value) -> Result<Written<Value>> {
        self.executions.upsert(execution).await
    }

    /// One execution by its ARN alone.
    pub async fn get(&self, arn: &str) -> Result<Option<Stored<Value>>> {
        self.executions.get(arn).await
    }

    /// Executions that started from `from` on and before `until`, a page at a time.
    pub async fn list(
        &self,
        of: Of<'_>,
        (from, until): (&str, &str),
        order: Order,
        cursor: Option<&str>,
    ) -> Result<Page<Stored<Value>>> {
        let query = match of {
            Of::Agent(name) => Query::new().equal("agentName", name),
            Of::Status(status) => Query::new().equal("status", status),
        };
        let query = query.range("startDate", from..until).order("startDate", order).take(25);
        self.executions.page(&cursor.into_iter().fold(query, Query::from_cursor)).await
    }
}
