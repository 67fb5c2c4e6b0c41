//! Draws the overview.

use keyloom::engine::Unit;
use maud::{Markup, html};

use super::{AggregateSummary, Counted, IndexSummary, OverviewPage, Summary};
use crate::console::draw::{at_least, badge, bars, bytes, capital, count, template};
use crate::console::index::tone;
use crate::console::links::Links;
use crate::console::page::{MenuItem, Page};
use crate::console::schema::no_schema;

impl Page for OverviewPage {
    fn title(&self) -> String {
        format!("Space {}", self.space)
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Overview
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            h1 { "Space " (self.space) }
            section aria-labelledby="collections" {
                h2 #collections { "Collections" }
                @if self.collections.is_empty() { (no_schema(&self.space)) }
                @else { (self.table(links)) }
            }
            @if let Some(pulse) = &self.pulse {
                section aria-labelledby="requests" {
                    h2 #requests { "Requests" }
                    div.tiles { (pulse.view()) }
                }
            }
            section aria-labelledby="engine" {
                h2 #engine { "Engine" }
                div.tiles { (self.tiles()) }
            }
            @if self.is_admin {
                section aria-labelledby="spaces" {
                    h2 #spaces { "Another space" }
                    form.row action="/console/open" {
                        label for="space" { "Name" }
                        input #space name="space" placeholder="main" autocomplete="off" size="16";
                        button.quiet { "Open" }
                    }
                }
            }
        }
    }
}

impl OverviewPage {
    fn tiles(&self) -> Markup {
        let keeps = if self.is_persistent { "on disk" } else { "until the process ends" };
        html! {
            (tile("Engine", self.engine, keeps))
            @for figure in &self.figures {
                @let value = match figure.unit { Unit::Bytes => bytes(figure.value), _ => count(figure.value) };
                (tile(&capital(figure.name.trim_end_matches(" bytes")), &value, ""))
            }
        }
    }

    fn table(&self, links: &Links) -> Markup {
        let all = self.collections.iter();
        let largest = all.filter_map(|it| it.total()).max().unwrap_or(0);
        html! {
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Collection" }
                            th scope="col" { "Key" }
                            @if self.is_admin {
                                th.number scope="col" { "Records" }
                                th.number scope="col" { "Size with indexes" }
                                th scope="col" aria-label="Share" {}
                                th scope="col" { "Indexes" }
                            }
                        }
                    }
                    tbody {
                        @for summary in &self.collections {
                            tr {
                                th scope="row" { a href=(links.collection(&summary.name)) { (summary.name) } }
                                td { (template(&summary.template)) }
                                @if let (Some(records), Some(total)) = (summary.records, summary.total()) {
                                    td.number { (amount(records)) }
                                    td.number { (at_least(&bytes(total), summary.is_exact())) }
                                    td.bars { (bars(total, largest)) }
                                    td { (indexes(summary, links)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Summary {
    /// The bytes of records and entries.
    fn total(&self) -> Option<u64> {
        let entries: u64 = self.indexes.iter().map(|index| index.entries.bytes).sum();
        self.records.map(|records| records.bytes + entries)
    }

    /// Whether all of them were counted.
    fn is_exact(&self) -> bool {
        let counted = self.indexes.iter().map(|index| index.entries).chain(self.records);
        counted.into_iter().all(|amount| amount.is_exact)
    }
}

/// A number, with a plus if there are more.
fn amount(counted: Counted) -> Markup {
    at_least(&count(counted.keys), counted.is_exact)
}

fn indexes(summary: &Summary, links: &Links) -> Markup {
    html! {
        ul.inline {
            @for IndexSummary { name, state, entries } in &summary.indexes {
                li {
                    a href=(links.index(&summary.name, name)) { (name) }
                    " " span.muted { (amount(*entries)) }
                    @if *state != "ready" { " " (badge(state, tone(state))) }
                }
            }
            @for AggregateSummary { name, state } in &summary.aggregates_not_ready {
                li { a href=(links.index(&summary.name, name)) { (name) } " " (badge(state, tone(state))) }
            }
            @if summary.indexes.is_empty() && summary.aggregates_not_ready.is_empty() {
                li.muted { "none" }
            }
        }
    }
}

fn tile(name: &str, value: &str, more: &str) -> Markup {
    html! {
        div.tile {
            span.name { (name) } strong { (value) }
            @if !more.is_empty() { span.muted { (more) } }
        }
    }
}
