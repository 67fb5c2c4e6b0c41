//! Witnesses: evidence that data which was read is still current.

use std::fmt;
use std::sync::Arc;

/// Tells, at far less cost than a new read, whether a call would still give the same result.
///
/// An engine without such evidence gives no witness. A witness may fall at any time, and never
/// stands again. While it stands, everything that was read is unchanged: a batch that changes some
/// of it makes the witness fall before the batch is acknowledged.
#[derive(Clone)]
pub struct Witness {
    evidence: Arc<dyn Evidence>,
    moment: u64,
}

/// An engine's record of the changes to data that it gave to readers.
pub trait Evidence: Send + Sync {
    /// Whether data that was read at a moment, by the engine's own count, is certainly unchanged.
    /// Once it has answered `false` for a moment, it must not answer `true` for it again.
    fn stands(&self, moment: u64) -> bool;
}

impl Witness {
    /// A witness for data that was read at a moment.
    pub fn new(evidence: Arc<dyn Evidence>, moment: u64) -> Self {
        Witness { evidence, moment }
    }

    /// Whether the data is certainly unchanged.
    pub fn stands(&self) -> bool {
        self.evidence.stands(self.moment)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Witness({})", self.stands())
    }
}
