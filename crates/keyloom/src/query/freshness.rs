//! Tells whether a page that was read is still current.

use std::fmt;
use std::sync::Arc;

use crate::engine::Witness;
use crate::error::Result;
use crate::space::{Live, Loaded};

/// Tells whether the same query would still get the same page, at far less cost than the query. For
/// programs that cache what they made of a page.
#[derive(Clone)]
pub struct Freshness {
    live: Arc<Live>,
    loaded: Arc<Loaded>,
    witnesses: Vec<Witness>,
}

impl Freshness {
    pub(super) fn new(live: Arc<Live>, loaded: Arc<Loaded>, witnesses: Vec<Witness>) -> Self {
        Freshness { live, loaded, witnesses }
    }

    /// Whether the page is still what a new read would give. Once it is not, it never is again.
    pub async fn holds(&self) -> Result<bool> {
        // Checks the schema first. If nothing in the page has changed after that check, the page is
        // correct for the time of the check.
        let is_schema_current = self.live.is_current(&self.loaded).await?;
        Ok(is_schema_current && self.witnesses.iter().all(Witness::stands))
    }
}

impl fmt::Debug for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Freshness").field(&self.witnesses).finish()
    }
}
