//! Whether the cell of a lease is one, and belongs to an entry.
//!
//! | the lease | its entry | verdict |
//! | --- | --- | --- |
//! | cannot be read | | unreadable |
//! | belongs to no index, or is not at the key of its entry | | unknown |
//! | has run out | is not there | dangling |
//! | any other | either | sound: a worker may still finish, and a sweep removes what is over |

use super::cell::{LeaseContent, entry, lease_address, place};
use crate::engine::{Address, Cell, Row};
use crate::own::own_address;
use crate::side::finding::{FindingKind, Flaw};
use crate::space::Loaded;

/// The lease, and its entry where it names one.
pub(super) fn witnesses(loaded: &Loaded, row: &Row) -> Vec<Address> {
    let content = LeaseContent::of(&row.cell);
    let entry = content.and_then(|content| entry(&loaded.schema, &row.key, &content));
    let own = own_address(row.key.clone());
    std::iter::once(own).chain(entry).collect()
}

/// What is wrong at a moment with a lease, given it and its entry; `None` when nothing is.
pub(super) fn judge(
    loaded: &Loaded,
    now: u64,
    witnesses: &[Address],
    cells: &[Option<Cell>],
) -> Option<Flaw> {
    let key = &witnesses.first()?.key;
    let cell = cells.first()?.as_ref()?;
    let (kind, reason) = match LeaseContent::of(cell) {
        None => (FindingKind::Unreadable, "the lease cannot be read"),
        Some(content) => match entry(&loaded.schema, key, &content) {
            None => (FindingKind::Unknown, "the lease belongs to no index"),
            Some(_) if !is_at_its_key(key, &content) => {
                (FindingKind::Unknown, "the lease lies at the key of another entry")
            }
            // What was judged by another entry is to be looked at again.
            Some(of) if Some(&of) != witnesses.get(1) => return None,
            Some(_) if content.until <= now && cells.get(1)?.is_none() => {
                (FindingKind::Dangling, "the lease has run out, and its entry is not there")
            }
            Some(_) => return None,
        },
    };
    let (collection, index) = place(key).unzip();
    let (collection, index) = (collection.map(str::to_owned), index.map(str::to_owned));
    Some(Flaw { collection, index, ..Flaw::new(kind, reason) })
}

fn is_at_its_key(key: &[u8], content: &LeaseContent) -> bool {
    place(key).is_some_and(|(collection, index)| {
        lease_address(collection, index, content.entry.as_bytes()).key[..] == *key
    })
}
