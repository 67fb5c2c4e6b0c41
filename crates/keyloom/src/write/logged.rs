//! What the log of a space is told of a commit.

use crate::engine::{Address, Committed};
use crate::log::{Note, Told, trim_now_and_then};
use crate::side::{Addend, Before, Change, Work};
use crate::space::Loaded;
use crate::space::Session;

/// Who makes a commit, and which records it changes. Its cells tell the rest.
pub(super) fn note(session: &Session, work: &Work<'_>) -> Note {
    let of_records = work.changes.iter().filter_map(|change| told(work, change));
    let is_alone = |addend: &&Addend| {
        !work.changes.iter().any(|change| address(change) == addend.record_address())
    };
    let of_counters = work.counting.addends.iter().filter(is_alone).map(|addend| Told {
        collection: addend.collection.name.clone(),
        address: addend.record_address(),
        // Nobody has looked.
        before: None,
        increments: addend.deltas.clone(),
    });
    Note { author: session.author(), changes: of_records.chain(of_counters).collect() }
}

fn address(change: &Change<'_>) -> Address {
    Address::new(change.collection.area.clone(), change.key.clone())
}

fn told(work: &Work<'_>, change: &Change<'_>) -> Option<Told> {
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
        address: address(change),
        before,
        // The cells of the counters are in the log by themselves; this is for those who watch.
        increments: work
            .counting
            .addends
            .iter()
            .find(|addend| addend.record_address() == address(change))
            .map(|addend| addend.deltas.clone())
            .unwrap_or_default(),
    })
}

/// After a commit that was logged, removes some of what the log need not keep any more.
pub(super) async fn keep_log_short(session: &Session, loaded: &Loaded, committed: &Committed) {
    if let (Some(position), Some(keep)) = (committed.position, loaded.schema.log) {
        trim_now_and_then(
            &*session.live.engine,
            &session.live.space,
            keep,
            session.now(),
            position,
        )
        .await;
    }
}
