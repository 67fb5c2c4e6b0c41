//! What a caller does for its batch before the commit thread sees it.
//!
//! The commit thread is one for all writers, and while it works they wait. So a batch comes to it
//! ready: the bytes that fjall will have, in one allocation, and the cells that its conditions ask
//! about, as they were at a published moment. All that is left to do there is to see whether one
//! of these cells has changed since.

use std::hash::BuildHasher;

use bytes::Bytes;

use super::super::decide::is_looked_up;
use super::super::{Address, Batch, Effect, Entry, Space};
use super::hashed::Key;
use super::layout;
use super::view::{Keep, Moment};

/// One address of a batch.
pub(super) struct Place {
    pub(super) key: Key,
    /// The cell that a `Put` leaves, as it is stored.
    pub(super) put: Option<Bytes>,
    /// The cell as it was stored at the moment of the preparation, if it was looked up.
    pub(super) seen: Option<Option<Bytes>>,
}

/// A batch that is ready for the commit thread.
pub(super) struct Prepared {
    pub(super) batch: Batch,
    pub(super) fence: Option<Place>,
    /// One for each entry of the batch.
    pub(super) entries: Vec<Place>,
    /// The commit that the moment of the preparation comes after.
    pub(super) seen_at: u64,
}

impl Prepared {
    pub(super) fn new(batch: Batch, moment: &Moment<'_>) -> Self {
        let spans = write_all(&batch);
        let place = |span: &Span, look: Option<Keep>| {
            let key = spans.buffer.slice(span.key_start..span.key_end);
            Place {
                key: Key { hash: moment.hasher().hash_one(&key[..]), bytes: key },
                put: (span.put_end > span.key_end)
                    .then(|| spans.buffer.slice(span.key_end..span.put_end)),
                seen: None,
            }
            .looked_up_in(moment, look)
        };
        let fence = spans.fence.as_ref().map(|span| place(span, Some(Keep::InCache)));
        let entries = spans
            .entries
            .iter()
            .zip(&batch.entries)
            .map(|(span, entry)| place(span, look_at(entry)))
            .collect();
        Prepared { fence, entries, seen_at: moment.commit(), batch }
    }

    /// The bytes of all keys and values.
    pub(super) fn weight(&self) -> usize {
        self.batch.weight()
    }
}

impl Place {
    /// What cannot be read now is left to the commit thread, which tells of the failure.
    fn looked_up_in(mut self, moment: &Moment<'_>, look: Option<Keep>) -> Self {
        if let Some(keep) = look {
            self.seen = moment.load_stored(self.key.as_ref(), keep).ok();
        }
        self
    }
}

/// Whether deciding an entry takes a look at its cell, and where what is found is to stay. What is
/// added to, a counter or the count of a group, will be asked for again, as fences are. Other
/// cells were read already by whoever makes a condition of them, or are expected to be absent.
fn look_at(entry: &Entry) -> Option<Keep> {
    match &entry.effect {
        Some(Effect::Add { .. }) => Some(Keep::InCache),
        _ => is_looked_up(entry).then_some(Keep::Nowhere),
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
