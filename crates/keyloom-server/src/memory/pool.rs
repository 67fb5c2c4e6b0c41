//! A pool of bytes, which requests take in the order in which they ask.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes are counted in blocks, so that 32 bits are enough.
const BLOCK_BYTES: usize = 1 << 10;

/// See the [module's](self) description.
pub(crate) struct Pool {
    free: Arc<Semaphore>,
    blocks: u32,
}

/// Bytes taken from a pool, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    /// `None` only if the pool is closed, which never happens.
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(crate) fn new(bytes: usize) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let blocks = u32::try_from(bytes / BLOCK_BYTES).unwrap_or(u32::MAX).clamp(1, most);
        Pool { free: Arc::new(Semaphore::new(blocks as usize)), blocks }
    }

    /// The size of the pool in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.blocks as usize * BLOCK_BYTES
    }

    /// Takes bytes as soon as that many are free; first come, first served. A request for more than
    /// the whole pool gets all of it.
    pub(crate) async fn take(&self, bytes: usize) -> Held {
        Held { permit: self.free.clone().acquire_many_owned(self.blocks(bytes)).await.ok() }
    }

    /// Takes bytes if that many are free now and nobody waits.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Held> {
        let permit = self.free.clone().try_acquire_many_owned(self.blocks(bytes)).ok()?;
        Some(Held { permit: Some(permit) })
    }

    fn blocks(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX).min(self.blocks)
    }

    /// How many bytes nobody holds.
    #[cfg(test)]
    pub(crate) fn free_bytes(&self) -> usize {
        self.free.available_permits() * BLOCK_BYTES
    }
}

impl Held {
    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * BLOCK_BYTES
    }

    /// Gives back all but this many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.permit {
            let spare = permit.num_permits().saturating_sub(bytes.div_ceil(BLOCK_BYTES));
            drop(permit.split(spare));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_asks_first_comes_first_and_what_is_given_back_is_free() {
        let pool = Pool::new(10 << 10);
        let mut first = pool.take(8 << 10).await;
        let mut large = Box::pin(pool.take(9 << 10));
        assert!(large.as_mut().now_or_never().is_none(), "there is no room");
        // Nobody overtakes a waiting request.
        let mut small = Box::pin(pool.take(1));
        assert!(small.as_mut().now_or_never().is_none());
        assert!(pool.try_take(1).is_none());
        first.shrink_to(1 << 10);
        let large = large.now_or_never().unwrap();
        assert_eq!((first.bytes(), large.bytes()), (1 << 10, 9 << 10));
        drop(first);
        assert_eq!(small.now_or_never().unwrap().bytes(), 1 << 10);
        drop(large);
        assert_eq!(pool.free_bytes(), 10 << 10);
    }

    #[tokio::test]
    async fn who_asks_for_more_than_there_is_gets_all() {
        let pool = Pool::new(4 << 10);
        assert_eq!(pool.take(usize::MAX).await.bytes(), pool.bytes_max());
        assert_eq!(Pool::new(0).take(0).await.bytes(), 0);
        assert_eq!(Pool::new(usize::MAX).bytes_max(), u32::MAX as usize * BLOCK_BYTES);
    }
}
