//! Draws the page of a record.

use axum::http::StatusCode;
use keyloom::HistoryKind;
use maud::{Markup, html};
use serde_json::Value;

use super::model::{Found, History, Owned, PastVersion, RecordPage};
use crate::console::differences;
use crate::console::draw::{self, badge, count, crumbs, json, key, time, visible};
use crate::console::links::{Links, RecordName};
use crate::console::once;
use crate::console::page::{MenuItem, Page};

/// The most characters of a value in the table of keys.
const VALUE_CHARS_MAX: usize = 160;

impl RecordPage {
    fn link(&self) -> RecordName<'_> {
        let owner = self.owner.as_deref();
        RecordName { collection: &self.collection, name: &self.name, owner }
    }
}

impl Page for RecordPage {
    fn title(&self) -> String {
        format!("{} · {}", visible(&self.name), self.collection)
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Collection(&self.collection)
    }

    fn status(&self) -> StatusCode {
        self.status
    }

    fn view(&self, links: &Links) -> Markup {
        let name = visible(&self.name);
        html! {
            (crumbs(&[
                ("Overview", Some(links.overview())),
                (&self.collection, Some(links.collection(&self.collection))),
                (&name, None),
            ]))
            h1.mono { (name) }
            @if let Some(done) = self.notice.as_deref().and_then(done) {
                p.notice.good role="status" { (done) }
            }
            @if let Some(problem) = &self.problem { (problem.view()) }
            @match &self.found {
                Some(found) => (self.present(found, links)),
                None => div.empty {
                    p { strong { "The record is gone. " } "What is left is its history, below." }
                },
            }
            @if let Some(history) = &self.history { (self.past(history, links)) }
        }
    }
}

/// What a visitor did, always in our own words.
fn done(notice: &str) -> Option<&'static str> {
    match notice {
        "saved" => Some("The record was saved."),
        "same" => Some("Nothing was changed, and so nothing was written."),
        "inserted" => Some("The record was made."),
        "counted" => Some("The counters were changed."),
        _ => None,
    }
}

impl RecordPage {
    fn present(&self, found: &Found, links: &Links) -> Markup {
        html! {
            div.actions {
                @if self.may_write {
                    a.button href=(links.record(self.link(), "/edit")) { "Edit" }
                }
                @if self.may_delete {
                    a.button.quiet href=(links.record(self.link(), "/delete")) { "Delete…" }
                }
            }
            div.split {
                section aria-labelledby="record" {
                    h2 #record { "Record" }
                    (json(&found.record))
                }
                aside {
                    h2 { "Facts" }
                    dl.facts.stacked {
                        div { dt { "Stored at" } dd { (key(&found.stored_at)) } }
                        @if let Some(owner) = &self.owner {
                            div { dt { "Owner" } dd.mono { (visible(owner)) } }
                        }
                        div { dt { "Revision" } dd { (count(found.revision)) } }
                        div { dt { "Version" } dd.mono { (found.version) } }
                        div { dt { "Size" } dd { (draw::bytes(found.bytes)) } }
                        div { dt { "Keys" } dd { (count(found.keys.len() as u64)) } }
                    }
                    @if !found.counters.is_empty() || !found.counter_families.is_empty() {
                        (self.counters(found, links))
                    }
                }
            }
            (self.keys(&found.keys, links))
        }
    }

