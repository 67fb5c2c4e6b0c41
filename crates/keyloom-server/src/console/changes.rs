//! The newest commits of the log, if the space keeps one.

use axum::response::Response;
use keyloom::{Became, ErrorKind, Logged, Position, Store};
use maud::{Markup, html};
use serde::Serialize;
use std::collections::BTreeMap;

use super::draw::{badge, count, crumbs, key, time, visible};
use super::links::{Links, RecordName};
use super::page::{MenuItem, Page};
use super::visit::Visit;
use crate::problem::Problem;

/// How many commits a page has.
const COMMITS: u64 = 50;

/// The page.
#[derive(Serialize)]
struct ChangesPage {
    /// The part of the log that is kept; `None` if there is no log.
    log: Option<Log>,
}

/// A part of the log, newest first.
#[derive(Serialize)]
struct Log {
    oldest: u64,
    next: u64,
    commits: Vec<Commit>,
    /// Older commits are those before this position.
    before: Option<u64>,
}

/// One commit.
#[derive(Serialize)]
struct Commit {
    position: u64,
    at_ms: u64,
    by: Option<String>,
    is_schema_change: bool,
    changes: Vec<Changed>,
}

/// One record of a commit.
#[derive(Serialize)]
struct Changed {
    collection: String,
    key: String,
    /// Its name; `None` if the key does not tell it.
    name: Option<String>,
    became: &'static str,
    increments: BTreeMap<String, i64>,
}

/// `GET /changes?before=`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model(&mut visit).await;
    visit.answer(made)
}

async fn model(visit: &mut Visit) -> Result<ChangesPage, Problem> {
    let mut params = visit.take_params();
    let before: Option<u64> = params.take_number("before")?;
    params.finish()?;
    let store = visit.caller.admin()?;
    let bounds = match store.log_bounds().await {
        Ok(bounds) => bounds,
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return Ok(ChangesPage { log: None });
        }
        Err(error) => return Err(error.into()),
    };
    let (oldest, next) = (bounds.oldest.number(), bounds.next.number());
    let end = before.unwrap_or(next).clamp(oldest, next);
    let start = end.saturating_sub(COMMITS).max(oldest);
    let mut commits = Vec::new();
    let from = Position::from_number(start).filter(|_| start < end);
    if let Some(from) = from {
        let wanted = usize::try_from(end - start).unwrap_or(1);
        for logged in store.changes(from, wanted).await?.commits.into_iter().rev() {
            commits.push(commit(store, logged).await);
        }
    }
    let before = (start > oldest).then_some(start);
    Ok(ChangesPage { log: Some(Log { oldest, next, commits, before }) })
}

async fn commit(store: &Store, logged: Logged) -> Commit {
    let mut changes = Vec::new();
    for change in logged.changes {
        let became = match (&change.became, &change.before) {
            (Became::Written(_), None) => "created",
            (Became::Written(_), Some(_)) => "updated",
            (Became::Deleted, _) => "deleted",
            (Became::Untouched, _) => "counted",
        };
        // The schema may have changed since; the key may then have no name.
        let name = match store.documents(&change.collection).await {
            Ok(collection) => collection.name_of(&change.key).await.ok(),
            Err(_) => None,
        };
        let (collection, key) = (change.collection, change.key);
        changes.push(Changed { collection, key, name, became, increments: change.increments });
    }
    Commit {
        position: logged.position.number(),
        at_ms: logged.at,
        by: logged.by,
        is_schema_change: logged.is_schema_change,
        changes,
    }
}

impl Page for ChangesPage {
    fn title(&self) -> String {
        "Changes".to_owned()
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Changes
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            (crumbs(&[("Overview", Some(links.overview())), ("Changes", None)]))
            h1 { "Changes" }
            @match &self.log {
                None => div.empty {
                    p { strong { "This space keeps no log." } }
                    p { "Declare " code { "[log]" } " in its schema to keep every commit from then on." }
                },
                Some(log) if log.commits.is_empty() => div.empty {
                    p { strong { "Nothing was logged yet." } " Commits show up here." }
                },
                Some(log) => (log.view(links)),
            }
        }
    }
}

impl Log {
    fn view(&self, links: &Links) -> Markup {
        html! {
            p.lead {
                "Newest first. The log keeps positions " (count(self.oldest)) " to "
                (count(self.next.saturating_sub(1))) "."
            }
            div.scroll {
                table.log {
                    thead {
                        tr {
                            th.number scope="col" { "Position" } th scope="col" { "Time" }
                            th scope="col" { "By" } th scope="col" { "What changed" }
                        }
                    }
                    tbody {
                        @for commit in &self.commits {
                            tr {
                                th.number scope="row" { (count(commit.position)) }
                                td { (time(commit.at_ms)) }
                                td.mono { @match &commit.by { Some(by) => (visible(by)), None => span.muted { "program" } } }
                                td { (commit.changes(links)) }
                            }
                        }
                    }
                }
            }
            nav.pager aria-label="Pages" {
                @if let Some(before) = self.before {
                    a.button.quiet rel="next" href=(links.to("/changes", [("before", before.to_string().as_str())])) { "Older" }
                }
            }
        }
    }
}

impl Commit {
    fn changes(&self, links: &Links) -> Markup {
        html! {
            ul.plain {
                @if self.is_schema_change { li { (badge("schema", "warn")) " the schema, or the state of an index" } }
                @for change in &self.changes {
                    li {
                        (badge(change.became, change.tone())) " " (change.collection) " "
                        @match &change.name {
                            Some(name) => {
                                @let link = RecordName { collection: &change.collection, name, owner: None };
                                a href=(links.record(link, "")) { (key(name)) }
                            }
                            None => (key(&change.key)),
                        }
                        @for (counter, delta) in &change.increments {
                            " " span.mono { (visible(counter)) " " (format!("{delta:+}")) }
                        }
                    }
                }
                @if self.changes.is_empty() && !self.is_schema_change { li.muted { "plain keys, or a build" } }
            }
        }
    }
}

impl Changed {
    fn tone(&self) -> &'static str {
        match self.became {
            "created" => "good",
            "deleted" => "bad",
            _ => "",
        }
    }
}
