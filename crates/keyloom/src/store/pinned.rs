//! A store as it was at one moment.

use std::sync::{Arc, Mutex};

use super::{Shared, Store, live};
use crate::error::Result;
use crate::space::Clock;

impl Store {
    /// The store as it is now, in all spaces: a store whose every answer is of this one moment,
    /// while writers of this one go on. Pages, look-ups, counts, histories and the log read as
    /// always. Whatever would change it is refused with
    /// [`ErrorKind::ReadOnly`](crate::ErrorKind::ReadOnly). Which records have expired is judged by
    /// the clock of the moment, and [`log_bounds`](Self::log_bounds) says up to where the log had
    /// come: a [`watch`](Self::watch) of this store from there tells what happened since.
    ///
    /// The moment is released when the last handle is dropped, or by [`close`](Self::close), which
    /// leaves this store open. Closing this store ends it. While it is held, what writers replace
    /// takes room: in memory the maps that they change, in a folder the files that would be gone.
    ///
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) on an engine that cannot
    /// hold a moment; memory and folders can.
    pub async fn pinned(&self) -> Result<Store> {
        let engine = self.engine().pin().await?;
        let now = self.session().now();
        let shared = Arc::new(Shared { engine, spaces: Mutex::default() });
        let live = live(&shared, self.session().live.space.clone());
        let session = self.session().in_space(live).by_clock(Clock::new(move || now));
        Ok(Store { session, shared })
    }
}
