//! Draws the form of a record.

use axum::http::StatusCode;
use maud::{Markup, html};

use super::{Conflict, EditPage};
use crate::console::differences;
use crate::console::draw::{crumbs, json, visible};
use crate::console::links::{Links, RecordName};
use crate::console::once;
use crate::console::page::{MenuItem, Page};

impl Page for EditPage {
    fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("Edit {} · {}", visible(name), self.collection),
            None => format!("New record · {}", self.collection),
        }
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Collection(&self.collection)
    }

    fn status(&self) -> StatusCode {
        self.status
    }

    fn view(&self, links: &Links) -> Markup {
        let collection = links.collection(&self.collection);
        html! {
            @match &self.name {
                Some(name) => {
                    @let name = visible(name);
                    (crumbs(&[
                        ("Overview", Some(links.overview())),
                        (&self.collection, Some(collection)),
                        (&name, self.link().map(|it| links.record(it, ""))),
                        ("Edit", None),
                    ]))
                    h1 { "Edit " span.mono { (name) } }
                }
                None => {
                    (crumbs(&[
                        ("Overview", Some(links.overview())),
                        (&self.collection, Some(collection)),
                        ("New record", None),
                    ]))
                    h1 { "New record of " span.mono { (self.collection) } }
                }
            }
            @if let Some(problem) = &self.problem { (problem.view()) }
            @match &self.conflict {
                Some(conflict) => (self.decide(conflict, links)),
                None => (self.form(links)),
            }
        }
    }
}

impl EditPage {
    fn link(&self) -> Option<RecordName<'_>> {
        let name = self.name.as_deref()?;
        Some(RecordName { collection: &self.collection, name, owner: None })
    }

    /// The target of the form.
    fn action(&self, links: &Links) -> String {
        match self.link() {
            Some(link) => links.record(link, "/edit"),
            None => links.new_record(&self.collection),
        }
    }

    /// The page to go back to without saving.
    fn way_back(&self, links: &Links) -> String {
        match self.link() {
            Some(link) => links.record(link, ""),
            None => links.collection(&self.collection),
        }
    }

    fn form(&self, links: &Links) -> Markup {
        html! {
            form.editor method="post" action=(self.action(links)) {
                (self.hidden())
                label for="text" { "Record as JSON" }
                (self.area(&self.text))
                @if !self.generated.is_empty() {
                    p.muted {
                        "What you leave out of " span.mono { (self.generated.join(", ")) }
                        " is made up for you."
                    }
                }
                @if !self.counters.is_empty() {
                    p.muted {
                        "Counters (" span.mono { (self.counters.join(", ")) }
                        ") are not part of the text. Add to them on the record's page."
                    }
                }
                p.actions {
                    button { @if self.name.is_some() { "Save" } @else { "Insert" } }
                    " " a.button.quiet href=(self.way_back(links)) { "Cancel" }
                }
            }
        }
    }

    /// The version that the next attempt replaces, and the key that distinguishes attempts.
    fn hidden(&self) -> Markup {
        html! {
            (once::field(self.once.as_deref()))
            @if let Some(version) = &self.version {
                input type="hidden" name="version" value=(version);
                input type="hidden" name="base" value=(self.base);
            }
        }
    }

    fn area(&self, text: &str) -> Markup {
        let rows = text.lines().count().clamp(8, 30);
        html! {
            // HTML parsers drop the first line break of a text area, so an extra one is added.
            textarea #text name="text" rows=(rows) spellcheck="false" autocomplete="off"
                autocapitalize="off" { "\n" (text) }
        }
    }

    fn decide(&self, conflict: &Conflict, links: &Links) -> Markup {
        html! {
            div.notice.warn role="alert" {
                p { strong { "Somebody else changed this record while you did." } }
                p { "Nothing was saved. Compare, then choose." }
            }
            section aria-labelledby="difference" {
                h2 #difference { "The difference" }
                @if conflict.differences.is_empty() {
                    p { "Both say the same." }
                } @else {
                    (differences::table(&conflict.differences, ["Theirs, in the store", "Yours"]))
                }
            }
            form.editor method="post" action=(self.action(links)) {
                (self.hidden())
                div.split.even {
                    section aria-labelledby="theirs" {
                        h2 #theirs { "Theirs" }
                        (json(&conflict.theirs))
                        p.actions {
                            a.button.quiet href=(self.way_back(links)) { "Keep theirs" }
                        }
                    }
                    section aria-labelledby="yours" {
                        h2 #yours { label for="text" { "Yours" } }
                        (self.area(&self.text))
                        p.actions {
                            button name="choice" value="yours" { "Save yours over theirs" }
                        }
                    }
                }
                @if let Some(merged) = &conflict.merged {
                    section aria-labelledby="both" {
                        h2 #both { label for="merged" { "Both: theirs with your changes" } }
                        textarea #merged name="merged" spellcheck="false" autocomplete="off"
                            rows=(merged.lines().count().clamp(4, 30)) { "\n" (merged) }
                        p.actions {
                            button name="choice" value="merged" { "Save both" }
                        }
                    }
                }
            }
        }
    }
}
