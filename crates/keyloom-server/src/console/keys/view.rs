//! Draws the keyspace.

use maud::{Markup, html};

use super::{Here, KeysPage, Twig, key_text};
use crate::console::draw::{at_least, badge, bars, bytes, count, json, key, visible};
use crate::console::links::{Links, RecordName};
use crate::console::page::{MenuItem, Page};

/// The characters that end a level of the tree.
const SEPARATORS: &[u8] = b":_/|#";

impl Page for KeysPage {
    fn title(&self) -> String {
        match self.prefix.as_str() {
            "" => "Keys".to_owned(),
            prefix => format!("{} · Keys", visible(prefix)),
        }
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Keys
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            (self.way(links))
            h1 { "Keys" }
            p.lead { "Everything as it lies in the store, level by level: records, entries, and what Keyloom keeps for itself." }
            (self.form(links))
            @if let Some(here) = &self.key { (lying(here, links)) }
            @if !self.branches.is_empty() { (self.tree(links)) }
            @else if self.key.is_none() {
                div.empty {
                    p {
                        strong { "No key begins with this" }
                        @if !self.area.is_empty() { " in the area " span.mono { (self.area) } } "."
                    }
                    p { a href=(links.keys("", "")) { "Begin at the root" } }
                }
            }
        }
    }
}

impl KeysPage {
    /// The levels above, each with a link.
    fn way(&self, links: &Links) -> Markup {
        let mut levels = Vec::new();
        let mut end = 0;
        for level in self.prefix_bytes.split_inclusive(|byte| SEPARATORS.contains(byte)) {
            end += level.len();
            levels.push((key_text(level), self.prefix_bytes.get(..end).unwrap_or_default()));
        }
        let area = if self.area.is_empty() { "default area" } else { &self.area };
        html! {
            nav.crumbs.tight aria-label="Breadcrumb" {
                ol {
                    li { a href=(links.overview()) { "Overview" } }
                    li { a href=(links.keys(&self.area, "")) { (area) } }
                    @for (level, prefix) in levels {
                        li.mono {
                            @if prefix == self.prefix_bytes { span aria-current="page" { (visible(&level)) } }
                            @else { a href=(links.keys(&self.area, prefix)) { (visible(&level)) } }
                        }
                    }
                }
            }
        }
    }

    fn form(&self, links: &Links) -> Markup {
        // A form can only send text, so any other prefix is only displayed.
        let text = std::str::from_utf8(&self.prefix_bytes).ok();
        html! {
            form.row action=(links.bare("/keys")) {
                label for="area" { "Area" }
                select #area name="area" data-submit="" {
                    @for area in &self.areas {
                        option value=(area) selected[*area == self.area] {
                            @if area.is_empty() { "default" } @else { (area) }
                            @if area == "~" { " (Keyloom's own)" }
                        }
                    }
                }
                label for="prefix" { "Prefix" }
                input.wide.mono #prefix name="prefix" value=[text] placeholder=(self.prefix)
                    autocomplete="off" spellcheck="false";
                button { "Show" }
            }
        }
    }

    fn tree(&self, links: &Links) -> Markup {
        let largest = self.branches.iter().map(|twig| twig.bytes).max().unwrap_or(0);
        html! {
            section aria-labelledby="below" {
                h2 #below {
                    @if self.prefix.is_empty() { "The first level" } @else { "Below " (key(&self.prefix)) }
                }
                div.scroll.fit {
                    table.tree {
                        thead {
                            tr {
                                th scope="col" { "Level" } th.number scope="col" { "Keys" }
                                th.number scope="col" { "Size" } th scope="col" aria-label="Share" {}
                            }
                        }
                        tbody { @for twig in &self.branches { (self.row(twig, largest, links)) } }
                    }
                }
                @if let Some(after) = &self.after_bytes {
                    nav.pager aria-label="Levels" {
                        @let more = links.keys_after(&self.area, &self.prefix_bytes, after);
                        a.button.quiet rel="next" href=(more) { "More" }
                    }
                }
            }
        }
    }

    fn row(&self, twig: &Twig, largest: u64, links: &Links) -> Markup {
        let is_leaf = twig.is_key && twig.keys == 1;
        html! {
            tr {
                th scope="row" {
                    span.node aria-hidden="true" { @if is_leaf { "·" } @else { "▸" } }
                    a href=(links.keys(&self.area, &twig.prefix_bytes)) { (key(&twig.text)) }
                    @if is_leaf { " " span.muted { "key" } }
                }
                td.number { (at_least(&count(twig.keys), twig.is_exact)) }
                td.number { (at_least(&bytes(twig.bytes), twig.is_exact)) }
                td.bars { (bars(twig.bytes, largest)) }
            }
        }
    }
}

fn lying(here: &Here, links: &Links) -> Markup {
    html! {
        section aria-labelledby="value" {
            h2 #value { "At this key" }
            dl.facts {
                div { dt { "Key" } dd { (key(&here.text)) } }
                div {
                    dt { "Kind" }
                    dd {
                        @let tone = if here.kind == "stray" { "warn" } else { "" };
                        (badge(here.kind, tone)) " "
                        @match (&here.collection, &here.index, &here.name) {
                            (Some(collection), _, Some(name)) => {
                                @let link = RecordName { collection, name, owner: None };
                                a href=(links.record(link, "")) { "Open the record" }
                            }
                            (Some(collection), Some(index), _) => {
                                a href=(links.index(collection, index)) { (collection) "." (index) }
                            }
                            (Some(collection), None, None) => a href=(links.collection(collection)) { (collection) },
                            _ => {}
                        }
                    }
                }
                div { dt { "Size" } dd { (bytes(here.bytes)) } }
            }
            @match serde_json::from_str(&here.value) {
                Ok(value) => (json(&value)),
                Err(_) => pre.json tabindex="0" { (visible(&here.value)) },
            }
        }
    }
}
