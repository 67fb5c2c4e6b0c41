//! Pages of records.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::names::Names;
use super::page_text::write;
use super::{answer, asking};
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

/// `GET /records?…`
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    params: Params,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let asked = asking::page(params, &declaration, &app.config().limits)?;
    if asked.is_explain {
        return Ok(answer::json(&json!({ "plan": collection.explain(&asked.query).await? })));
    }
    let mut names = Names::new(&app, &path, &caller, &collection)?;
    let text = match asked.is_keys_only {
        true => write(&collection.keys(&asked.query).await?, &mut names).await?,
        false => write(&collection.documents(&asked.query).await?, &mut names).await?,
    };
    Ok(answer::text(text))
}
