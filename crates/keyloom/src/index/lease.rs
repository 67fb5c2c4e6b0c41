//! Whether the cell of a lease is one, and belongs to an entry.
//!
//! | the lease | its entry | verdict |
//! | --- | --- | --- |
//! | cannot be read | | unreadable |
//! | belongs to no index, or is not at the key of its entry | | unknown |
//! | has run out | is not there | dangling |
//! | any other | either | sound: a worker may still finish, and a sweep removes what is over |

use bytes::Bytes;

use super::finding::{Finding, FindingKind};
use crate::engine::{Address, Area, Cell, Row, ShowKey};
use crate::lease::{self, Content};
use crate::own::own_address;
use crate::space::Loaded;

/// The lease, and its entry where it names one.
pub(super) fn witnesses(loaded: &Loaded, row: &Row) -> Vec<Address> {
    let content = Content::of(&row.cell);
    let entry = content.and_then(|content| lease::entry(&loaded.schema, &row.key, &content));
    let own = own_address(row.key.clone());
    std::iter::once(own).chain(entry).collect()
}

/// What is wrong at a moment with a lease, given it and its entry; `None` when nothing is.
pub(super) fn judge(
    loaded: &Loaded,
    now: u64,
    witnesses: &[Address],
    cells: &[Option<Cell>],
) -> Option<Finding> {
    let key = &witnesses.first()?.key;
    let cell = cells.first()?.as_ref()?;
    let (kind, reason) = match Content::of(cell) {
        None => (FindingKind::Unreadable, "the lease cannot be read"),
        Some(content) => match lease::entry(&loaded.schema, key, &content) {
            None => (FindingKind::Unknown, "the lease belongs to no index"),
            Some(_) if !is_at_its_key(key, &content) => {
                (FindingKind::Unknown, "the lease lies at the key of another entry")
            }
            // What was judged by another entry is to be looked at again.
            Some(entry) if Some(&entry) != witnesses.get(1) => return None,
            Some(_) if content.until <= now && cells.get(1)?.is_none() => {
                (FindingKind::Dangling, "the lease has run out, and its entry is not there")
            }
            Some(_) => return None,
        },
    };
    let (collection, index) = lease::place(key).unzip();
    Some(Finding {
        kind,
        collection: collection.map(str::to_owned),
        index: index.map(str::to_owned),
        area: Area::own().name().to_owned(),
        key: ShowKey(key).to_string(),
        key_bytes: Bytes::copy_from_slice(key),
        record: None,
        reason: reason.to_owned(),
    })
}

fn is_at_its_key(key: &[u8], content: &Content) -> bool {
    lease::place(key).is_some_and(|(collection, index)| {
        lease::address(collection, index, content.entry.as_bytes()).key[..] == *key
    })
}
