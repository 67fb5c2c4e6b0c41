//! Exports records as JSON lines, all from one snapshot if the engine can pin one.

use std::collections::VecDeque;
use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream::unfold;
use keyloom::{Collection, Document, Query, Store};
use serde_json::{Value, json};

use super::moment::Moment;
use crate::api::routes::Routes;
use crate::app::App;
use crate::caller::Caller;
use crate::params::Params;
use crate::problem::Problem;

/// How many records one read asks for; each may have the largest size of a value.
const PAGE: usize = 64;

pub(in crate::api) fn routes() -> Routes {
    Routes::new().route("/export", get(export))
}

/// `GET /admin/export`
async fn export(
    State(app): State<App>,
    caller: Caller,
    mut params: Params,
) -> Result<Response, Problem> {
    let store = caller.admin()?;
    let named = params.take_all(|name| (name == "collection").then(|| name.to_owned()));
    let named: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
    let after = params.take("after")?;
    params.finish()?;
    let moment = Moment::hold(&app, store).await?;
    let mut query = Query::new().scan().take(PAGE);
    if let Some(after) = after {
        let Some(first) = named.first() else {
            let detail =
                "the parameter after is a key of a collection, and needs the parameter collection";
            return Err(Problem::invalid_request(detail));
        };
        query = query.after(moment.store.documents(first).await?.key_named(&after).await?);
    }
    let names = wanted(&moment.store, named).await?;
    let headers = moment.headers();
    let going = Going { moment, names, query, cursor: None, is_broken: false };
    let parts = unfold(going, |mut going| async { Some((going.next().await?, going)) });
    Ok((headers, CONTENT, Body::from_stream(parts)).into_response())
}

const CONTENT: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "application/jsonl"), (header::CACHE_CONTROL, "no-store")];

/// The named collections, each of which must exist, or all of them.
async fn wanted(store: &Store, named: Vec<String>) -> Result<VecDeque<String>, Problem> {
    if named.is_empty() {
        return Ok(store.schema().await?.collection_names().map(str::to_owned).collect());
    }
    let mut names: VecDeque<String> = VecDeque::new();
    for name in named {
        store.documents(&name).await?;
        if names.contains(&name) {
            let detail = "a collection is exported once, and was named twice";
            return Err(Problem::invalid_request(detail).with("collection", name));
        }
        names.push_back(name);
    }
    Ok(names)
}

/// An export in progress.
struct Going {
    moment: Moment,
    /// The collections that are left, the current one first.
    names: VecDeque<String>,
    /// The query of the current collection.
    query: Query,
    cursor: Option<String>,
    is_broken: bool,
}

impl Going {
    /// The next lines; `None` after the last. An export that breaks off ends with a line that says
    /// why, and then with an error, so that nobody takes it for complete.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.is_broken {
            return Some(Err(io::Error::other("the export broke off")));
        }
        let lines = match self.moment.check() {
            Ok(()) => self.page().await,
            Err(problem) => Err(problem),
        };
        match lines {
            Ok(lines) => lines.map(Ok),
            Err(problem) => {
                self.is_broken = true;
                Some(Ok(format!("{}\n", json!({"problem": problem.to_json()})).into()))
            }
        }
    }

    async fn page(&mut self) -> Result<Option<Bytes>, Problem> {
        let Some(name) = self.names.front().cloned() else { return Ok(None) };
        let collection = self.moment.store.documents(&name).await?;
        let mut query = self.query.clone();
        if let Some(cursor) = self.cursor.take() {
            query = query.from_cursor(cursor);
        }
        let page = collection.documents(&query).await?;
        let mut lines: Vec<(String, Value)> = Vec::with_capacity(page.records.len());
        for document in &page.records {
            lines.push((document.key.to_string(), line(&collection, document).await?));
        }
        for problem in page.problems {
            // The record's name, which a resumed export needs to continue after it. If the key does
            // not belong to the collection, it is given as it is.
            let key = collection.name_of(&problem.key).await;
            let key = key.unwrap_or_else(|_| problem.key.clone());
            let told = json!({"collection": name, "key": key, "problem": problem.reason});
            lines.push((problem.key, told));
        }
        lines.sort_by(|(one, _), (other, _)| one.cmp(other));
        match page.next {
            Some(next) => self.cursor = Some(next.to_string()),
            None => {
                self.names.pop_front();
                self.query = Query::new().scan().take(PAGE);
            }
        }
        let text: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
        Ok(Some(text.into()))
    }
}

/// One record, or the reason why it cannot be read.
async fn line(collection: &Collection<Value>, document: &Document) -> Result<Value, Problem> {
    let key = collection.name_of(&document.key).await?;
    Ok(match document.json() {
        Ok(record) if record.is_object() => json!({
            "collection": collection.name(),
            "key": key,
            "version": document.version.to_string(),
            "record": record,
        }),
        Ok(_) => json!({
            "collection": collection.name(), "key": key, "problem": "the record is no JSON object",
        }),
        Err(error) => json!({
            "collection": collection.name(), "key": key, "problem": error.to_string(),
        }),
    })
}
