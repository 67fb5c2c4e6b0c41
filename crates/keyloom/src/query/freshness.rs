//! Whether a page that was read would still be the same.

use std::fmt;
use std::sync::Arc;

use crate::engine::Witness;
use crate::error::Result;
use crate::space::{Live, Loaded};

/// Tells, far cheaper than asking again, whether the same question would get the same page. It is
/// for those who keep what they made of a page.
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

    /// Whether the page is as fresh as one that is read now. Once it is not, it will not be again.
    pub async fn holds(&self) -> Result<bool> {
        // The schema comes first: if nothing of the page has changed by the time after it, the
        // page is right for the moment at which the schema was looked at.
        let is_schema_current = self.live.is_current(&self.loaded).await?;
        Ok(is_schema_current && self.witnesses.iter().all(Witness::stands))
    }
}

impl fmt::Debug for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Freshness").field(&self.witnesses).finish()
    }
}
