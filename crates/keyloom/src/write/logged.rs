//! What the log of a space is told of a commit.

use super::assemble::{Before, Change, Work};
use crate::engine::{Address, Committed, Integers};
use crate::log::{Note, Told, trim_now_and_then};
use crate::schema::Loaded;
use crate::session::Session;

/// Who makes a commit, and which records it changes. Its cells tell the rest.
pub(super) fn note(session: &Session, work: &Work<'_>) -> Note {
    Note { author: session.author(), changes: work.changes.iter().filter_map(told).collect() }
}

fn told(change: &Change) -> Option<Told> {
    let before = match &change.before {
        Before::Read { version, .. } => Some(*version),
        // It was there until now, for all who read the log.
        Before::Expired(current) => Some(current.version),
        // A record that came and went within one transaction was never there.
        Before::Absent | Before::SeenAbsent if change.after.is_none() => return None,
        Before::Absent | Before::SeenAbsent => None,
    };
    Some(Told {
        collection: change.collection.name.clone(),
        address: Address::new(change.collection.area.clone(), change.key.clone()),
        before,
        // What a commit adds to the counters of the record, by their names. The cells of the
        // counters are in the log by themselves; this is for those who watch.
        increments: Integers::new(),
    })
}

/// After a commit that was logged, removes some of what the log need not keep any more.
pub(super) async fn keep_log_short(session: &Session, loaded: &Loaded, committed: &Committed) {
    if let (Some(position), Some(keep)) = (committed.position, loaded.schema.log) {
        trim_now_and_then(&*session.engine, &session.space, keep, session.now(), position).await;
    }
}
