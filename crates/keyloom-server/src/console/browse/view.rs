//! Draws the page of a collection.

use axum::http::StatusCode;
use keyloom::FieldType;
use maud::{Markup, html};
use serde_json::Value;

use super::{Answer, BrowsePage, Row};
use crate::console::declared::{at, fields};
use crate::console::draw::{count, crumbs, distance, json_line, key, template, time, visible};
use crate::console::links::{Links, RecordName};
use crate::console::page::{MenuItem, Page};

/// The most characters of a field, and of the rest of a record, in a row.
const FIELD_CHARS_MAX: usize = 40;
const RECORD_CHARS_MAX: usize = 140;

impl Page for BrowsePage {
    fn title(&self) -> String {
        self.collection.clone()
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Collection(&self.collection)
    }

    fn status(&self) -> StatusCode {
        self.status
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            (crumbs(&[("Overview", Some(links.overview())), (&self.collection, None)]))
            div.title {
                h1 { (self.collection) }
                @if self.may_write {
                    a.button href=(links.new_record(&self.collection)) { "New record" }
                }
            }
            p.lead {
                (template(&self.template))
                @if let Some(access) = &self.access { " " span.badge { (access) } }
            }
            @if self.notice.as_deref() == Some("deleted") {
                p.notice.good role="status" { "The record was deleted." }
            }
            div.browse {
                (self.form(links))
                section.answer aria-labelledby="records" {
                    h2 #records { "Records" }
                    @if let Some(problem) = &self.problem { (problem.view()) }
                    @match &self.answer {
                        Some(answer) => (self.answered(answer, links)),
                        None if self.question.place.is_some() && self.problem.is_none() => div.empty {
                            p { "Say a latitude and a longitude in degrees, then " strong { "Show" } "." }
                        },
                        None if self.problem.is_none() => div.empty {
                            p { "Say at least the first value of the index, then " strong { "Show" } "." }
                        },
                        None => {}
                    }
                }
                aside aria-labelledby="plan" {
                    h2 #plan { "Plan" }
                    @match &self.plan {
                        Some(plan) => pre.plan tabindex="0" { (visible(plan)) },
                        None if self.question.place.is_some() => p.muted {
                            "Reads the cells of the index in rings around the place, from the \
                             inside out, until the page is full."
                        },
                        None => p.muted { "There is no plan for what is asked so far." },
                    }
                    (self.about(links))
                }
            }
        }
    }
}

impl BrowsePage {
    /// The links to the pages of indexes, counts and sums.
    fn about(&self, links: &Links) -> Markup {
        let declared = &self.declared;
        let indexes =
            declared.index.keys().chain(declared.unique.keys()).chain(declared.geo.keys());
        let aggregates = declared.count.keys().chain(declared.sum.keys());
        let list = |names: Vec<&String>, heading: &str| {
            html! {
                @if !names.is_empty() {
                    h2 { (heading) }
                    ul.inline {
                        @for name in names {
                            li { a href=(links.index(&self.collection, name)) { (name) } }
                        }
                    }
                }
            }
        };
        html! {
            (list(indexes.collect(), "Indexes"))
            (list(aggregates.collect(), "Counts and sums"))
        }
    }

    fn answered(&self, answer: &Answer, links: &Links) -> Markup {
        html! {
            @for trouble in &answer.problems {
                p.notice.bad { strong { (trouble.kind) } " " (key(&trouble.key)) ": " (trouble.reason) }
            }
            @if answer.rows.is_empty() { (self.nothing(answer, links)) }
            @else {
                div.scroll {
                    table.records {
                        thead {
                            tr {
                                th scope="col" { "Key" }
                                @if self.question.place.is_some() { th.number scope="col" { "Distance" } }
                                @if !self.question.keys_only {
                                    @for column in &self.columns { th scope="col" { (column) } }
                                    th scope="col" { "Other fields" }
                                }
                            }
                        }
                        tbody { @for row in &answer.rows { (self.row(row, links)) } }
                    }
                }
            }
            (self.pager(answer, links))
        }
    }

