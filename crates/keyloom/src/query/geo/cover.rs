//! The geohash cells that a ring around a place touches: as few as possible, and as small as the
//! index has them.

use super::sphere::{GeoPoint, Rectangle, bounds};
use crate::key::{GEOHASH_LETTERS, geohash_bounds, geohash_encode};

/// The most cells that are read at once. Each is one range of a round trip.
pub(super) const CELLS_MAX: usize = 48;

/// The most cells of a ring that is covered finely.
const FINE_CELLS_MAX: usize = 512;

/// The most cells that are checked to find those that are read at once.
const CANDIDATES_MAX: u64 = 1_024;

/// The most that rounding may add to a distance.
const ROUNDING_M: f64 = 1e-2;

/// The cells that may hold a place whose distance from `center` is between `inner_m` and `outer_m`.
/// Cells have at most `chars` characters; the cell with none is the whole Earth.
pub(super) fn cover(center: GeoPoint, inner_m: f64, outer_m: f64, chars: u8) -> Vec<String> {
    (1..=chars)
        .rev()
        .find_map(|chars| {
            cells(center, inner_m, outer_m, chars).filter(|cells| cells.len() <= CELLS_MAX)
        })
        .unwrap_or_else(|| vec![String::new()])
}

/// As [`cover`], with more and smaller cells. It is for narrow, distant rings: the few large cells
/// that they touch also hold many places outside the ring.
pub(super) fn cover_finely(center: GeoPoint, inner_m: f64, outer_m: f64, chars: u8) -> Vec<String> {
    let mut cells = vec![String::new()];
    for _ in 0..chars {
        let parts = cells.iter().flat_map(|cell| {
            GEOHASH_LETTERS.iter().map(move |&letter| format!("{cell}{}", char::from(letter)))
        });
        let touched = parts.filter(|part| is_touched(part, center, inner_m, outer_m));
        let parts: Vec<String> = touched.take(FINE_CELLS_MAX + 1).collect();
        if parts.len() > FINE_CELLS_MAX {
            break;
        }
        cells = parts;
    }
    cells
}

/// Whether a cell may hold a place of the ring.
fn is_touched(cell: &str, center: GeoPoint, inner_m: f64, outer_m: f64) -> bool {
    let (south, north, west, east) = geohash_bounds(cell);
    let bounds = Rectangle { south, north, west, east };
    bounds.distance_m_min(center) <= outer_m + ROUNDING_M
        && bounds.distance_m_max(center) >= inner_m - ROUNDING_M
}

/// The cells of one size that the ring touches; `None` if there are too many.
fn cells(center: GeoPoint, inner_m: f64, outer_m: f64, chars: u8) -> Option<Vec<String>> {
    let grid = Grid::new(chars);
    let reach = bounds(center, outer_m + ROUNDING_M);
    let rows = grid.rows(reach.south, reach.north);
    let columns = grid.columns(reach.west, reach.east);
    if (rows.1 - rows.0 + 1).saturating_mul(columns.1 - columns.0 + 1) > CANDIDATES_MAX as i64 {
        return None;
    }
    let mut cells = Vec::new();
    for row in rows.0..=rows.1 {
        for column in columns.0..=columns.1 {
            let cell = grid.cell(row, column);
            if is_touched(&cell, center, inner_m, outer_m) {
                cells.push(cell);
            }
        }
    }
    cells.sort_unstable();
    cells.dedup();
    Some(cells)
}

/// All cells of one size, as rows from south to north and columns from west to east.
struct Grid {
    chars: u8,
    row_count: i64,
    column_count: i64,
}

impl Grid {
    fn new(chars: u8) -> Self {
        let bits = 5 * u32::from(chars);
        Grid { chars, row_count: 1 << (bits / 2), column_count: 1 << bits.div_ceil(2) }
    }

    fn rows(&self, south: f64, north: f64) -> (i64, i64) {
        let row = |lat: f64| ((lat + 90.0) / 180.0 * self.row_count as f64).floor() as i64;
        (row(south).clamp(0, self.row_count - 1), row(north).clamp(0, self.row_count - 1))
    }

