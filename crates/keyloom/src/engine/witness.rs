//! Evidence that what was read is still what is there.

use std::fmt;
use std::sync::Arc;

/// Tells, far cheaper than reading again, whether what a call gave would be the same now.
///
/// An engine that has nothing of the kind gives none. Evidence may be lost at any time, and once
/// lost it does not come back. While it lasts, everything that was read is as it was; a batch
/// that changes some of it makes it fall before the batch is acknowledged.
#[derive(Clone)]
pub struct Witness {
    evidence: Arc<dyn Evidence>,
    moment: u64,
}

/// What an engine knows of the changes to something that it gave to readers.
pub trait Evidence: Send + Sync {
    /// Whether what was read at a moment, by the engine's own count of them, is certainly
    /// unchanged. After it said no for a moment once, it must not say yes again.
    fn stands(&self, moment: u64) -> bool;
}

impl Witness {
    /// A witness of what was read at a moment.
    pub fn new(evidence: Arc<dyn Evidence>, moment: u64) -> Self {
        Witness { evidence, moment }
    }

    /// Whether what was read is certainly unchanged.
    pub fn stands(&self) -> bool {
        self.evidence.stands(self.moment)
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Witness({})", self.stands())
    }
}
