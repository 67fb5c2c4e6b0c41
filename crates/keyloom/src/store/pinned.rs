//! A store as it was at one moment.

use std::sync::{Arc, Mutex};

use super::{Shared, Store, live};
use crate::error::Result;
use crate::space::Clock;

impl Store {
    /// The store as it is now, in all spaces: a store whose every answer is of this one moment,
    /// while writers go on. Pages, look-ups, counts, histories and the log read as always. Every
    /// change is refused with [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly). The clock of the
    /// moment decides which records have expired. [`log_bounds`](Self::log_bounds) tells where the
    /// log ended then: a [`watch`](Self::watch) of this store from there gives everything since.
    ///
    /// The last handle that is dropped releases the moment, and so does [`close`](Self::close),
    /// which leaves this store open. Closing this store ends the moment. While it is held, whatever
    /// writers replace keeps its room: in memory the maps that they change, in a folder the files
    /// that would be gone.
    ///
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on an engine that
    /// cannot hold a moment; memory and folders can.
    pub async fn pinned(&self) -> Result<Store> {
        let engine = self.engine().pin().await?;
        let now = self.session().now();
        let shared = Arc::new(Shared { engine, spaces: Mutex::default() });
        let live = live(&shared, self.session().live.space.clone());
        let session = self.session().in_space(live).by_clock(Clock::new(move || now));
        Ok(Store { session, shared })
    }
}