    /// Columns beyond the 180th meridian have numbers beyond the last; [`cell`](Self::cell) wraps
    /// them.
    fn columns(&self, west: f64, east: f64) -> (i64, i64) {
        let column = |lon: f64| ((lon + 180.0) / 360.0 * self.column_count as f64).floor() as i64;
        let (first, last) = (column(west), column(east));
        if last - first >= self.column_count { (0, self.column_count - 1) } else { (first, last) }
    }

    fn cell(&self, row: i64, column: i64) -> String {
        let middle = |place: i64, count: i64| (place as f64 + 0.5) / count as f64;
        let lat = middle(row, self.row_count) * 180.0 - 90.0;
        let lon = middle(column.rem_euclid(self.column_count), self.column_count) * 360.0 - 180.0;
        geohash_encode(lat, lon, self.chars)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::cases;

    fn place() -> impl Strategy<Value = GeoPoint> {
        let lat = prop_oneof![4 => -90.0..=90.0f64, 1 => Just(-90.0), 1 => Just(90.0), 1 => 89.99..=90.0f64];
        let lon = prop_oneof![4 => -180.0..=180.0f64, 1 => Just(-180.0), 1 => Just(180.0), 1 => 179.99..=180.0f64];
        (lat, lon).prop_map(|(lat, lon)| GeoPoint { lat, lon })
    }

    fn nearby(center: GeoPoint) -> impl Strategy<Value = GeoPoint> {
        let step = prop_oneof![-1e-4..=1e-4f64, -0.1..=0.1f64, -10.0..=10.0f64];
        (step.clone(), step).prop_map(move |(lat, lon)| GeoPoint {
            lat: (center.lat + lat).clamp(-90.0, 90.0),
            lon: (center.lon + lon + 180.0).rem_euclid(360.0) - 180.0,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(2_000)))]

        #[test]
        fn every_place_of_a_ring_lies_in_one_of_its_cells(
            (center, other) in place().prop_flat_map(|center| {
                (Just(center), prop_oneof![nearby(center), place()])
            }),
            chars in 1u8..=12,
            (below, above) in (0.0..=1.0f64, 1.0..=3.0f64),
        ) {
            let distance = center.distance_m(other);
            let cells = cover(center, distance * below, distance * above, chars);
            let hash = geohash_encode(other.lat, other.lon, chars);
            prop_assert!(cells.iter().any(|cell| hash.starts_with(cell)), "{hash} is in none of {cells:?}");
            prop_assert!(cells.len() <= CELLS_MAX);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(60)))]

        #[test]
        fn every_place_of_a_ring_lies_in_one_of_its_small_cells(
            (center, other) in place().prop_flat_map(|center| {
                (Just(center), prop_oneof![nearby(center), place()])
            }),
            chars in 1u8..=12,
            (below, above) in (0.9..=1.0f64, 1.0..=1.1f64),
        ) {
            let distance = center.distance_m(other);
            let cells = cover_finely(center, distance * below, distance * above, chars);
            let hash = geohash_encode(other.lat, other.lon, chars);
            prop_assert!(cells.iter().any(|cell| hash.starts_with(cell)), "{hash} is in none of {cells:?}");
            prop_assert!(cells.len() <= FINE_CELLS_MAX);
        }
    }

    #[test]
    fn a_narrow_ring_that_is_far_away_is_covered_finely() {
        let center = GeoPoint { lat: 10.0, lon: 20.0 };
        let (near, far) = (9_000_000.0, 9_000_500.0);
        let (few, many) = (cover(center, near, far, 6), cover_finely(center, near, far, 6));
        assert!(few[0].len() < many[0].len(), "{few:?} {many:?}");
        assert!(many.len() > CELLS_MAX, "{many:?}");
    }

    #[test]
    fn a_small_ring_does_not_take_the_whole_earth() {
        let cells = cover(GeoPoint { lat: 48.8566, lon: 2.3522 }, 0.0, 1_000.0, 6);
        assert!(cells.iter().all(|cell| cell.len() >= 5), "{cells:?}");
    }
}
