//! New records that share a batch although nothing binds them: what one of them cannot, the others
//! still can.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::operations::{commit, complete, creation};
use crate::error::{Error, ErrorKind, Fate, Result};
use crate::schema::Collection;
use crate::side::{Change, Refused, Work};
use crate::space::Session;

/// What became of records that were created together.
#[derive(Debug, Default)]
pub(crate) struct BulkInsert {
    /// How many were created.
    pub(crate) created: usize,
    /// The places of those that were not, from the first on. Each of them may be at fault, and
    /// tried alone it tells.
    pub(crate) left: Vec<usize>,
    /// The bytes of all that were ready to be created, as JSON text.
    pub(crate) bytes: usize,
    /// Whether a batch of them was too large.
    pub(crate) was_too_large: bool,
}

/// Creates records without reading anything, in one batch if it can be done. A batch that is
/// refused is divided, until those that it is refused for stand alone.
///
/// An error is none of a record's, and tells nothing of those before it.
pub(crate) async fn bulk_insert<'v>(
    session: &Session,
    name: &str,
    records: impl IntoIterator<Item = Result<Cow<'v, Value>>>,
    done: &mut BulkInsert,
) -> Result<()> {
    let loaded = session.live.loaded().await?;
    let collection = loaded.schema.collection(name)?;
    let Creations { changes, places } = Creations::of(session, collection, records, &mut done.left);
    let texts = changes.iter().filter_map(|change| change.after.as_ref());
    done.bytes = texts.map(|after| after.text.len()).sum();
    let all = 0..changes.len();
    let mut waiting: Vec<Range<usize>> = if all.is_empty() { Vec::new() } else { vec![all] };
    while let Some(batch) = waiting.pop() {
        let refused = match commit(session, &loaded, Work::of(&changes[batch.clone()])).await {
            // What the others are is decided by the new schema too, record by record.
            Ok(Some(Refused::StaleSchema)) => {
                done.left.extend_from_slice(&places[batch]);
                continue;
            }
            Ok(refused) => refused.is_some(),
            Err(error) if is_of_record(&error) => {
                done.was_too_large |= error.kind() == ErrorKind::LimitExceeded;
                true
            }
            Err(error) => return Err(error),
        };
        match (refused, batch.len()) {
            (false, count) => done.created += count,
            (true, 1) => done.left.push(places[batch.start]),
            (true, count) => {
                let middle = batch.start + count / 2;
                waiting.extend([middle..batch.end, batch.start..middle]);
            }
        }
    }
    done.left.sort_unstable();
    Ok(())
}

/// Whether an error says something of the record that was to be written, and not of the store,
/// which would answer the next one alike.
pub(crate) fn is_of_record(error: &Error) -> bool {
    let is_of_record = matches!(
        error.kind(),
        ErrorKind::InvalidKey
            | ErrorKind::InvalidRecord
            | ErrorKind::Forbidden
            | ErrorKind::AlreadyExists
            | ErrorKind::UniqueConflict
            | ErrorKind::OutOfBounds
            | ErrorKind::LimitExceeded
    );
    is_of_record && error.fate() == Fate::DidNotHappen
}

/// Records that are checked and in bytes, with their places among all that were given.
struct Creations<'v> {
    changes: Vec<Change<'v>>,
    places: Vec<usize>,
}

impl<'v> Creations<'v> {
    /// Those that are not fit to be created are left, and so are those whose key another one has.
    fn of(
        session: &Session,
        collection: &Arc<Collection>,
        records: impl IntoIterator<Item = Result<Cow<'v, Value>>>,
        left: &mut Vec<usize>,
    ) -> Self {
        let mut creations = Creations { changes: Vec::new(), places: Vec::new() };
        let mut keys = HashSet::new();
        for (place, record) in records.into_iter().enumerate() {
            let change = record.and_then(|mut value| {
                complete(session, collection, &mut value)?;
                Ok(creation(collection, value)?.0)
            });
            match change {
                Ok(change) if keys.insert(change.key.clone()) => {
                    creations.changes.push(change);
                    creations.places.push(place);
                }
                _ => left.push(place),
            }
        }
        creations
    }
}
