//! A problem as a page: what happened, why, and what to do.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;

use super::draw::{capital, visible};
use super::links::Links;
use super::page::{MenuItem, Page};
use crate::problem::Problem;

/// A problem that is shown instead of a page.
pub(super) struct Refusal {
    problem: Problem,
    /// The collection in which it occurred.
    collection: Option<String>,
    told: Told,
}

/// A problem, divided into the parts that people read.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told {
    /// The last part of its type's URL.
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) detail: String,
    /// Whether a write may have happened.
    pub(super) may_have_happened: bool,
    pub(super) retry: bool,
    /// Whether the server is to blame, and not the request.
    #[serde(skip)]
    is_defect: bool,
    /// Whether it was refused before the visitor was recognised.
    #[serde(skip)]
    is_by_guard: bool,
    /// Its subject: names with one or several values.
    pub(super) context: Vec<(String, Vec<String>)>,
}

impl Refusal {
    pub(super) fn new(problem: Problem) -> Self {
        let told = Told::of(&problem);
        Refusal { problem, told, collection: None }
    }

    /// A refusal because of the request itself, whoever sent it.
    pub(super) fn by_guard(problem: Problem) -> Self {
        let mut refusal = Refusal::new(problem);
        refusal.told.is_by_guard = true;
        refusal
    }

    /// The same with a link back to a collection.
    pub(super) fn within(self, collection: Option<String>) -> Self {
        Refusal { collection, ..self }
    }

    /// Adds the headers of the problem itself.
    pub(super) fn add_headers(self, response: &mut Response) {
        use axum::response::IntoResponse;
        let own = self.problem.into_response();
        for (name, value) in own.headers() {
            if !response.headers().contains_key(name) {
                response.headers_mut().insert(name.clone(), value.clone());
            }
        }
    }
}

impl Serialize for Refusal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.problem.to_json().serialize(serializer)
    }
}

impl Told {
    pub(super) fn of(problem: &Problem) -> Self {
        let json = problem.to_json();
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let context: Vec<(String, Vec<String>)> = match &json["context"] {
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| match value {
                    Value::Array(values) => (name.clone(), values.iter().map(shown).collect()),
                    value => (name.clone(), vec![shown(value)]),
                })
                .collect(),
            _ => Vec::new(),
        };
        // People who send forms do not know the idempotency keys in them.
        let (title, detail) = match problem.kind() {
            "idempotency-conflict" => (
                "This form was sent before".to_owned(),
                "it said something else then, and that was done".to_owned(),
            ),
            _ => (text("title"), without_context(text("detail"), &context)),
        };
        Told {
            kind: problem.kind().to_owned(),
            title,
            detail,
            may_have_happened: json["outcome"] == "may_have_happened",
            retry: json["retry"] == true,
            is_defect: problem.status().is_server_error(),
            is_by_guard: false,
            context,
        }
    }

    /// What a person can do now.
    fn advice(&self) -> &'static str {
        match self.kind.as_str() {
            _ if self.may_have_happened => {
                "The write may have happened. Look at the record before you try again."
            }
            "not-found" => "Check the address, or look for it from the overview.",
            "method-not-allowed" => "Go back to the page that has the form.",
            "unauthenticated" => "Sign in, or have your administrator give you a token.",
            "forbidden" if self.is_by_guard => {
                "Open the page that has the form here, and send it from there."
            }
            "misdirected" => {
                "Call the server by a name that it knows, or start it with this one: --host NAME."
            }
            "too-large-headers" => "Shorten the address, or remove the cookies of this site.",
            "forbidden" => {
                "Stop viewing as a user if you do, or sign in as somebody who may do this."
            }
            "idempotency-conflict" => {
                "Look at what came of it. If you want this too, send the form again."
            }
            "no-index" => "Choose an index that begins with these fields, or filter instead.",
            "invalid-query" => "Change the conditions or the order.",
            "invalid-cursor" => "Begin at the first page again.",
            "index-not-ready" => "Build the index on its page, then come back.",
            "already-exists" | "unique-conflict" => "Change the value, or edit the other record.",
            "out-of-bounds" => "Add less, or change the counter's bounds in the schema.",
            _ if self.retry => "Try again in a moment.",
            _ if self.is_defect => "Look into the server's log.",
            _ => "Change what you sent.",
        }
    }

    /// Whether the detail says more than the title.
    fn says_more(&self) -> bool {
        !self.detail.eq_ignore_ascii_case(&self.title)
    }

    /// The problem as a box within a page.
    pub(super) fn view(&self) -> Markup {
        // These titles only say that something is wrong, which the box shows anyway.
        let is_plain = matches!(self.kind.as_str(), "invalid-request" | "invalid-argument");
        self.boxed(html! {
            p {
                @if is_plain { strong { (capital(&visible(&self.detail))) } }
                @else {
                    strong { (self.title) }
                    @if self.says_more() { ": " (visible(&self.detail)) }
                }
                "."
            }
        })
    }

    fn boxed(&self, sentence: Markup) -> Markup {
        html! {
            div.notice.bad role="alert" {
                (sentence)
                @if !self.context.is_empty() {
                    dl.facts {
                        @for (name, values) in &self.context {
                            div {
                                dt { (name.replace('_', " ")) }
                                @for value in values { dd.mono { (visible(value)) } }
                            }
                        }
                    }
                }
                p.muted { (self.advice()) }
            }
        }
    }
}

/// The sentence of a detail, without the context that is shown separately.
fn without_context(detail: String, context: &[(String, Vec<String>)]) -> String {
    let begins = context.first().map(|(name, _)| format!("; {name}: "));
    match begins.and_then(|begins| detail.split_once(&begins)) {
        Some((sentence, _)) => sentence.to_owned(),
        None => detail,
    }
}

impl Page for Refusal {
    fn title(&self) -> String {
        self.told.title.clone()
    }

    fn menu_item(&self) -> MenuItem<'_> {
        self.collection.as_deref().map_or(MenuItem::Elsewhere, MenuItem::Collection)
    }

    fn status(&self) -> StatusCode {
        self.problem.status()
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            h1 { (self.status().as_u16()) " " (self.told.title) }
            // The heading already has the title.
            (self.told.boxed(html! {
                @if self.told.says_more() { p { (capital(&visible(&self.told.detail))) "." } }
            }))
            p {
                @if self.told.kind == "unauthenticated" {
                    a.button href="/console/login" { "Sign in" } " "
                }
                @if let Some(name) = &self.collection {
                    a.button.quiet href=(links.collection(name)) { "Back to " (name) } " "
                }
                a.button.quiet href=(links.overview()) { "To the overview" }
            }
        }
    }
}
