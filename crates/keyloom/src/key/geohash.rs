//! Geohashes: places as text, in which a longer common prefix means a smaller common cell.
//!
//! | latitude, longitude | characters | geohash |
//! | --- | --- | --- |
//! | 57.64911, 10.40744 | 11 | `u4pruydqqvj` |
//! | 42.6, -5.6 | 5 | `ezs42` |
//!
//! Each character holds five bits. Bits alternate between longitude (first) and latitude. Each bit
//! says whether the place lies in the upper half of the range that the bits before it leave.

/// The 32 characters in the order of their values, which is also the order of their bytes.
pub(crate) const LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// The geohash of a place in degrees. A place on the border of two cells belongs to the northern
/// and the eastern one; latitude 90 and longitude 180 belong to the last cell. Values beyond the
/// limits count as the limits.
pub(crate) fn geohash_encode(lat: f64, lon: f64, chars: u8) -> String {
    let mut cell = Cell::WORLD;
    (0..chars)
        .map(|place| {
            let value = (0..5).fold(0, |value, bit| {
                value << 1 | usize::from(cell.halve_towards(lat, lon, is_lon(place, bit)))
            });
            char::from(LETTERS[value])
        })
        .collect()
}

/// The cell of a geohash: lowest and highest latitude, lowest and highest longitude. The first
/// character that no geohash contains, and everything after it, are ignored.
pub(crate) fn geohash_bounds(geohash: &str) -> (f64, f64, f64, f64) {
    let mut cell = Cell::WORLD;
    let values = geohash.bytes().map_while(|byte| LETTERS.iter().position(|&found| found == byte));
    for (place, value) in (0..=u8::MAX).zip(values) {
        for bit in 0..5 {
            cell.halve(is_lon(place, bit), value >> (4 - bit) & 1 == 1);
        }
    }
    (cell.lat.0, cell.lat.1, cell.lon.0, cell.lon.1)
}

/// Whether the `bit`-th bit of the `place`-th character belongs to the longitude.
fn is_lon(place: u8, bit: u8) -> bool {
    (place + bit).is_multiple_of(2)
}

struct Cell {
    lat: (f64, f64),
    lon: (f64, f64),
}

impl Cell {
    const WORLD: Cell = Cell { lat: (-90.0, 90.0), lon: (-180.0, 180.0) };

    /// Keeps the half that contains the place, and says whether that is the upper one.
    fn halve_towards(&mut self, lat: f64, lon: f64, by_lon: bool) -> bool {
        let (place, (low, high)) = if by_lon { (lon, self.lon) } else { (lat, self.lat) };
        let upper = place >= middle(low, high);
        self.halve(by_lon, upper);
        upper
    }

    fn halve(&mut self, by_lon: bool, upper: bool) {
        let (low, high) = if by_lon { &mut self.lon } else { &mut self.lat };
        let middle = middle(*low, *high);
        *(if upper { low } else { high }) = middle;
    }
}

/// Exact for every cell of up to 12 characters: 30 halvings of 360 need fewer bits than a double
/// has.
fn middle(low: f64, high: f64) -> f64 {
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::tests::cases;

    #[test]
    fn published_geohashes() {
        for (lat, lon, geohash) in [
            (57.64911, 10.40744, "u4pruydqqvj"),
            (42.6, -5.6, "ezs42"),
            (48.8584, 2.2945, "u09tunq"),
            (37.8324, 112.5584, "ww8p1r4t8"),
            (-25.382708, -49.265506, "6gkzwgjzn820"),
            (0.0, 0.0, "s00000000000"),
            (-90.0, -180.0, "000000000000"),
            (90.0, 180.0, "zzzzzzzzzzzz"),
        ] {
            assert_eq!(geohash_encode(lat, lon, geohash.len() as u8), geohash);
        }
    }

    #[test]
    fn the_published_cell_of_ezs42() {
        assert_eq!(geohash_bounds("ezs42"), (42.5830078125, 42.626953125, -5.625, -5.5810546875));
        assert_eq!(geohash_bounds(""), (-90.0, 90.0, -180.0, 180.0));
        assert_eq!(geohash_bounds("ezs42a!"), geohash_bounds("ezs42"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(512)))]

        #[test]
        fn a_place_lies_in_its_cell(lat in -90.0..=90.0f64, lon in -180.0..=180.0f64, chars in 1u8..=12) {
            let geohash = geohash_encode(lat, lon, chars);
            let (lat_min, lat_max, lon_min, lon_max) = geohash_bounds(&geohash);
            prop_assert!(lat_min <= lat && lat <= lat_max && lon_min <= lon && lon <= lon_max);
            prop_assert_eq!(geohash_encode(lat_min, lon_min, chars), geohash);
        }
    }
}
