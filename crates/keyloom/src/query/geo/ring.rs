//! A stretch of distances around a place.

use bytes::Bytes;

use super::rank::Rank;

/// How wide the first ring of all is, in metres.
const FIRST_STEP_M: f64 = 500.0;

/// How wide the first ring of a page is, as a share of its distance. The cells that cover a ring
/// grow with its distance, so that a narrower one would have the same cells, and bring less.
const STEP_SHARE: f64 = 1.0 / 16.0;

/// The places farther away than the inner edge, up to the outer one.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) inner_m: f64,
    pub(super) outer_m: f64,
    /// How wide it is, unless the radius cuts it off.
    pub(super) step_m: f64,
    /// Whether it is read by many small cells.
    pub(super) is_fine: bool,
    radius_m: f64,
    /// Only what comes after this.
    after: Option<Rank>,
    /// Whether no other ring came before it. Only then what lies on the inner edge belongs to it.
    is_first: bool,
}

impl Ring {
    /// The first ring of a page that goes on after a rank.
    pub(super) fn first(after: Option<Rank>, radius_m: f64) -> Self {
        let inner_m = after.as_ref().map_or(0.0, |after| after.distance_m);
        let step_m = FIRST_STEP_M.max(inner_m * STEP_SHARE);
        let start = Ring {
            inner_m,
            outer_m: inner_m,
            step_m,
            is_fine: false,
            radius_m,
            after,
            is_first: true,
        };
        start.of_width(step_m)
    }

    /// The ring around this one, so many times as wide.
    pub(super) fn next(self, times: f64) -> Self {
        let step_m = self.step_m * times;
        Ring { inner_m: self.outer_m, is_first: false, ..self }.of_width(step_m)
    }

    /// The inner half of this one.
    pub(super) fn halved(&self) -> Self {
        self.clone().of_width(self.step_m / 2.0)
    }

    /// This one, read by many small cells, and so those around it.
    pub(super) fn fine(&self) -> Self {
        Ring { is_fine: true, ..self.clone() }
    }

    fn of_width(self, step_m: f64) -> Self {
        Ring { outer_m: (self.inner_m + step_m).min(self.radius_m), step_m, ..self }
    }

    pub(super) fn holds(&self, rank: &Rank) -> bool {
        rank.distance_m <= self.outer_m
            && (rank.distance_m > self.inner_m || self.is_first && rank.distance_m == self.inner_m)
            && self.after.as_ref().is_none_or(|after| rank > after)
    }

    /// The first rank that this ring could hold, if everything before it was told by other rings
    /// of the page.
    pub(super) fn edge(&self) -> Option<Rank> {
        // No key is empty, so that all places at that distance come after it.
        (!self.is_first).then(|| Rank { distance_m: self.inner_m.next_up(), key: Bytes::new() })
    }
}
