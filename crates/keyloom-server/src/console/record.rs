//! One record: its JSON, its version, its counters, every key that it owns, and its past.

mod model;
mod view;

pub(super) use model::{Addressed, addressed};

use std::collections::BTreeMap;

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
    let counting = match counted(&mut visit, sent) {
        Ok(counting) => counting,
        Err(problem) => return visit.refuse(problem),
    };
    match added(&visit, &counting).await {
        Ok(url) => visit.go_on(Ok(url)),
        Err(problem) => {
            let once = visit.once(&problem);
            let page = model::record(&mut visit).await;
            visit.answer(page.map(|page| page.again(counting, once, &problem)))
        }
    }
}

/// The form of the counters, as typed.
#[derive(Default)]
struct Counting {
    /// The increments of the counters that the record shows.
    amounts: BTreeMap<String, String>,
    /// Another counter, and its increment.
    name: String,
    amount: String,
}

fn counted(visit: &mut Visit, sent: Result<Params, Problem>) -> Result<Counting, Problem> {
    let mut sent = sent?;
    let amounts = sent.take_all(|name| name.strip_prefix("add.").map(str::to_owned));
    let name = sent.take("name")?.unwrap_or_default();
    let amount = sent.take("amount")?.unwrap_or_default();
    visit.take_button(Ok(sent))?;
    Ok(Counting { amounts: amounts.into_iter().collect(), name, amount })
}

async fn added(visit: &Visit, counting: &Counting) -> Result<String, Problem> {
    let mut params = visit.params.clone();
    let addressed = addressed(visit, &mut params, Verb::Write).await?;
    params.finish()?;
    let deltas = counting.deltas()?;
    addressed.collection.increment(addressed.values.clone(), deltas).await?;
    Ok(visit.links.record_with(addressed.link(), "", [("notice", "counted")]))
}

impl Counting {
    fn deltas(&self) -> Result<Vec<(String, i64)>, Problem> {
        let mut deltas = Vec::new();
        for (name, text) in &self.amounts {
            deltas.extend(delta(name, text)?);
        }
        let another = delta(&self.name, &self.amount)?;
        match (self.name.trim(), another) {
            ("", Some(_)) => {
                return Err(Problem::invalid_request("say which counter the amount is added to"));
            }
            (name, None) if !name.is_empty() => {
                return Err(Problem::invalid_request(format!("say how much to add to {name}")));
            }
            (_, another) => deltas.extend(another),
        }
        match deltas.is_empty() {
            true => Err(Problem::invalid_request("say how much to add to which counter")),
            false => Ok(deltas),
        }
    }
}

/// The increment in a field of the form; `None` if it is empty.
fn delta(name: &str, text: &str) -> Result<Option<(String, i64)>, Problem> {
    match text.trim() {
        "" => Ok(None),
        text => match text.parse() {
            Ok(delta) => Ok(Some((name.trim().to_owned(), delta))),
            Err(_) => {
                let detail = format!("what is added to {name} must be a whole number");
                Err(Problem::invalid_request(detail).with("value", text))
            }
        },
    }
}