    fn nothing(&self, answer: &Answer, links: &Links) -> Markup {
        let is_asked = !self.question.conditions.is_empty()
            || !self.question.filters.is_empty()
            || self.question.place.is_some();
        html! {
            div.empty {
                @if answer.stopped == "limit" {
                    p { strong { "Nothing yet among the " (count(answer.read as u64)) " records that were read." } }
                    p { "Go on to the next page, or narrow the question by an index." }
                } @else if is_asked {
                    p { strong { (self.found_nothing()) } }
                    p { a href=(links.collection(&self.collection)) { "Show all records" } }
                } @else {
                    p { strong { "There are no records yet." } }
                    @if self.may_write {
                        p { a href=(links.new_record(&self.collection)) { "Make the first one" } }
                    }
                }
            }
        }
    }

    fn found_nothing(&self) -> &'static str {
        match &self.question.place {
            Some(place) if !place.radius_m.is_empty() => "No record is that near.",
            Some(_) => "No record has a place.",
            None => "No record meets this.",
        }
    }

    fn row(&self, row: &Row, links: &Links) -> Markup {
        html! {
            tr {
                th scope="row" {
                    @match &row.name {
                        Some(name) => {
                            @let owner = row.owner.as_deref();
                            @let link = RecordName { collection: &self.collection, name, owner };
                            a href=(links.record(link, "")) { (key(name)) }
                            @if let Some(owner) = owner { " " span.muted { "of " (visible(owner)) } }
                        }
                        None => (key(&row.stored_at)),
                    }
                }
                @if let Some(metres) = row.distance_m { td.number { (distance(metres)) } }
                @if let Some(record) = &row.record {
                    @for column in &self.columns { td { (self.cell(column, at(record, column))) } }
                    td.mono.value {
                        @match self.rest(record) {
                            Value::Object(rest) if rest.is_empty() => span.muted { "–" },
                            rest => (json_line(&rest, RECORD_CHARS_MAX)),
                        }
                    }
                }
            }
        }
    }

    /// The part of a record that is neither in a column nor in its key.
    fn rest(&self, record: &Value) -> Value {
        let in_key = fields(&self.template).map(|(path, _)| path);
        let shown: Vec<&str> = self.columns.iter().map(String::as_str).chain(in_key).collect();
        let Value::Object(members) = record else { return record.clone() };
        let left = members.iter().filter(|(name, _)| !shown.contains(&name.as_str()));
        Value::Object(left.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn cell(&self, column: &str, value: Option<&Value>) -> Markup {
        let is_time = self
            .declared
            .fields
            .get(column)
            .is_some_and(|it| it.field_type == FieldType::Timestamp);
        match value {
            None => html! { span.muted { "–" } },
            Some(value) => match value.as_u64().filter(|_| is_time) {
                Some(at_ms) => time(at_ms),
                None => html! { (json_line(value, FIELD_CHARS_MAX)) },
            },
        }
    }

    fn pager(&self, answer: &Answer, links: &Links) -> Markup {
        let to = |cursor: &str| {
            let params = self.question.params(Some(cursor));
            let pairs = params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            links.to(&Links::collection_path(&self.collection), pairs)
        };
        html! {
            nav.pager aria-label="Pages" {
                @if let Some(cursor) = &answer.previous {
                    a.button.quiet rel="prev" href=(to(cursor)) { "Previous" }
                }
                @if let Some(cursor) = &answer.next {
                    a.button.quiet rel="next" href=(to(cursor)) { "Next" }
                }
                span.muted {
                    (count(answer.rows.len() as u64)) " shown, " (count(answer.read as u64)) " read"
                    @if answer.stopped == "end" { ", the end" }
                    @if answer.stopped == "limit" { ", the budget of reads is used up" }
                    @if answer.stopped == "bytes" { ", as many as fit on a page" }
                    @if let Some(swept) = answer.swept_until { ", swept until " (time(swept)) }
                }
            }
        }
    }
}
