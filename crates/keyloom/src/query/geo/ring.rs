//! A ring around a place: all distances between an inner and an outer edge.

use bytes::Bytes;

use super::rank::Rank;

/// The width of the very first ring, in metres.
const FIRST_STEP_M: f64 = 500.0;

/// The width of a page's first ring, as a share of its distance. The cells that cover a ring grow
/// with its distance, so a narrower ring would read the same cells and find fewer records.
const STEP_SHARE: f64 = 1.0 / 16.0;

/// The places farther away than the inner edge, up to and including the outer edge.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) inner_m: f64,
    pub(super) outer_m: f64,
    /// Its width, unless the radius cuts it off.
    pub(super) step_m: f64,
    /// Whether it is covered by many small cells.
    pub(super) is_fine: bool,
    radius_m: f64,
    /// Only places after this rank.
    after: Option<Rank>,
    /// Whether it is the first ring of the page. Only the first ring includes places on its inner
    /// edge.
    is_first: bool,
}

impl Ring {
    /// The first ring of a page that continues after a rank.
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

    /// The ring around this one, `times` as wide.
    pub(super) fn next(self, times: f64) -> Self {
        let step_m = self.step_m * times;
        Ring { inner_m: self.outer_m, is_first: false, ..self }.of_width(step_m)
    }

    /// The inner half of this ring.
    pub(super) fn halved(&self) -> Self {
        self.clone().of_width(self.step_m / 2.0)
    }

    /// The same ring, covered by many small cells; the rings after it are too.
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

    /// The first rank that this ring could hold, if other rings of the page already returned
    /// everything before it.
    pub(super) fn edge(&self) -> Option<Rank> {
        // No key is empty, so all places at that distance come after this rank.
        (!self.is_first).then(|| Rank { distance_m: self.inner_m.next_up(), key: Bytes::new() })
    }
}
