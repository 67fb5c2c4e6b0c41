//! Records around a place.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use keyloom::Near;

use super::answer;
use super::asking::{equalities, page_size};
use super::names::Names;
use super::page_text::write;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/near", get(near))
}

/// `GET /near?lat=&lon=&radius_m=&index=&limit=&cursor=`
async fn near(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    mut params: Params,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let place = (finite(&mut params, "lat")?, finite(&mut params, "lon")?);
    let (Some(lat), Some(lon)) = place else {
        return Err(Problem::invalid_request("lat and lon say where, in degrees"));
    };
    let mut near = Near::new(lat, lon).take(page_size(&mut params, &app.config().limits)?);
    if let Some(radius_m) = finite(&mut params, "radius_m")? {
        near = near.within(radius_m);
    }
    if let Some(index) = params.take("index")? {
        near = near.index(&index);
    }
    if let Some(cursor) = params.take("cursor")? {
        near = near.from_cursor(cursor);
    }
    for (field, value) in equalities(&mut params, "where", &declaration)? {
        near = near.equal(&field, value);
    }
    params.finish()?;
    let page = collection.near_documents(&near).await?;
    let mut names = Names::new(&app, &path, &caller, &collection)?;
    Ok(answer::text(write(&page, &mut names).await?))
}

/// Takes a number that is one.
fn finite(params: &mut Params, name: &str) -> Result<Option<f64>, Problem> {
    match params.take_number::<f64>(name)? {
        Some(number) if !number.is_finite() => {
            Err(Problem::invalid_request(format!("the parameter {name} is no number")))
        }
        number => Ok(number),
    }
}
