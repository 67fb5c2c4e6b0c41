//! Something that looked wrong while other things moved, to be looked at again.

use std::sync::Arc;

use bytes::Bytes;

use super::pair::{Pair, PairCells, Verdict, owner};
use crate::engine::{Address, Area, Cell, ShowKey};
use crate::record::{misfits, read_record};
use crate::schema::{Collection, Index, IndexState};
use crate::side::{Finding, FindingKind, Judging, Kind};
use crate::space::Loaded;
use crate::write::stored_refusal_of;

/// What may be wrong.
#[derive(Clone, Debug)]
pub(super) enum Suspect {
    /// A record that may lack an entry. Other faults of the pair are found from the entry.
    Unmatched(Pair),
    /// An entry that its record may not have.
    Stale(Pair),
    /// An entry that may name no record.
    Nameless { collection: Arc<Collection>, index: Arc<Index>, key: Bytes },
    /// A record that may not be one, or that may not fit an index or its declaration.
    Record { collection: Arc<Collection>, key: Bytes },
    /// A cell beside records, the first of its witnesses, that may be wrong.
    Side { kind: &'static dyn Kind, witnesses: Vec<Address> },
    /// A key that belongs to no template; near this one.
    Stray { area: Area, key: Bytes, template: String },
}

impl Suspect {
    /// The pair that may be mended, if it is about one.
    pub(super) fn pair(&self) -> Option<&Pair> {
        match self {
            Suspect::Unmatched(pair) | Suspect::Stale(pair) => Some(pair),
            Suspect::Nameless { .. }
            | Suspect::Record { .. }
            | Suspect::Side { .. }
            | Suspect::Stray { .. } => None,
        }
    }

    /// Where to look: what [`judge`](Self::judge) wants, in that order.
    pub(super) fn addresses(&self) -> Vec<Address> {
        match self {
            Suspect::Unmatched(pair) | Suspect::Stale(pair) => {
                vec![pair.record_address(), pair.entry_address()]
            }
            Suspect::Nameless { index, key, .. } => {
                vec![Address::new(index.area.clone(), key.clone())]
            }
            Suspect::Record { collection, key } => {
                vec![Address::new(collection.area.clone(), key.clone())]
            }
            Suspect::Side { witnesses, .. } => witnesses.clone(),
            Suspect::Stray { area, key, .. } => vec![Address::new(area.clone(), key.clone())],
        }
    }

    /// What is wrong, given what is at the addresses; `None` when nothing is.
    pub(super) fn judge(&self, judging: &Judging<'_>, cells: &[Option<Cell>]) -> Option<Finding> {
        let at = |place: usize| cells.get(place).cloned().flatten();
        match self {
            Suspect::Unmatched(pair) => {
                match pair.judge(&PairCells { record: at(0), entry: at(1) }) {
                    Verdict::Missing { holder, .. } => Some(missing(pair, holder)),
                    _ => None,
                }
            }
            Suspect::Stale(pair) => {
                stale(pair, pair.judge(&PairCells { record: at(0), entry: at(1) }))
            }
            Suspect::Nameless { collection, index, key } => {
                let cell = at(0)?;
                owner(collection, index, key, &cell).is_none().then(|| Finding {
                    kind: FindingKind::Unreadable,
                    collection: Some(collection.name.clone()),
                    index: Some(index.name.clone()),
                    area: index.area.name().to_owned(),
                    key: ShowKey(key).to_string(),
                    key_bytes: key.clone(),
                    record: None,
                    reason: "the entry names no record".to_owned(),
                })
            }
            Suspect::Record { collection, key } => unfit(judging.loaded, collection, key, &at(0)?),
            Suspect::Side { kind, witnesses } => {
                let flaw = kind.judge(judging, witnesses, cells)?;
                Some(flaw.finding(&witnesses.first()?.key))
            }
            Suspect::Stray { area, key, template } => at(0).map(|_| Finding {
                kind: FindingKind::Unknown,
                collection: None,
                index: None,
                area: area.name().to_owned(),
                key: ShowKey(key).to_string(),
                key_bytes: key.clone(),
                record: None,
                reason: format!("it begins like `{template}` and belongs to no template"),
            }),
        }
    }
}

fn missing(pair: &Pair, holder: Option<Bytes>) -> Finding {
    let record = ShowKey(&pair.record);
    let reason = match holder {
        None => format!("the record {record} lacks this entry"),
        Some(holder) => {
            format!("the record {record} lacks this entry, which {} holds", ShowKey(&holder))
        }
    };
    of_pair(FindingKind::Missing, pair, reason)
}

fn stale(pair: &Pair, verdict: Verdict) -> Option<Finding> {
    let record = ShowKey(&pair.record);
    let (kind, reason) = match verdict {
        Verdict::Sound | Verdict::Missing { .. } => return None,
        Verdict::Dangling => (FindingKind::Dangling, format!("its record {record} is not there")),
        Verdict::Misplaced => {
            (FindingKind::Wrong, format!("its record {record} does not have this entry"))
        }
        Verdict::Altered { .. } => {
            let what = if pair.carries_record() { "value or version" } else { "value" };
            (FindingKind::Wrong, format!("its record {record} gives it another {what}"))
        }
        Verdict::Unreadable => (FindingKind::Unreadable, "the entry names no record".to_owned()),
    };
    Some(of_pair(kind, pair, reason))
}

fn of_pair(kind: FindingKind, pair: &Pair, reason: String) -> Finding {
    Finding {
        kind,
        collection: Some(pair.collection.name.clone()),
        index: Some(pair.index.name.clone()),
        area: pair.index.area.name().to_owned(),
        key: ShowKey(&pair.entry).to_string(),
        key_bytes: pair.entry.clone(),
        record: Some(ShowKey(&pair.record).to_string()),
        reason,
    }
}

/// Why a record is none, does not fit an index that is ready, or does not fit its declaration.
fn unfit(
    loaded: &Loaded,
    collection: &Arc<Collection>,
    key: &Bytes,
    cell: &Cell,
) -> Option<Finding> {
    let finding = |kind, index: Option<String>, reason| Finding {
        kind,
        collection: Some(collection.name.clone()),
        index,
        area: collection.area.name().to_owned(),
        key: ShowKey(key).to_string(),
        key_bytes: key.clone(),
        record: Some(ShowKey(key).to_string()),
        reason,
    };
    let value = match read_record(collection, key, cell) {
        Ok((value, _)) => value,
        Err(reason) => return Some(finding(FindingKind::Unreadable, None, reason)),
    };
    let obstructed = complete_indexes(loaded, collection).find_map(|index| {
        let error = stored_refusal_of(collection, index, &value)?;
        let reason = format!("it does not fit the index: {error}");
        Some(finding(FindingKind::Unreadable, Some(index.name.clone()), reason))
    });
    let misfit = || {
        let all = misfits(collection, &value);
        let reason = || format!("it does not fit its declaration: {}", all.join("; "));
        (!all.is_empty()).then(|| finding(FindingKind::Misfit, None, reason()))
    };
    obstructed.or_else(misfit)
}

/// The indexes that every record must have its entries in.
pub(super) fn complete_indexes<'c>(
    loaded: &Loaded,
    collection: &'c Collection,
) -> impl Iterator<Item = &'c Arc<Index>> {
    collection
        .indexes
        .values()
        .filter(|index| *loaded.state(&collection.name, &index.name) == IndexState::Ready)
}
