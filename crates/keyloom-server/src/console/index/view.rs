//! Draws the page of an index.

use maud::{Markup, html};

use super::{IndexPage, Inside, Share, tone};
use crate::console::draw::{
    at_least, badge, bars, bytes, count, crumbs, json, json_line, template, visible,
};
use crate::console::links::Links;
use crate::console::once;
use crate::console::page::{MenuItem, Page};

/// The most characters of a value in a row.
const VALUE_CHARS_MAX: usize = 60;

impl Page for IndexPage {
    fn title(&self) -> String {
        format!("{} · {}", self.name, self.collection)
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Collection(&self.collection)
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
            @if let Some(condition) = &self.condition {
                p.muted { "Only records whose " code { (visible(condition)) } }
            }
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
                        strong { (at_least(&count(entries.keys), entries.is_exact)) }
                    }
                    div.tile {
                        span.name { "Size" }
                        strong { (at_least(&bytes(entries.bytes), entries.is_exact)) }
                    }
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
                @if let Some(caution) = self.caution(inside) { p.notice.warn { (caution) } }
                @if !inside.shares.is_empty() { (self.shares(inside)) }
                @else if inside.state == "ready" { div.empty { p { "There is nothing in it." } } }
            }
        }
    }

    /// Why the numbers may differ from the records, if the index is not ready.
    fn caution(&self, inside: &Inside) -> Option<&'static str> {
        let is_number = matches!(self.kind, "count" | "sum");
        Some(match inside.state {
            "ready" => return None,
            _ if is_number => "It has no numbers to show until it is built.",
            "building" => "It is not complete. These are the entries that it has so far.",
            _ => "It is not kept up to date. These are the entries that were left in it.",
        })
    }

    /// How the numbers were obtained.
    fn explanation(&self, inside: &Inside) -> String {
        let all_counted = inside.shares.iter().all(|share| share.is_exact);
        let mut told = match self.kind {
            "count" | "sum" => "Groups, largest first, as every write keeps them.".to_owned(),
            _ if all_counted => "Entries by the first value of the key, most first.".to_owned(),
            _ => format!(
                "Entries by the first value of the key. {} were counted at most, in equal parts for \
                 the values that have many. A plus means that there are more of a value than were \
                 counted; which of those has the most is not known.",
                count(super::ENTRIES_MAX as u64)
            ),
        };
        if !inside.has_all_values {
            told.push_str(" There are more values than are shown.");
        }
        told
    }

    fn shares(&self, inside: &Inside) -> Markup {
        let largest = inside.shares.iter().map(|it| it.amount.unsigned_abs()).max().unwrap_or(0);
        let is_number = matches!(self.kind, "count" | "sum");
        html! {
            p.muted { (self.explanation(inside)) }
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
                                td.number { (at_least(&number(share), share.is_exact)) }
                                td.bars { (bars(share.amount.unsigned_abs(), largest)) }
                                @if let Some(size) = share.bytes {
                                    td.number { (at_least(&bytes(size), share.is_exact)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The number of a share; a sum may be negative.
fn number(share: &Share) -> String {
    let sign = if share.amount < 0 { "-" } else { "" };
    format!("{sign}{}", count(share.amount.unsigned_abs()))
}

fn build_url(links: &Links, collection: &str, index: &str) -> String {
    let path = format!(
        "{}indexes/{}/build",
        Links::collection_path(collection),
        crate::path::encode(index)
    );
    links.to(&path, [])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::console::overview::Counted;

    fn page(kind: &'static str, state: &'static str, shares: Vec<Share>) -> String {
        let entries = Some(Counted { keys: 60_000, bytes: 9_000_000, is_exact: false });
        let inside = Inside::new(state, None, entries, shares, true);
        let page = IndexPage {
            collection: "event".to_owned(),
            name: "kind".to_owned(),
            kind,
            template: None,
            condition: None,
            declaration: Value::Null,
            toml: None,
            inside: Some(inside),
        };
        page.view(&Links::new(None, None)).into_string()
    }

    fn share(value: &str, amount: i64, is_exact: bool) -> Share {
        Share { values: vec![json!(value)], amount, bytes: Some(1_500), is_exact }
    }

    #[test]
    fn what_was_not_counted_to_its_end_says_so() {
        let plus = "<abbr title=\"There are more than were counted\">+</abbr>";
        let shown = page("index", "ready", vec![share("a", 12_500, false), share("b", 7, true)]);
        for told in [
            format!("12,500{plus}"),
            format!("1.5 kB{plus}"),
            format!("60,000{plus}"),
            format!("9.0 MB{plus}"),
            "<td class=\"number\">7</td>".to_owned(),
            "50,000 were counted at most".to_owned(),
        ] {
            assert!(shown.contains(&told), "no {told} in {shown}");
        }
        let exact = page("index", "ready", vec![share("a", 12_500, true)]);
        assert!(exact.contains("<td class=\"number\">12,500</td>"), "{exact}");
        assert!(!exact.contains("were counted at most"), "{exact}");
    }

    #[test]
    fn what_does_not_serve_is_not_called_empty_or_true() {
        for (kind, state, told) in [
            ("count", "failed", "It has no numbers to show"),
            ("sum", "building", "It has no numbers to show"),
            ("index", "building", "It is not complete"),
            ("unique", "disabled", "It is not kept up to date"),
            ("index", "failed", "It is not kept up to date"),
        ] {
            let shown = page(kind, state, Vec::new());
            assert!(shown.contains(told) && !shown.contains("nothing in it"), "{state}: {shown}");
        }
        let sums = page("sum", "ready", vec![share("a", -12_500, true)]);
        assert!(sums.contains("-12,500"), "{sums}");
    }
}
