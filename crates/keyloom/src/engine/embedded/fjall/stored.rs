//! What fjall holds at one moment, past all caches.
//!
//! A fjall snapshot is for moments that last as long as a call. While it is open fjall lets go of
//! nothing that any later moment has: not of the memtables that were flushed meanwhile, nor of the
//! tables that were written and merged again. A backup may last for hours, in which that is all the
//! memory of the machine.
//!
//! A moment that is *held* therefore has a copy of fjall's own list of what there was: some
//! memtables and tables, which never change but by additions with higher numbers. It keeps these, and
//! nothing that comes after them. Single cells are looked for as ranges of one key, which is slower;
//! whoever holds a moment mostly reads all of it.

use std::ops::Bound;

use bytes::Bytes;
use fjall::{AbstractTree, AnyTree, Keyspace, Readable, Snapshot};

use super::fault;
use crate::error::{Error, ErrorKind, Result};

/// One moment.
pub(crate) enum Stored {
    /// The last one, for as long as it is.
    Latest { snapshot: Snapshot, cells: Keyspace },
    /// Any other.
    Held(Held),
}

/// What makes iterators over a moment. fjall's list has a type without a name.
pub(crate) struct Held(Box<MakeRows>);

type MakeRows = dyn Fn(Bound<&[u8]>, Bound<&[u8]>) -> HeldRows + Send + Sync;
type HeldRows = Box<dyn DoubleEndedIterator<Item = Result<(Bytes, Bytes)>> + Send>;

impl Stored {
    /// The same moment, to be held for long.
    pub(crate) fn hold(&self) -> Result<Stored> {
        let (snapshot, cells) = match self {
            Stored::Latest { snapshot, cells } => (snapshot, cells),
            Stored::Held(_) => {
                return Err(Error::new(ErrorKind::Internal, "a moment that is held is shared"));
            }
        };
        let AnyTree::Standard(tree) = &cells.tree else {
            return Err(Error::new(ErrorKind::Internal, "the cells are not in one tree"));
        };
        let moment = snapshot.seqno();
        // The snapshot is open, so that its list is there.
        let list = tree.get_version_history_lock().get_version_for_snapshot(moment);
        Ok(Stored::Held(Held(Box::new(move |start, end| {
            let (start, end) = (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
            let rows = lsm_tree::Tree::create_internal_range::<Vec<u8>, _>(
                list.clone(),
                &(start, end),
                moment,
                None,
            );
            Box::new(rows.map(|row| match row {
                Ok(row) => Ok((row.key.user_key.into(), row.value.into())),
                Err(error) => Err(fault::reading(error.into())),
            }))
        }))))
    }

    /// What is stored at a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        match self {
            Stored::Latest { snapshot, cells } => {
                Ok(snapshot.get(cells, key).map_err(fault::reading)?.map(Bytes::from))
            }
            Stored::Held(Held(rows)) => {
                let found = rows(Bound::Included(key), Bound::Included(key)).next();
                Ok(found.transpose()?.map(|(_, stored)| stored))
            }
        }
    }

    /// Keys from the first to below the second, with what is stored at them.
    pub(crate) fn range(&self, start: &[u8], end: &[u8]) -> Rows {
        match self {
            Stored::Latest { snapshot, cells } => Rows::Latest(snapshot.range(cells, start..end)),
            Stored::Held(Held(rows)) => {
                Rows::Held(rows(Bound::Included(start), Bound::Excluded(end)))
            }
        }
    }
}

/// Keys in order, from both ends, with what is stored at them.
pub(crate) enum Rows {
    Latest(fjall::Iter),
    Held(HeldRows),
}

impl Iterator for Rows {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Rows::Latest(rows) => rows.next().map(read),
            Rows::Held(rows) => rows.next(),
        }
    }
}

impl DoubleEndedIterator for Rows {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Rows::Latest(rows) => rows.next_back().map(read),
            Rows::Held(rows) => rows.next_back(),
        }
    }
}

fn read(guard: fjall::Guard) -> Result<(Bytes, Bytes)> {
    let (key, stored) = guard.into_inner().map_err(fault::reading)?;
    Ok((key.into(), stored.into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

    use super::super::super::{Embedded, Options};
    use super::*;
    use crate::engine::{
        Address, Area, Batch, Direction, Effect, Engine, EngineExt, Range, Space, Stamp,
    };

    fn put(number: usize, bytes: usize) -> Batch {
        let mut batch = Batch::new(Space::main());
        let put = Effect::Put { stamp: Stamp([7; Stamp::BYTES]), bytes: vec![7; bytes].into() };
        let key = format!("key:{:02}", number % 50);
        batch.push(Address::new(Area::default_area(), key), None, Some(put));
        batch
    }

    /// Writes as much as thirty memtables hold, and says how many lists of memtables and tables
    /// fjall keeps besides the last one.
    async fn lists_after_writing(store: &Embedded) -> usize {
        for number in 0..100 {
            store.commit(put(number, 20 << 10)).await.unwrap();
        }
        let moment = store.view.moment().unwrap();
        let Stored::Latest { cells, .. } = moment.stored() else { panic!("it is the last one") };
        cells.tree.version_free_list_len()
    }

    #[tokio::test]
    async fn a_moment_that_is_held_keeps_nothing_that_came_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::default().memtable_bytes(64 << 10);
        let store = Embedded::open(folder.path(), options).unwrap();
        store.commit(put(1, 1)).await.unwrap();
        let pinned = store.pin().await.unwrap();
        let lists = lists_after_writing(&store).await;
        assert!(lists < 10, "{lists} lists are kept for a moment that is held");
        let all = Range::all(Area::default_area());
        let rows = pinned.scan_one(&Space::main(), &all, 100, Direction::Forward).await.unwrap();
        assert_eq!(rows.rows.len(), 1, "the moment is as it was");
        assert_eq!(rows.rows[0].cell.bytes().unwrap().len(), 1);

        // What a snapshot of fjall's would keep.
        let snapshot = store.view.moment().unwrap();
        let lists = lists_after_writing(&store).await;
        assert!(lists > 10, "a snapshot keeps {lists} lists only, so that nothing need be held");
        drop(snapshot);
        store.close().await.unwrap();
    }

    #[tokio::test]
    async fn moments_that_are_held_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Options::default()).unwrap();
        let held = || {
            let figures = store.figures();
            figures.iter().find(|figure| figure.name == "held moments").unwrap().value
        };
        assert_eq!(held(), 0);
        let (first, second) = (store.pin().await.unwrap(), store.pin().await.unwrap());
        let again = first.pin().await.unwrap();
        assert_eq!(held(), 2, "a handle more is no moment more");
        drop(first);
        assert_eq!(held(), 2);
        drop(again);
        assert_eq!(held(), 1);
        second.close().await.unwrap();
        assert_eq!(held(), 0);
        store.close().await.unwrap();
    }
}
