//! Records near a place.

use std::ops::Bound::{self, Excluded, Included};
use std::ops::RangeBounds;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::{CollectionDeclaration, Near};

use super::asking::{budget, equalities, page_size};
use super::names::Names;
use super::page_text::write;
use super::{answer, weighed};
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::config::Limits;
use crate::guard::Arrival;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/near", get(near))
}

/// `GET /near?lat=&lon=&radius_m=&index=&limit=&read=&cursor=`
async fn near(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let near = asked(params, &declaration, &app.config().limits)?;
    let (asked, searched) = (&near, &collection);
    let read = |bytes| async move { searched.near_documents(&asked.clone().bytes(bytes)).await };
    let page = weighed::page(&app, &arrival, read).await?;
    let mut names = Names::new(&app, &path, &caller, &collection);
    Ok(answer::text(write(&page, &mut names).await?))
}

/// Parses all parameters of a search near a place.
pub(crate) fn asked(
    mut params: Params,
    declaration: &CollectionDeclaration,
    limits: &Limits,
) -> Result<Near, Problem> {
    let lat = (Included(-90.0), Included(90.0), "a latitude is -90 to 90 degrees");
    let lon = (Included(-180.0), Included(180.0), "a longitude is -180 to 180 degrees");
    let lat = number_in(&mut params, "lat", lat)?;
    let lon = number_in(&mut params, "lon", lon)?;
    let (Some(lat), Some(lon)) = (lat, lon) else {
        return Err(Problem::invalid_request("lat and lon say where, in degrees"));
    };
    let mut near = Near::new(lat, lon).take(page_size(&mut params, limits)?);
    near = near.limit(budget(&mut params, "read", limits)?);
    let radius = (Excluded(0.0), Included(f64::MAX), "a radius is more than 0 metres");
    if let Some(radius_m) = number_in(&mut params, "radius_m", radius)? {
        near = near.within(radius_m);
    }
    if let Some(index) = params.take("index")? {
        near = near.index(&index);
    }
    if let Some(cursor) = params.take("cursor")? {
        near = near.from_cursor(cursor);
    }
    for (field, value) in equalities(&mut params, "where", declaration)? {
        near = near.equal(&field, value);
    }
    params.finish()?;
    Ok(near)
}

/// Takes a number within bounds. The third part of these states them in words.
fn number_in(
    params: &mut Params,
    name: &'static str,
    (lower, upper, told): (Bound<f64>, Bound<f64>, &str),
) -> Result<Option<f64>, Problem> {
    match params.take_number::<f64>(name)? {
        Some(number) if !(lower, upper).contains(&number) => {
            let detail = format!("{told}, and {name} is {number}");
            Err(Problem::invalid_request(detail).with("value", number.to_string()))
        }
        number => Ok(number),
    }
}
