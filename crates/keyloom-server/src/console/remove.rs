//! Deletes a record, after asking for confirmation.

use axum::http::StatusCode;
use axum::response::Response;
use keyloom::{OwnedKind, Version};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;

use super::draw::{crumbs, json, visible};
use super::links::{Links, RecordName};
use super::once;
use super::page::{MenuItem, Page};
use super::record::addressed;
use super::visit::{Sent, Visit};
use crate::auth::Verb;
use crate::params::Params;
use crate::problem::Problem;

/// The page that asks.
#[derive(Serialize)]
struct RemovePage {
    collection: String,
    name: String,
    version: String,
    record: Value,
    /// How many keys are deleted with it.
    keys: u64,
    keeps_history: bool,
    /// Whether somebody changed the record after the visitor was asked.
    is_changed: bool,
}

/// `GET /collections/{collection}/record/delete?key=`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = asked(&mut visit).await;
    visit.answer(made)
}

/// `POST /collections/{collection}/record/delete?key=`
pub(super) async fn delete(mut visit: Visit, Sent(sent): Sent) -> Response {
    let made = match sent {
        Ok(sent) => deleted(&mut visit, sent).await,
        Err(problem) => Err(problem),
    };
    match made {
        Err(problem) if problem.kind() == "version-conflict" => {
            let asked = asked(&mut visit).await;
            visit.answer(asked.map(|page| RemovePage { is_changed: true, ..page }))
        }
        made => visit.go_on(made),
    }
}

async fn asked(visit: &mut Visit) -> Result<RemovePage, Problem> {
    let mut params = visit.params.clone();
    let addressed = addressed(visit, &mut params, Verb::Delete).await?;
    params.finish()?;
    let document = addressed.found().await?;
    let keys = addressed.collection.owned_keys(addressed.values.clone()).await?.unwrap_or_default();
    // The history of a record outlives it.
    let gone = keys.iter().filter(|owned| owned.kind != OwnedKind::History).count();
    let link = addressed.link();
    Ok(RemovePage {
        collection: link.collection.to_owned(),
        name: link.name.to_owned(),
        version: document.version.to_string(),
        record: document.json()?,
        keys: gone as u64,
        keeps_history: addressed.declared.history.is_some(),
        is_changed: false,
    })
}

async fn deleted(visit: &mut Visit, mut sent: Params) -> Result<String, Problem> {
    let missing = || Problem::invalid_request("the form did not say which version it deletes");
    let version: Version = sent.take("version")?.ok_or_else(missing)?.parse()?;
    visit.take_button(Ok(sent))?;
    let mut params = visit.params.clone();
    let addressed = addressed(visit, &mut params, Verb::Delete).await?;
    params.finish()?;
    addressed.collection.delete_if(addressed.values.clone(), version).await?;
    let path = Links::collection_path(addressed.collection.name());
    Ok(visit.links.to(&path, [("notice", "deleted")]))
}

impl Page for RemovePage {
    fn title(&self) -> String {
        format!("Delete {} · {}", visible(&self.name), self.collection)
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Collection(&self.collection)
    }

    fn status(&self) -> StatusCode {
        if self.is_changed { StatusCode::CONFLICT } else { StatusCode::OK }
    }

    fn view(&self, links: &Links) -> Markup {
        let name = visible(&self.name);
        let link = RecordName { collection: &self.collection, name: &self.name, owner: None };
        html! {
            (crumbs(&[
                ("Overview", Some(links.overview())),
                (&self.collection, Some(links.collection(&self.collection))),
                (&name, Some(links.record(link, ""))),
                ("Delete", None),
            ]))
            h1 { "Delete " span.mono { (name) } "?" }
            @if self.is_changed {
                p.notice.bad role="alert" {
                    strong { "Somebody else changed this record meanwhile." }
                    " Nothing was deleted. Below is the record as it is now."
                }
            }
            div.notice.warn {
                p {
                    @match self.keys {
                        1 => "The record goes, which is one key. ",
                        keys => { "The record goes with all its " strong { (keys) " keys" } ". " }
                    }
                    @if self.keeps_history { "Its history stays as long as the schema keeps it." }
                    @else { "This cannot be undone." }
                }
            }
            form.actions method="post" action=(links.record(link, "/delete")) {
                (once::field(None))
                input type="hidden" name="version" value=(self.version);
                button.danger { "Delete the record" }
                a.button.quiet href=(links.record(link, "")) { "Keep it" }
            }
            (json(&self.record))
        }
    }
}
