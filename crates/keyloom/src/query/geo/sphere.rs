//! Distances on the sphere, exact up to rounding: between points, and from a point to a rectangle
//! of latitudes and longitudes.

use std::f64::consts::{FRAC_PI_2, PI};

/// The mean radius of the Earth in metres, as the IUGG defines it.
pub(crate) const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// No two places are farther apart than this.
pub(crate) const DISTANCE_M_MAX: f64 = PI * EARTH_RADIUS_M;

/// The most that rounding may take from a distance close to the greatest one.
const ANTIPODE_ROUNDING_M: f64 = 1.0;

/// A place in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GeoPoint {
    pub(crate) lat: f64,
    pub(crate) lon: f64,
}

impl GeoPoint {
    /// The distance to another place in metres, by the haversine formula.
    pub(crate) fn distance_m(self, other: GeoPoint) -> f64 {
        let half = |gap: f64| (gap.to_radians() / 2.0).sin().powi(2);
        let parallels = parallel_radius(self.lat) * parallel_radius(other.lat);
        let h = half(other.lat - self.lat) + parallels * half(longitude_gap(self.lon, other.lon));
        2.0 * EARTH_RADIUS_M * h.clamp(0.0, 1.0).sqrt().asin()
    }

    /// The place on the other side of the Earth.
    fn antipode(self) -> GeoPoint {
        let lon = if self.lon > 0.0 { self.lon - 180.0 } else { self.lon + 180.0 };
        GeoPoint { lat: -self.lat, lon }
    }
}

/// The radius of a circle of latitude, in radii of the Earth. It is exactly 0 at the poles, where
/// all longitudes are one place; the cosine of a rounded angle would not be.
fn parallel_radius(lat: f64) -> f64 {
    if lat.abs() == 90.0 { 0.0 } else { lat.to_radians().cos() }
}

/// The places between two latitudes and two longitudes. `west` is at most `east`, and no
/// rectangle crosses the 180th meridian.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) south: f64,
    pub(crate) north: f64,
    pub(crate) west: f64,
    pub(crate) east: f64,
}

impl Rectangle {
    /// The distance from a place to the nearest point of the rectangle; 0 inside.
    ///
    /// At a fixed latitude the distance grows with the difference in longitude, so the nearest
    /// point is on the place's own meridian if the rectangle crosses it, and otherwise on the
    /// nearer of its two sides.
    pub(crate) fn distance_m_min(&self, from: GeoPoint) -> f64 {
        if (self.west..=self.east).contains(&from.lon) {
            let nearest = GeoPoint { lat: from.lat.clamp(self.south, self.north), lon: from.lon };
            return from.distance_m(nearest);
        }
        [self.west, self.east]
            .into_iter()
            .flat_map(|lon| {
                let best = nearest_latitude(from, lon).clamp(self.south, self.north);
                [self.south, best, self.north].map(|lat| from.distance_m(GeoPoint { lat, lon }))
            })
            .fold(DISTANCE_M_MAX, f64::min)
    }

    /// The distance to the farthest point of the rectangle, rounded up: no point is farther.
    ///
    /// The farthest point from a place is the point nearest to its antipode. In a rectangle within
    /// a quarter of the globe, it is a corner. The distance to it is then measured directly, which
    /// avoids the rounding of distances half around the Earth.
    pub(crate) fn distance_m_max(&self, from: GeoPoint) -> f64 {
        let sides = [self.west, self.east];
        if sides.into_iter().any(|lon| longitude_gap(from.lon, lon) > 90.0)
            || self.east - self.west > 90.0
        {
            let left = self.distance_m_min(from.antipode());
            return (DISTANCE_M_MAX - left + ANTIPODE_ROUNDING_M).min(DISTANCE_M_MAX);
        }
        sides
            .into_iter()
            .flat_map(|lon| {
                [self.south, self.north].map(|lat| from.distance_m(GeoPoint { lat, lon }))
            })
            .fold(0.0, f64::max)
    }
}

/// The latitude at which the meridian `lon` comes closest to a place. It lies beyond a pole if the
/// pole is the nearest point.
fn nearest_latitude(from: GeoPoint, lon: f64) -> f64 {
    let (lat, gap) = (from.lat.to_radians(), (lon - from.lon).to_radians());
    lat.sin().atan2(lat.cos() * gap.cos()).to_degrees()
}

/// The degrees between two longitudes, the shorter way round; exactly 0 between -180 and 180.
fn longitude_gap(a: f64, b: f64) -> f64 {
    let gap = (a - b).abs();
    gap.min(360.0 - gap)
}

