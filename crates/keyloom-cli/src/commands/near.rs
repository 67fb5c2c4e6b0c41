//! `keyloom near`: records near a place.

use clap::Args;

use super::query::print;
use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::fields::Fields;
use crate::numbers;
use crate::output::Screen;
use crate::pages::Paging;
use crate::target::{Request, Target};

/// List records around a place, nearest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Near {
    /// The collection
    collection: String,
    /// The latitude, in degrees
    #[arg(value_parser = numbers::degrees)]
    lat: f64,
    /// The longitude, in degrees
    #[arg(value_parser = numbers::degrees)]
    lon: f64,
    /// The largest distance: 500, 500m, 2.5km
    #[arg(long, value_name = "DISTANCE", default_value = "1km", value_parser = metres)]
    radius: f64,
    /// The geo index, if the collection has several
    #[arg(long, value_name = "NAME")]
    index: Option<String>,
    /// Read at most this many entries of the index for a page
    #[arg(long, value_name = "N", value_parser = numbers::count)]
    read: Option<usize>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    paging: Paging,
}

const EXAMPLES: &str = "\
Examples:
  keyloom near location 52.52 13.405 --radius 2km
  keyloom near location -33.86 151.21 --radius 500 --limit 5 --json

The distance is exact, also across the poles and the 180th meridian.";

impl Near {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        let request = Request::get(&["collections", &self.collection, "near"])
            .param("lat", self.lat)
            .param("lon", self.lon)
            .param("radius_m", self.radius)
            .param_if("index", self.index.as_ref())
            .param_if("read", self.read);
        let target = Target::open(place)?;
        let screen = Screen::of(place);
        self.paging.read(&target, screen, &request, "records", |items| {
            print(&target, screen, &self.collection, &self.fields, items)
        })
    }
}

/// A distance in metres.
fn metres(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix("km") {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('m').unwrap_or(text), 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number * unit),
        _ => Err(format!("{text:?} is no distance; as in 500, 500m or 2.5km")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_units() {
        assert_eq!(metres("500"), Ok(500.0));
        assert_eq!(metres("500m"), Ok(500.0));
        assert_eq!(metres("2.5km"), Ok(2500.0));
        for wrong in ["", "km", "-1", "1 mile", "inf", "NaN"] {
            assert!(metres(wrong).is_err(), "{wrong}");
        }
    }
}
