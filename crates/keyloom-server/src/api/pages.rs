//! Pages of records.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use keyloom::Page;
use serde_json::json;

use super::kept_pages::Question;
use super::names::Names;
use super::page_text::{Shown, write};
use super::{answer, asking, weighed};
use crate::app::App;
use crate::auth::Verb;
use crate::caller::Caller;
use crate::guard::Arrival;
use crate::params::Params;
use crate::path::PathParts;
use crate::problem::Problem;

/// `GET /records?…`
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    let question = Question::new(arrival.uri(), caller.user.as_deref());
    // The collection's declaration decides whether a caller who names no user may have the page.
    let is_allowed = caller.may_read(path.get("collection")) && !caller.lacks_user();
    if is_allowed && let Some(text) = app.kept_pages().find(&question).await {
        return Ok(answer::text(text));
    }
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let asked = asking::page(Params::of(arrival.uri())?, &declaration, &app.config().limits)?;
    let names = Names::new(&app, &path, &caller, &collection);
    let collection = &collection;
    let query = &|bytes| asked.query.clone().bytes(bytes);
    Ok(answer::text(match asked.is_keys_only {
        true => {
            let read = |bytes| async move { collection.keys(&query(bytes)).await };
            written(&app, question, weighed::page(&app, &arrival, read).await?, names).await?
        }
        false => {
            let read = |bytes| async move { collection.documents(&query(bytes)).await };
            written(&app, question, weighed::page(&app, &arrival, read).await?, names).await?
        }
    }))
}

/// `GET /explain?…`: how the page with the same parameters would be read.
pub(super) async fn explain(
    State(app): State<App>,
    caller: Caller,
    path: PathParts,
    Extension(arrival): Extension<Arrival>,
) -> Result<Response, Problem> {
    let collection = caller.collection(Verb::Read, path.get("collection")).await?;
    let declaration = collection.declaration().await?;
    let asked = asking::page(Params::of(arrival.uri())?, &declaration, &app.config().limits)?;
    Ok(answer::json(&json!({ "plan": collection.explain(&asked.query).await? })))
}

/// Renders a page, and caches it for the next caller with the same question.
async fn written(
    app: &App,
    question: Question,
    page: Page<impl Shown>,
    mut names: Names<'_>,
) -> Result<Bytes, Problem> {
    let text = Bytes::from(write(&page, &mut names).await?);
    app.kept_pages().keep(question, &text, page.freshness);
    Ok(text)
}