/// The latitudes and longitudes that a circle reaches. Longitudes may exceed -180 to 180. A circle
/// around a pole reaches all longitudes.
pub(crate) fn bounds(center: GeoPoint, radius_m: f64) -> Rectangle {
    let angle = radius_m / EARTH_RADIUS_M;
    let (south, north) = (center.lat - angle.to_degrees(), center.lat + angle.to_degrees());
    let reach = (angle.sin() / center.lat.to_radians().cos()).abs();
    let gap = match angle < FRAC_PI_2 && south > -90.0 && north < 90.0 && reach < 1.0 {
        true => reach.asin().to_degrees(),
        false => 180.0,
    };
    Rectangle {
        south: south.max(-90.0),
        north: north.min(90.0),
        west: center.lon - gap,
        east: center.lon + gap,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place() -> impl Strategy<Value = GeoPoint> {
        let lat = prop_oneof![-90.0..=90.0f64, Just(-90.0), Just(0.0), Just(90.0)];
        let lon = prop_oneof![-180.0..=180.0f64, Just(-180.0), Just(0.0), Just(180.0)];
        (lat, lon).prop_map(|(lat, lon)| GeoPoint { lat, lon })
    }

    #[test]
    fn known_distances() {
        let paris = GeoPoint { lat: 48.8566, lon: 2.3522 };
        let london = GeoPoint { lat: 51.5074, lon: -0.1278 };
        assert!((paris.distance_m(london) - 343_556.0).abs() < 100.0);
        let quarter = GeoPoint { lat: 0.0, lon: 0.0 }.distance_m(GeoPoint { lat: 90.0, lon: 77.0 });
        assert!((quarter - DISTANCE_M_MAX / 2.0).abs() < 1e-3);
        let across =
            GeoPoint { lat: 0.0, lon: 179.9 }.distance_m(GeoPoint { lat: 0.0, lon: -179.9 });
        assert!((across - DISTANCE_M_MAX / 900.0).abs() < 1e-3);
    }

    #[test]
    fn one_place_has_no_distance_from_itself_however_it_is_written() {
        let place = |lat, lon| GeoPoint { lat, lon };
        for (a, b) in [
            (place(12.5, 180.0), place(12.5, -180.0)),
            (place(90.0, 55.0), place(90.0, -125.0)),
            (place(-90.0, 180.0), place(-90.0, 0.1)),
            (place(0.0, -0.0), place(-0.0, 0.0)),
        ] {
            assert_eq!(a.distance_m(b), 0.0, "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_farthest_point_of_a_rectangle_is_told_wherever_it_lies() {
        let from = GeoPoint { lat: 10.0, lon: 20.0 };
        let far = Rectangle { south: -5.0, north: 0.0, west: -150.0, east: -140.0 };
        let corner = from.distance_m(GeoPoint { lat: -5.0, lon: -150.0 });
        let told = far.distance_m_max(from);
        assert!((corner..=corner + 2_000.0).contains(&told), "{told} for {corner}");
    }

    proptest! {
        #[test]
        fn no_point_of_a_rectangle_is_nearer_or_farther_than_told(
            from in place(),
            (a, b) in (place(), place()),
            (x, y) in (0.0..=1.0f64, 0.0..=1.0f64),
        ) {
            let rectangle = Rectangle {
                south: a.lat.min(b.lat),
                north: a.lat.max(b.lat),
                west: a.lon.min(b.lon),
                east: a.lon.max(b.lon),
            };
            let inside = GeoPoint {
                lat: rectangle.south + x * (rectangle.north - rectangle.south),
                lon: rectangle.west + y * (rectangle.east - rectangle.west),
            };
            let distance = from.distance_m(inside);
            prop_assert!(rectangle.distance_m_min(from) <= distance + 1e-2);
            prop_assert!(rectangle.distance_m_max(from) >= distance - 1e-2);
        }

        #[test]
        fn a_circle_stays_within_its_bounds(center in place(), other in place(), slack in 0.0..=1e5f64) {
            let radius = center.distance_m(other) + slack + 1e-2;
            let bounds = bounds(center, radius);
            prop_assert!(bounds.south <= other.lat && other.lat <= bounds.north);
            let reached = [-360.0, 0.0, 360.0].into_iter().any(|turn| {
                (bounds.west..=bounds.east).contains(&(other.lon + turn))
            });
            prop_assert!(reached || other.lat.abs() == 90.0);
        }
    }
}
