//! Limits the memory that all requests in progress hold together.
//!
//! `memory_bytes_max` is divided into shares, so that no kind of use takes the memory of another. A
//! request takes from the shares in the order of this table and never backwards, so no two requests
//! can wait for each other.
//!
//! | share | of the whole | what it holds, and until when |
//! | --- | --- | --- |
//! | small bodies | 1/32 | bodies of up to 64 KiB, from before they arrive until they are answered |
//! | large bodies | 3/32 | larger bodies, in the same way, so that small ones still find room |
//! | JSON | 3/8 | the parsed values of a body ([`weight`]), unless they are small |
//! | requests | 1/4 | 1 MiB for each running request: a record or two, and what is made of them |
//! | large answers | 3/16 | those that may be larger, from before they are made until they are received |
//! | answers | 1/16 | other answers larger than 64 KiB, until they are received |
//!
//! A request without room waits, in order, as long as a body or an answer may take. While it waits
//! for a large answer, it gives up most of its own share, so that it does not block small requests.

mod pool;
mod sending;
mod weight;

pub(crate) use pool::{Held, Pool};
pub(crate) use sending::{Holding, NoRoom};
pub(crate) use weight::weight;

use crate::config::Limits;

/// Bodies up to this size are small, and so are answers, which the connection takes over
/// completely.
pub(crate) const SMALL_BYTES: usize = 64 << 10;

/// The memory of each running request.
pub(crate) const REQUEST_BYTES: usize = 1 << 20;

/// JSON of at most this size fits into the memory of its request.
pub(crate) const JSON_BYTES: usize = 128 << 10;

/// How many bytes of records are read for a page before its request takes more memory.
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

    /// Memory for a body of this many bytes.
    pub(crate) async fn body(&self, bytes: usize) -> Held {
        match bytes <= SMALL_BYTES {
            true => self.small_bodies.take(bytes).await,
            false => self.large_bodies.take(bytes).await,
        }
    }

    /// The largest body that could ever fit.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.large_bodies.bytes_max()
    }

    /// Memory for parsed JSON.
    pub(crate) async fn json(&self, bytes: usize) -> Held {
        self.json.take(bytes).await
    }

    /// The most memory that parsed JSON could ever get.
    pub(crate) fn json_bytes_max(&self) -> usize {
        self.json.bytes_max()
    }

    /// Memory to work on a request.
    pub(crate) async fn request(&self) -> Held {
        self.requests.take(REQUEST_BYTES).await
    }

    /// Memory for a large answer while it is built, from records and as text.
    pub(crate) async fn large_answer(&self, bytes: usize) -> Held {
        self.large_answers.take(bytes.saturating_mul(2)).await
    }
}
