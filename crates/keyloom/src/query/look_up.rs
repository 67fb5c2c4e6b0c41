//! Looks up a record by a unique value: follows the one entry of that value.

use std::sync::Arc;

use bytes::Bytes;

use super::page::ProblemKind;
use super::plan::{Branch, Plan};
use super::reader::{Reader, Resolved};
use super::walk::Walk;
use crate::engine::{Direction, Range, ShowKey, successor};
use crate::error::{Error, ErrorKind, Result};
use crate::record::Document;
use crate::schema::{Collection, Index};
use crate::side::reveal;
use crate::space::{Loaded, Session};

/// The record of the entry with this key; `None` also if the caller may not read the record.
pub(crate) async fn look_up(
    session: &Session,
    loaded: Arc<Loaded>,
    collection: Arc<Collection>,
    index: Arc<Index>,
    entry: Bytes,
) -> Result<Option<Document>> {
    let (start, end) = (entry.clone(), Some(successor(&entry)));
    let branch = Branch {
        equal: index.key.segments().count(),
        range: Range { area: index.area.clone(), start, end },
        index: Some(index),
        prefix: entry,
        presumed: Vec::new(),
        filters: Vec::new(),
    };
    let plan = Plan { loaded, collection, branches: vec![branch], direction: Direction::Forward };
    let mut walk = Walk::to_entries(session, &plan);
    let Some(found) = walk.next(1).await? else { return Ok(None) };
    // A unique index may lead to records of others, so its range does not show who owns a record.
    let target = found.followed.as_ref().and_then(|followed| followed.target.as_ref());
    if target.is_some_and(|key| !session.may_read(&plan.collection, key)) {
        return Ok(None);
    }
    let key = found.entry.key.clone();
    let (kind, reason) = match Reader::new(session, &plan).resolve(found).await? {
        Resolved::Record(mut document) => {
            reveal(session, &plan.collection, std::iter::once(&mut document)).await?;
            return Ok(Some(document));
        }
        Resolved::Gone => return Ok(None),
        Resolved::Problem(problem) => (problem.kind, problem.reason),
    };
    let message = match kind {
        ProblemKind::Unreadable => "a unique entry does not lead to a record; run verify",
        ProblemKind::Dangling | ProblemKind::Wrong => {
            "a unique entry leads to a record that does not have it; run verify"
        }
    };
    let index = plan.branches.iter().find_map(|branch| branch.index.as_ref());
    Err(Error::new(ErrorKind::Corrupt, message)
        .with("collection", &plan.collection.name)
        .with("index", index.map_or("", |index| &index.name))
        .with("key", ShowKey(&key))
        .with("reason", reason))
}
