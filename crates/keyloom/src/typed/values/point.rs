//! Places on Earth.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A place on Earth, in degrees: `{"lat": 52.52, "lon": 13.4}` in JSON.
///
/// ```
/// use keyloom::Point;
///
/// let berlin = Point { lat: 52.52, lon: 13.4 };
/// assert_eq!(Point::from((52.52, 13.4)), berlin);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The latitude, from -90 to 90.
    pub lat: f64,
    /// The longitude, from -180 to 180.
    pub lon: f64,
}

/// Latitude and longitude, in this order.
impl From<(f64, f64)> for Point {
    fn from((lat, lon): (f64, f64)) -> Self {
        Point { lat, lon }
    }
}

impl From<Point> for Value {
    fn from(point: Point) -> Self {
        json!({ "lat": point.lat, "lon": point.lon })
    }
}
