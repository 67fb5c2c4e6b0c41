//! What is declared and does not serve.

use std::fmt;

use crate::schema::IndexState;
use crate::space::Loaded;

/// An index or an aggregate that is declared and does not answer queries. Verify does not look at
/// what a disabled or failed one holds, and cannot tell what a building one lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotReady {
    /// The collection.
    pub collection: String,
    /// The index or the aggregate.
    pub index: String,
    /// What it is instead of ready.
    pub state: IndexState,
}

impl NotReady {
    /// Whether nobody meant it to be so: a build failed, or was not run to its end. A disabled
    /// index was switched off on purpose.
    pub fn is_fault(&self) -> bool {
        self.state != IndexState::Disabled
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} is {}", self.collection, self.index, self.state)?;
        match &self.state {
            IndexState::Failed { reason } => write!(f, ": {reason}"),
            IndexState::Building | IndexState::Ready | IndexState::Disabled => Ok(()),
        }
    }
}

/// All that the schema declares and that does not serve, by collection and name.
pub(super) fn not_ready(loaded: &Loaded) -> Vec<NotReady> {
    let collections = loaded.schema.collections.values();
    let all = collections.flat_map(|collection| {
        collection.kept_names().map(|name| NotReady {
            collection: collection.name.clone(),
            index: name.to_owned(),
            state: loaded.state(&collection.name, name).clone(),
        })
    });
    all.filter(|found| found.state != IndexState::Ready).collect()
}
