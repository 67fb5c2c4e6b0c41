//! The schema: every kind of key that the space can hold, and the declaration.

use axum::response::Response;
use keyloom::{KeyPattern, SchemaDeclaration, Warning};
use maud::{Markup, html};
use serde::Serialize;

use super::draw::{crumbs, json, key, template, visible};
use super::links::Links;
use super::page::{MenuItem, Page};
use super::toml;
use super::visit::Visit;
use crate::problem::Problem;

/// The page.
#[derive(Serialize)]
struct SchemaPage {
    space: String,
    keyspace: Vec<KeyPattern>,
    warnings: Vec<Told>,
    schema: SchemaDeclaration,
    /// The schema as a file, if TOML can express it.
    toml: Option<String>,
}

/// A declaration that is probably not meant.
#[derive(Serialize)]
struct Told {
    collection: String,
    field: String,
    reason: &'static str,
}

/// `GET /schema`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model(&mut visit).await;
    visit.answer(made)
}

async fn model(visit: &mut Visit) -> Result<SchemaPage, Problem> {
    visit.take_params().finish()?;
    let schema = visit.caller.store.schema().await?;
    let is_seen = |collection: &Option<String>| match collection {
        Some(name) => visit.caller.grant.sees(name),
        None => visit.caller.admin().is_ok(),
    };
    let keyspace = schema.keyspace().into_iter().filter(|it| is_seen(&it.collection)).collect();
    let warnings = schema.warnings().into_iter();
    let warnings = warnings
        .filter(|it| visit.caller.grant.sees(&it.collection))
        .map(|Warning { collection, field, reason }| Told { collection, field, reason })
        .collect();
    let space = visit.caller.store.space_name().to_owned();
    let schema = visit.schema.clone();
    let toml = serde_json::to_value(&schema).ok().and_then(|value| toml::schema(&value));
    Ok(SchemaPage { space, keyspace, warnings, schema, toml })
}

impl SchemaPage {
    /// The kinds of keys of each collection, followed by those of the whole space.
    fn groups(&self) -> Vec<(Option<&str>, Vec<&KeyPattern>)> {
        let mut groups: Vec<(Option<&str>, Vec<&KeyPattern>)> = Vec::new();
        for pattern in &self.keyspace {
            let collection = pattern.collection.as_deref();
            match groups.last_mut() {
                Some((last, members)) if *last == collection => members.push(pattern),
                _ => groups.push((collection, vec![pattern])),
            }
        }
        groups
    }
}

impl Page for SchemaPage {
    fn title(&self) -> String {
        "Schema".to_owned()
    }

    fn menu_item(&self) -> MenuItem<'_> {
        MenuItem::Schema
    }

    fn view(&self, links: &Links) -> Markup {
        html! {
            (crumbs(&[("Overview", Some(links.overview())), ("Schema", None)]))
            h1 { "Schema" }
            p.lead {
                "Every kind of key that the space " strong { (self.space) } " can hold, with an \
                 example of each and the calls that read it. At the end is "
                a href="#declaration" { "the declaration" } "."
            }
            @for told in &self.warnings {
                p.notice.warn {
                    strong.mono { (told.collection) "." (told.field) } " " (told.reason) "."
                }
            }
            @if self.schema.collections.is_empty() { (no_schema(&self.space)) }
            @for (collection, patterns) in self.groups() {
                section {
                    h2 {
                        @match collection {
                            Some(name) => a href=(links.collection(name)) { (name) },
                            None => "The whole space",
                        }
                    }
                    div.patterns { @for pattern in patterns { (one(pattern, links)) } }
                }
            }
            section aria-labelledby="declaration" {
                h2 #declaration { "Declaration" }
                @if let Some(toml) = &self.toml { pre.toml tabindex="0" { (visible(toml)) } }
                details {
                    summary { "The same as JSON" }
                    (json(&serde_json::to_value(&self.schema).unwrap_or_default()))
                }
            }
        }
    }
}

/// What to do if nothing is declared.
pub(super) fn no_schema(space: &str) -> Markup {
    let in_space = if space == "main" { String::new() } else { format!(" --space {space}") };
    html! {
        div.empty {
            p { strong { "This space has no schema yet." } }
            p {
                "Declare collections in a file and start the server with it: "
                code { "keyloom serve --schema keyloom.toml" (in_space) } "."
            }
        }
    }
}

fn one(pattern: &KeyPattern, links: &Links) -> Markup {
    html! {
        article.pattern {
            h3 {
                (template(&pattern.template))
                @if !pattern.area.is_empty() { " " span.badge { "area " (pattern.area) } }
            }
            p {
                (pattern.what) " "
                @if let (Some(collection), Some(index)) = (&pattern.collection, &pattern.index) {
                    a href=(links.index(collection, index)) { (index) }
                }
            }
            dl.facts {
                div { dt { "Example" } dd { (key(&pattern.example_key)) } }
                div { dt { "Holds" } dd { (pattern.holds) } }
                @if !pattern.example_value.is_empty() {
                    div { dt { "Such as" } dd.mono { (visible(&pattern.example_value)) } }
                }
                div { dt { "Read by" } dd { (pattern.read_by) } }
            }
        }
    }
}
