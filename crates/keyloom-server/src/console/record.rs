//! One record: its JSON, its version, its counters, every key that it owns, and its past.

mod model;
mod view;

pub(super) use model::{Addressed, addressed};

use axum::response::Response;

use super::visit::{Sent, Visit};
use crate::auth::Verb;
use crate::params::Params;
use crate::problem::Problem;

/// `GET /collections/{collection}/record?key=`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model::record(&mut visit).await;
    visit.answer(made)
}

/// `POST /collections/{collection}/record/increment?key=`
pub(super) async fn increment(mut visit: Visit, Sent(sent): Sent) -> Response {
    let made = match sent {
        Ok(sent) => added(&mut visit, sent).await,
        Err(problem) => Err(problem),
    };
    visit.go_on(made)
}

async fn added(visit: &mut Visit, mut sent: Params) -> Result<String, Problem> {
    let mut params = visit.take_params();
    let addressed = addressed(visit, &mut params, Verb::Write).await?;
    params.finish()?;
    let mut deltas = Vec::new();
    let named = |name: &str| name.strip_prefix("add.").map(str::to_owned);
    for (name, text) in sent.take_all(named) {
        deltas.extend(delta(name, &text)?);
    }
    let name = sent.take("name")?.unwrap_or_default();
    let amount = sent.take("amount")?.unwrap_or_default();
    if !name.is_empty() {
        deltas.extend(delta(name, &amount)?);
    }
    sent.finish()?;
    if deltas.is_empty() {
        return Err(Problem::invalid_request("say how much to add to which counter"));
    }
    addressed.collection.increment(addressed.values.clone(), deltas).await?;
    Ok(visit.links.record_with(addressed.link(), "", [("notice", "counted")]))
}

/// What a field of the form adds; nothing where it was left empty.
fn delta(name: String, text: &str) -> Result<Option<(String, i64)>, Problem> {
    match text.trim() {
        "" => Ok(None),
        text => match text.parse() {
            Ok(delta) => Ok(Some((name, delta))),
            Err(_) => {
                let detail = format!("what is added to {name} must be a whole number");
                Err(Problem::invalid_request(detail).with("value", text))
            }
        },
    }
}
