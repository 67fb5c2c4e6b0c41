//! Pins a snapshot of a store.

use std::sync::{Arc, Mutex};

use super::{Shared, Store, live};
use crate::error::Result;
use crate::space::Clock;

impl Store {
    /// Pins a snapshot of the store as it is now, in all spaces. The answer is a store that always
    /// reads this snapshot, while writers go on. Pages, look-ups, counts, histories and the log
    /// read as always. Every change is refused with
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly). The time of the snapshot decides which
    /// records have expired. [`log_bounds`](Self::log_bounds) says where the log ended at that
    /// time: a [`watch`](Self::watch) of the original store from there gives everything since.
    ///
    /// Dropping the last handle of the pinned store releases the snapshot. So does its
    /// [`close`](Self::close), which leaves the original store open. Closing the original store
    /// ends the snapshot too. While a snapshot is pinned, data that writers replace still takes
    /// space: in memory the maps that they change, in a folder the files that would otherwise be
    /// deleted.
    ///
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on an engine that
    /// cannot pin a snapshot; memory and folders can.
    pub async fn pinned(&self) -> Result<Store> {
        let engine = self.engine().pin().await?;
        let now = self.session().now();
        let shared = Arc::new(Shared { engine, spaces: Mutex::default() });
        let live = live(&shared, self.session().live.space.clone());
        let session = self.session().in_space(live).by_clock(Clock::new(move || now));
        Ok(Store { session, shared })
    }
}
