//! What all requests in flight may hold in memory together.
//!
//! `memory_bytes_max` is divided, so that no kind of use takes the room of another. A request takes
//! from the shares in the order of this table and never backwards, so that no two wait for each
//! other.
//!
//! | share | of the whole | what it holds, and until when |
//! | --- | --- | --- |
//! | small bodies | 1/32 | bodies of up to 64 KiB, from before they arrive until they are answered |
//! | large bodies | 3/32 | larger ones, likewise, so that small ones still find room |
//! | JSON | 3/8 | what a body takes once it is read ([`weight`]), where that is more than a little |
//! | requests | 1/4 | 1 MiB for each that is worked on: a record or two, and what is made of them |
//! | large answers | 3/16 | those that may be larger, from before they are made until they are taken |
//! | answers | 1/16 | others that are larger than 64 KiB, until they are taken |
//!
//! Those who find no room wait, in order, as long as a body or an answer may take. A request that
//! waits for a large answer keeps little of its own room, so that it does not keep small ones out.

mod pool;
mod sending;
mod weight;

pub(crate) use pool::{Held, Pool};
pub(crate) use sending::{Holding, NoRoom};
pub(crate) use weight::weight;

use crate::config::Limits;

/// Bodies up to this are small, and so are answers that the connection takes over whole.
pub(crate) const SMALL_BYTES: usize = 64 << 10;

/// What each request that is worked on holds.
pub(crate) const REQUEST_BYTES: usize = 1 << 20;

/// JSON that takes no more than this has room in what its request holds.
pub(crate) const JSON_BYTES: usize = 128 << 10;

/// How many bytes of records are read for a page before its request takes room for more.
pub(crate) const PAGE_BYTES: usize = 128 << 10;

/// See the [module's](self) description.
pub(crate) struct Memory {
    small_bodies: Pool,
    large_bodies: Pool,
    json: Pool,
    requests: Pool,
    large_answers: Pool,
    answers: Pool,
}

impl Memory {
    pub(crate) fn new(limits: &Limits) -> Self {
        let share = |part: usize| Pool::new(limits.memory_bytes_max / 32 * part);
        Memory {
            small_bodies: share(1),
            large_bodies: share(3),
            json: share(12),
            requests: share(8),
            large_answers: share(6),
            answers: share(2),
        }
    }

    /// Room for a body of so many bytes.
    pub(crate) async fn body(&self, bytes: usize) -> Held {
        match bytes <= SMALL_BYTES {
            true => self.small_bodies.take(bytes).await,
            false => self.large_bodies.take(bytes).await,
        }
    }

    /// The most bytes of a body that there could ever be room for.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.large_bodies.bytes_max()
    }

    /// Room for values that were read from JSON.
    pub(crate) async fn json(&self, bytes: usize) -> Held {
        self.json.take(bytes).await
    }

    /// The most bytes of values that there could ever be room for.
    pub(crate) fn json_bytes_max(&self) -> usize {
        self.json.bytes_max()
    }

    /// Room to work on a request.
    pub(crate) async fn request(&self) -> Held {
        self.requests.take(REQUEST_BYTES).await
    }

    /// Room for a large answer while it is put together, from records and as text.
    pub(crate) async fn large_answer(&self, bytes: usize) -> Held {
        self.large_answers.take(bytes.saturating_mul(2)).await
    }
}
