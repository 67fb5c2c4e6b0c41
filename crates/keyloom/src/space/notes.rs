//! What a task has found so far, kept in cells beside its own.
//!
//! | key in the area `~` | holds |
//! | --- | --- |
//! | that of the task, `:`, and four digits | notes, each a line of JSON |
//!
//! Notes are only added. So a long list is not written anew with every step, but only its last
//! page.

use bytes::Bytes;

use crate::engine::Cell;

/// A page with so many bytes is full. With its last note it still fits into a cell.
const PAGE_BYTES: usize = 256 << 10;

/// The pages of a task, of which the last one is at hand.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// How many pages there are.
    pub(super) pages: u32,
    /// What the last one holds.
    last: String,
}

impl Notes {
    /// The pages as their cells hold them, and every note.
    pub(super) fn read(cells: &[Option<Cell>]) -> (Self, Vec<String>) {
        let text = |cell: &Option<Cell>| {
            let bytes = cell.as_ref().and_then(Cell::bytes).cloned().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let texts: Vec<String> = cells.iter().map(text).collect();
        let all = texts.iter().flat_map(|text| text.lines().map(str::to_owned)).collect();
        let pages = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        (Notes { pages, last: texts.into_iter().next_back().unwrap_or_default() }, all)
    }

    /// The same with more notes, and the pages that change by it: the number of each and what it
    /// holds.
    pub(super) fn with(&self, more: &[String]) -> (Self, Vec<(u32, Bytes)>) {
        let (mut notes, mut changed) = (self.clone(), Vec::new());
        let mut has_more = false;
        for note in more {
            if notes.pages == 0 || notes.last.len() >= PAGE_BYTES {
                changed.extend(notes.changed().filter(|_| has_more));
                notes = Notes { pages: notes.pages + 1, last: String::new() };
            }
            notes.last.push_str(note);
            notes.last.push('\n');
            has_more = true;
        }
        changed.extend(notes.changed().filter(|_| has_more));
        (notes, changed)
    }

    /// The last page with its number; none where there is no page.
    fn changed(&self) -> Option<(u32, Bytes)> {
        Some((self.pages.checked_sub(1)?, self.last.clone().into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;
    use crate::engine::{Content, Stamp};

    fn cell(bytes: &Bytes) -> Option<Cell> {
        let stamp = Stamp([0; Stamp::BYTES]);
        Some(Cell { stamp, content: Content::Bytes(bytes.clone()) })
    }

    #[test]
    fn notes_are_read_as_they_were_added_and_full_pages_stay() {
        let (mut notes, mut cells, mut all) = (Notes::default(), Vec::new(), Vec::new());
        for step in 0..40 {
            let more: Vec<String> =
                (0..step % 3).map(|n| format!("{step}-{n}-{}", "x".repeat(20_000))).collect();
            let (next, changed) = notes.with(&more);
            for (page, bytes) in changed {
                let place = usize::try_from(page).unwrap();
                assert!(place + 1 >= cells.len(), "a full page is written again");
                cells.resize(cells.len().max(place + 1), None);
                cells[place] = cell(&bytes);
            }
            all.extend(more);
            let (read, found) = Notes::read(&cells);
            assert_eq!((read.pages, &read.last), (next.pages, &next.last));
            assert_eq!(found, all);
            notes = next;
        }
        assert!(notes.pages > 2);
        assert!(cells.iter().flatten().all(|cell| cell.bytes().unwrap().len() < 300 << 10));
    }
}
