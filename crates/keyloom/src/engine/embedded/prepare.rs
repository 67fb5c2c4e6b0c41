//! What a caller does for its batch before the commit thread sees it.
//!
//! The commit thread is one for all writers, and while it works they wait. So a batch comes to it
//! ready: the bytes that fjall will have, in one allocation, and the cells that its conditions ask
//! about, as they were at a published moment. All that is left to do there is to see whether one
//! of these cells has changed since.

use std::hash::BuildHasher;

use bytes::Bytes;

use super::super::decide::is_looked_up;
use super::super::{Address, Batch, Condition, Effect, Entry, Space};
use super::hashed::Key;
use super::layout;
use super::view::{Keep, Moment};

/// One address of a batch.
pub(super) struct PreparedEntry {
    pub(super) key: Key,
    /// The cell that a `Put` leaves, as it is stored.
    pub(super) put: Option<Bytes>,
    /// The cell as it was stored at the moment of the preparation, if it was looked up.
    pub(super) seen: Option<Option<Bytes>>,
}

/// A batch that is ready for the commit thread.
pub(super) struct Prepared {
    pub(super) batch: Batch,
    pub(super) fence: Option<PreparedEntry>,
    /// One for each entry of the batch.
    pub(super) entries: Vec<PreparedEntry>,
    /// The order in which the entries are best read and written; empty if it is their own.
    order: Vec<usize>,
    /// The commit that the moment of the preparation comes after.
    pub(super) seen_at: u64,
}

impl Prepared {
    pub(super) fn new(batch: Batch, moment: &Moment<'_>) -> Self {
        let spans = write_all(&batch);
        let place = |span: &Span| {
            let key = spans.buffer.slice(span.key_start..span.key_end);
            PreparedEntry {
                key: Key { hash: moment.hasher().hash_one(&key[..]), bytes: key },
                put: (span.put_end > span.key_end)
                    .then(|| spans.buffer.slice(span.key_end..span.put_end)),
                seen: None,
            }
        };
        let mut fence = spans.fence.as_ref().map(place);
        if let Some(fence) = &mut fence {
            fence.look_up_in(moment, Look::InCaches(Keep::InCache));
        }
        let mut entries: Vec<PreparedEntry> = spans.entries.iter().map(place).collect();
        let order = order(&batch, &entries);
        for entry in in_order(&order, entries.len()) {
            if let Some(look) = look_at(&batch.entries[entry]) {
                entries[entry].look_up_in(moment, look);
            }
        }
        Prepared { fence, entries, order, seen_at: moment.commit(), batch }
    }

    /// The entries with their places, in the order in which they are best written.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&Entry, &PreparedEntry)> {
        let of = |entry: usize| (&self.batch.entries[entry], &self.entries[entry]);
        in_order(&self.order, self.entries.len()).map(of)
    }

    /// The bytes of all keys and values.
    pub(super) fn weight(&self) -> usize {
        self.batch.weight()
    }
}

impl PreparedEntry {
    /// What cannot be read now is left to the commit thread, which tells of the failure.
    fn look_up_in(&mut self, moment: &Moment<'_>, look: Look) {
        let found = match look {
            Look::InCaches(keep) => moment.load_stored(self.key.as_ref(), keep),
            Look::PastCaches => moment.load_if_unchanged(self.key.as_ref()),
        };
        self.seen = found.ok();
    }
}

/// From so many entries on, a batch is read and written in the order of its keys. Neighbours lie in
/// the same places of what is in memory, which is worth more than the sorting costs.
const MANY: usize = 256;

/// The order of the keys, where there are many. Sums come in the order of the entries, so that a
/// batch that adds keeps it.
fn order(batch: &Batch, places: &[PreparedEntry]) -> Vec<usize> {
    let adds = |entry: &Entry| matches!(entry.effect, Some(Effect::Add { .. }));
    if places.len() < MANY || batch.entries.iter().any(adds) {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_unstable_by(|&a, &b| places[a].key.bytes.cmp(&places[b].key.bytes));
    order
}

fn in_order(order: &[usize], count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(|place| order.get(place).copied().unwrap_or(place))
}

/// Where to look for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// In the caches first, and where what is found stays.
    InCaches(Keep),
    /// No cache can have it.
    PastCaches,
}

/// Whether deciding an entry takes a look at its cell, and where. What is added to, a counter or the
/// count of a group, will be asked for again, as fences are. Cells that are to be absent mostly are,
/// and caches know nothing of what is absent. Others were read already by whoever makes a condition
/// of them.
fn look_at(entry: &Entry) -> Option<Look> {
    match entry {
        Entry { effect: Some(Effect::Add { .. }), .. } => Some(Look::InCaches(Keep::InCache)),
        Entry { condition: Some(Condition::Absent), .. } => Some(Look::PastCaches),
        entry => is_looked_up(entry).then_some(Look::InCaches(Keep::Nowhere)),
    }
}

/// Everything that a batch stores, in one piece.
struct Spans {
    buffer: Bytes,
    fence: Option<Span>,
    entries: Vec<Span>,
}

/// Where one address has its key, and after it what a `Put` leaves; a stored cell is never empty.
struct Span {
    key_start: usize,
    key_end: usize,
    put_end: usize,
}

fn write_all(batch: &Batch) -> Spans {
    let Batch { space, fence, entries, .. } = batch;
    let room = |address: &Address, effect: Option<&Effect>| {
        layout::stored_key_bytes(space, address)
            + match effect {
                Some(Effect::Put { bytes, .. }) => layout::stored_bytes(bytes),
                _ => 0,
            }
    };
    let fence_room = fence.as_ref().map_or(0, |fence| room(&fence.address, None));
    let entries_room: usize =
        entries.iter().map(|entry| room(&entry.address, entry.effect.as_ref())).sum();
    let mut buffer = Vec::with_capacity(fence_room + entries_room);
    let fence = fence.as_ref().map(|fence| write(space, &fence.address, None, &mut buffer));
    let entries = entries
        .iter()
        .map(|entry| write(space, &entry.address, entry.effect.as_ref(), &mut buffer))
        .collect();
    Spans { buffer: buffer.into(), fence, entries }
}

fn write(space: &Space, address: &Address, effect: Option<&Effect>, out: &mut Vec<u8>) -> Span {
    let key_start = out.len();
    layout::write_stored_key(space, &address.area, &address.key, out);
    let key_end = out.len();
    if let Some(Effect::Put { stamp, bytes }) = effect {
        layout::write_bytes(*stamp, bytes, out);
    }
    Span { key_start, key_end, put_end: out.len() }
}