    fn counters(&self, found: &Found, links: &Links) -> Markup {
        html! {
            h2 { "Counters" }
            @if found.counters.is_empty() { p.muted { "Nothing was counted yet." } }
            form method="post" action=(links.record(self.link(), "/increment")) {
                (once::field(self.once.as_deref()))
                table.counters {
                    thead {
                        tr {
                            th scope="col" { "Counter" } th.number scope="col" { "Value" }
                            @if self.may_write { th scope="col" { "Add" } }
                        }
                    }
                    tbody {
                        @for (at, (name, value)) in found.counters.iter().enumerate() {
                            tr {
                                th.mono scope="row" { label for={ "add-" (at) } { (visible(name)) } }
                                td.number { (value) }
                                @if self.may_write {
                                    td { input #{ "add-" (at) } name={ "add." (name) } size="6"
                                        value=[self.counting.amounts.get(name)]
                                        inputmode="numeric" autocomplete="off"; }
                                }
                            }
                        }
                    }
                }
                @if self.may_write {
                    @if let Some(family) = found.counter_families.first() {
                        p.row {
                            label for="counter-name" { "Another" }
                            input #counter-name name="name" placeholder={ (family) "name" } size="14"
                                value=(self.counting.name) autocomplete="off";
                            label for="counter-amount" { "add" }
                            input #counter-amount name="amount" size="6" inputmode="numeric"
                                value=(self.counting.amount) autocomplete="off";
                        }
                    }
                    button { "Add to counters" }
                }
            }
        }
    }

    fn keys(&self, keys: &[Owned], links: &Links) -> Markup {
        let absent = keys.iter().filter(|owned| !owned.is_present).count();
        html! {
            section aria-labelledby="keys" {
                h2 #keys { "Every key that it owns" }
                @if absent > 0 {
                    p.notice.bad role="alert" {
                        (absent) " of them " @if absent == 1 { "is" } @else { "are" }
                        " not in the store, or hold" @if absent == 1 { "s" } " something else. "
                        a href=(links.to("/verify", [])) { "Verify and repair" } "."
                    }
                }
                div.scroll {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Kind" } th scope="col" { "Area" }
                                th scope="col" { "Key" } th scope="col" { "Value" }
                                th scope="col" { "In the store" }
                            }
                        }
                        tbody { @for owned in keys { (self.owned(owned, links)) } }
                    }
                }
            }
        }
    }

    fn owned(&self, owned: &Owned, links: &Links) -> Markup {
        html! {
            tr {
                td {
                    (owned.kind)
                    @if let Some(index) = &owned.index {
                        " " a href=(links.index(&self.collection, index)) { (index) }
                    }
                }
                td.mono { @if owned.area.is_empty() { span.muted { "default" } } @else { (owned.area) } }
                td { (key(&owned.key)) }
                td.mono.value { (draw::json_line(&Value::from(owned.value.as_str()), VALUE_CHARS_MAX)) }
                td { @if owned.is_present { (badge("present", "good")) } @else { (badge("missing", "bad")) } }
            }
        }
    }

    fn past(&self, history: &History, links: &Links) -> Markup {
        let to = |cursor: &str| links.record_with(self.link(), "", [("cursor", cursor)]);
        html! {
            section aria-labelledby="history" {
                h2 #history { "History" }
                @for problem in &history.problems { p.notice.bad { (problem) } }
                ol.history { @for version in &history.versions { li { (one_version(version)) } } }
                nav.pager aria-label="Versions" {
                    @if let Some(cursor) = &history.previous { a.button.quiet href=(to(cursor)) { "Newer" } }
                    @if let Some(cursor) = &history.next { a.button.quiet href=(to(cursor)) { "Older" } }
                }
            }
        }
    }
}

fn one_version(version: &PastVersion) -> Markup {
    let (word, tone) = match version.kind {
        HistoryKind::Created => ("created", "good"),
        HistoryKind::Updated => ("updated", ""),
        HistoryKind::Renamed => ("renamed", "warn"),
        HistoryKind::Deleted => ("deleted", "bad"),
        HistoryKind::Expired => ("expired", "bad"),
        _ => ("changed", ""),
    };
    html! {
        p {
            (badge(word, tone)) " " strong { "revision " (count(version.revision)) } " "
            (time(version.at_ms))
            @if let Some(by) = &version.by { " by " span.mono { (visible(by)) } }
            @if let Some(from) = &version.renamed_from { " from " (key(from)) }
        }
        @if !version.changes.is_empty() { (differences::table(&version.changes, ["Before", "After"])) }
        @if let Some(record) = &version.record {
            details { summary { "The record as it was then" } (json(record)) }
        }
    }
}
