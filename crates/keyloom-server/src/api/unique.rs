//! Records by their unique values.

use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use axum::routing::get;
use keyloom::CollectionDeclaration;
use serde_json::Value;

use super::answer::{RecordText, Validator, with_path};
use super::names::Names;
use super::records::missing;
use super::template::fields_of;
use super::typed::value_of;
use crate::api::routes::Routes;
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::{PathParts, decode};
use crate::problem::Problem;

pub(in crate::api) fn routes() -> Routes {
    Routes::new()
        .route("/unique/{index}/", get(look_up))
        .route("/unique/{index}/{*values}", get(look_up))
}

/// `GET /unique/{index}/{value}/{value…}`
async fn look_up(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    params.finish()?;
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let index = path.get("index");
    let values = values_of(&declaration, index, &parts_behind_index(uri.path(), &path)?)?;
    let document = collection.get_document_by(index, values).await?.ok_or_else(missing)?;
    let own = Names::new(&app, &path, &caller, &collection).path(&document.key).await?;
    let answer =
        RecordText::of(document)?.into_conditional(&headers, Validator::of(&declaration))?;
    Ok(with_path(answer, header::CONTENT_LOCATION, own))
}

/// The parts of a path after `/unique/{index}/`, split before they are decoded.
fn parts_behind_index(path: &str, parts: &PathParts) -> Result<Vec<String>, Problem> {
    // `/v1/collections/{collection}/unique/{index}/`, possibly after `/s/{space}`.
    let before = if parts.find("space").is_some() { 8 } else { 6 };
    let behind = path.splitn(before + 1, '/').nth(before).unwrap_or_default();
    behind.split('/').map(decode).collect()
}

/// The values of an index, each parsed as its field requires. An acting user may omit the owner,
/// which is the first of them.
fn values_of(
    declaration: &CollectionDeclaration,
    index: &str,
    texts: &[String],
) -> Result<Vec<Value>, Problem> {
    let key = declaration.unique.get(index).map_or("", |index| &index.key);
    let fields = fields_of(key);
    let left_out = fields.len().saturating_sub(texts.len());
    let mut fields = fields.into_iter().skip(left_out);
    let value = |text: &String| {
        // The library reports an undeclared index, and more values than fields.
        let Some(field) = fields.next() else { return Ok(text.as_str().into()) };
        value_of(declaration, field, text).map_err(|reason| {
            Problem::invalid_request(format!("the value of {field} does not fit: {reason}"))
                .with("field", field)
                .with("value", text.as_str())
        })
    };
    texts.iter().map(value).collect()
}
