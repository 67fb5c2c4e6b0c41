//! What the engine knows of itself: what the commit thread did since the store was opened, what
//! the caches hold, and what lies on the disk.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::Figure;
use super::view::View;

/// What the commit thread did since the store was opened. Only that thread writes, so that
/// counting costs it nothing to speak of.
#[derive(Default)]
pub(super) struct Work {
    batches: AtomicU64,
    groups: AtomicU64,
    group_batches_max: AtomicU64,
    syncs: AtomicU64,
}

impl Work {
    /// Notes that so many batches were decided together.
    pub(super) fn note_group(&self, batches: usize) {
        let batches = u64::try_from(batches).unwrap_or(u64::MAX);
        self.batches.fetch_add(batches, Ordering::Relaxed);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.group_batches_max.fetch_max(batches, Ordering::Relaxed);
    }

    /// Notes a sync.
    pub(super) fn note_sync(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}

/// All that is known now; of a store that was closed, what its thread did and what it left.
pub(super) fn figures(work: &Work, view: &View, folder: &Path) -> Vec<Figure> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut all = vec![
        Figure::bytes("disk", disk_bytes(folder)),
        Figure::count("batches", read(&work.batches)),
        Figure::count("batch groups", read(&work.groups)),
        Figure::count("largest batch group", read(&work.group_batches_max)),
        Figure::count("syncs", read(&work.syncs)),
    ];
    if !view.is_closed() {
        let (records, lists) = view.cache().bytes();
        let [record_hits, list_hits] = view.cache().hits();
        let (hits, misses) = record_hits;
        all.push(Figure::count("held moments", view.pins() as u64));
        all.extend([
            Figure::bytes("record cache", records),
            Figure::count("record cache hits", hits),
            Figure::count("record cache misses", misses),
        ]);
        let (hits, misses) = list_hits;
        all.extend([
            Figure::bytes("list cache", lists),
            Figure::count("list cache hits", hits),
            Figure::count("list cache misses", misses),
        ]);
    }
    all
}

/// The bytes of all files below a folder. Files come and go meanwhile: one that cannot be looked
/// at is left out.
pub(super) fn disk_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
