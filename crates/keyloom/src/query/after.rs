//! Starts an answer after a key, without reading what comes before it.

use serde_json::Value;

use super::plan::Plan;
use crate::engine::{Direction, successor};
use crate::error::{Error, ErrorKind, Result};

/// Removes everything up to a key from the ranges of a plan. The key need not have a record.
pub(super) fn begin_after(plan: &mut Plan, values: &[Value]) -> Result<()> {
    let collection = plan.collection.clone();
    let refused = |error: Error| error.with("collection", &collection.name);
    let [branch] = &mut plan.branches[..] else { return Err(refused(of_index())) };
    if branch.index.is_some() {
        return Err(refused(of_index()));
    }
    let key = collection.key.encode(&values.iter().collect::<Vec<_>>());
    let key = key.map_err(|refusal| refused(refusal.into_query_error()))?;
    let range = &mut branch.range;
    match plan.direction {
        Direction::Forward => range.start = successor(&key).max(range.start.clone()),
        Direction::Backward => {
            range.end = Some(range.end.take().map_or(key.clone(), |end| end.min(key)));
        }
    }
    Ok(())
}

fn of_index() -> Error {
    let message = "only an answer in the order of the records' keys can begin after a key";
    Error::new(ErrorKind::InvalidQuery, message)
}
