//! The page of an index, drawn.

use maud::{Markup, html};

use super::{IndexPage, Inside, tone};
use crate::console::draw::{badge, bars, bytes, count, crumbs, json, json_line, template, visible};
use crate::console::links::Links;
use crate::console::once;
use crate::console::page::{Page, Place};

/// How much of a value a row shows.
const VALUE_CHARS_MAX: usize = 60;

impl Page for IndexPage {
    fn title(&self) -> String {
        format!("{} · {}", self.name, self.collection)
    }

    fn place(&self) -> Place<'_> {
        Place::Collection(&self.collection)
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            (crumbs(&[
                ("Overview", Some(links.overview())),
                (&self.collection, Some(links.collection(&self.collection))),
                (&self.name, None),
            ]))
            h1 { (self.heading()) " " (self.name) }
            @if let Some(source) = &self.template { p.lead { (template(source)) } }
            @let way = [("index", self.name.as_str())];
            @let way = links.to(&Links::collection_path(&self.collection), way);
            @match self.kind {
                "geo" => p.actions { a.button.quiet href=(way) { "Search by distance" } },
                "index" | "unique" => p.actions { a.button.quiet href=(way) { "Browse by it" } },
                _ => {}
            }
            @if self.kind == "own" {
                p.lead { "Keyloom keeps this index itself: the ends of records that expire." }
            }
            @match &self.inside {
                Some(inside) => (self.inside(inside, links)),
                None => p.muted { "Its state and its entries are for administrators to see." },
            }
            @if !self.declaration.is_null() {
                section {
                    h2 { "Declaration" }
                    @match &self.toml {
                        Some(toml) => pre.toml tabindex="0" { (visible(toml)) },
                        None => (json(&self.declaration)),
                    }
                }
            }
        }
    }
}

impl IndexPage {
    fn heading(&self) -> &'static str {
        match self.kind {
            "unique" => "Unique index",
            "geo" => "Geo index",
            "count" => "Count",
            "sum" => "Sum",
            _ => "Index",
        }
    }

    fn inside(&self, inside: &Inside, links: &Links) -> Markup {
        html! {
            div.tiles {
                div.tile { span.name { "State" } (badge(inside.state, tone(inside.state))) }
                @if let Some(entries) = inside.entries {
                    div.tile {
                        span.name { "Entries" }
                        strong { (count(entries.keys)) @if !entries.is_exact { "+" } }
                    }
                    div.tile { span.name { "Size" } strong { (bytes(entries.bytes)) } }
                }
            }
            @if let Some(reason) = &inside.reason { p.notice.bad role="alert" { (reason) } }
            @if inside.state != "ready" {
                form.actions method="post" action=(build_url(links, &self.collection, &self.name)) {
                    (once::field(None))
                    button { "Build" }
                    p.muted { "Reads every record and makes the index complete, while writers go on." }
                }
            }
            section aria-labelledby="spread" {
                h2 #spread { "Distribution" }
                @if inside.shares.is_empty() { div.empty { p { "There is nothing in it." } } }
                @else { (self.shares(inside)) }
            }
        }
    }

    fn shares(&self, inside: &Inside) -> Markup {
        let largest = inside.shares.iter().map(|it| it.amount.unsigned_abs()).max().unwrap_or(0);
        let is_number = matches!(self.kind, "count" | "sum");
        html! {
            p.muted {
                @if is_number { "Groups, largest first." }
                @else { "Entries by the first value of the key, most first." }
                @if !inside.is_exact { " There is more than is shown." }
            }
            div.scroll.fit {
                table {
                    thead {
                        tr {
                            th scope="col" { "Value" }
                            th.number scope="col" { @if is_number { "Number" } @else { "Entries" } }
                            th scope="col" aria-label="Share" {}
                            @if !is_number { th.number scope="col" { "Size" } }
                        }
                    }
                    tbody {
                        @for share in &inside.shares {
                            tr {
                                th.mono scope="row" {
                                    @for (at, value) in share.values.iter().enumerate() {
                                        @if at > 0 { span.sep { " · " } }
                                        (json_line(value, VALUE_CHARS_MAX))
                                    }
                                    @if share.values.is_empty() { span.muted { "all" } }
                                }
                                td.number { (share.amount) }
                                td.bars { (bars(share.amount.unsigned_abs(), largest)) }
                                @if let Some(size) = share.bytes { td.number { (bytes(size)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn build_url(links: &Links, collection: &str, index: &str) -> String {
    let path = format!(
        "{}indexes/{}/build",
        Links::collection_path(collection),
        crate::path::encode(index)
    );
    links.to(&path, [])
}
