//! The surroundings of every page: head, menu, search, and the link to its JSON twin.

use maud::{DOCTYPE, Markup, html};

use super::assets;
use super::draw::{logo, visible};
use super::links::Links;
use super::page::{MenuItem, Page};

/// The content of a page's surroundings.
pub(super) struct Frame<'f> {
    pub(super) links: &'f Links,
    pub(super) space: &'f str,
    pub(super) engine: &'f str,
    pub(super) collections: Vec<&'f str>,
    pub(super) is_admin: bool,
    pub(super) may_act_as: bool,
    /// Whether access control is off.
    pub(super) is_open: bool,
    /// The path and the query of the page.
    pub(super) url: &'f str,
}

impl<'f> Frame<'f> {
    /// Surroundings without any content, for visitors who may see nothing.
    pub(super) fn bare(links: &'f Links) -> Self {
        Frame {
            links,
            space: "",
            engine: "",
            collections: Vec::new(),
            is_admin: false,
            may_act_as: false,
            is_open: false,
            url: "",
        }
    }
}

/// The whole document.
pub(super) fn around(page: &impl Page, frame: &Frame<'_>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title()) " · Keyloom" }
                link rel="icon" type="image/svg+xml" href=(assets::url(&assets::ICON));
                link rel="stylesheet" href=(assets::url(&assets::STYLE));
                script src=(assets::url(&assets::SCRIPT)) {}
                @if let Some(seconds) = page.refresh_s() {
                    meta http-equiv="refresh" content=(seconds);
                }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (top(page.menu_item(), frame))
                (menu(page.menu_item(), frame))
                main id="main" tabindex="-1" { (page.view(frame.links)) }
                (foot(frame))
            }
        }
    }
}

fn top(place: MenuItem<'_>, frame: &Frame<'_>) -> Markup {
    html! {
        header.top {
            a.brand href=(frame.links.overview()) { (logo()) span { "Keyloom" } }
            @if !frame.space.is_empty() {
                p.where {
                    span { "space " strong { (frame.space) } }
                    span { "engine " strong { (frame.engine) } }
                }
            }
            @if frame.is_admin { (search(frame)) }
            @if frame.may_act_as { (view_as(place, frame)) }
            @if !frame.is_open && !frame.space.is_empty() {
                form method="post" action="/console/logout" { button.quiet { "Sign out" } }
            }
            // The script shows the button, which is useless without it.
            button.quiet #theme type="button" hidden { "Theme" }
        }
        @if let Some(user) = frame.links.user() {
            p.banner {
                "You see and change what the user " strong.mono { (visible(user)) } " may. "
                a href=(Links::new(space_of(frame), None).to(&place.path(), [])) {
                    "Stop viewing as this user"
                }
            }
        }
    }
}

/// The space as links name it.
fn space_of<'f>(frame: &Frame<'f>) -> Option<&'f str> {
    (frame.links.bare("") != super::ROOT).then_some(frame.space)
}

fn search(frame: &Frame<'_>) -> Markup {
    html! {
        form.search role="search" action=(frame.links.bare("/keys")) {
            label.unseen for="search" { "Key, or the beginning of keys" }
            input #search type="search" name="prefix" placeholder="Key or prefix  ( / )"
                autocomplete="off" spellcheck="false" aria-keyshortcuts="/";
            button.quiet { "Go" }
        }
    }
}

fn view_as(place: MenuItem<'_>, frame: &Frame<'_>) -> Markup {
    html! {
        form.as action=(frame.links.bare(&place.path())) {
            label for="as" { "View as" }
            input #as name="as" value=[frame.links.user()] placeholder="user"
                autocomplete="off" spellcheck="false" size="10";
            button.quiet { "View" }
        }
    }
}

fn menu(place: MenuItem<'_>, frame: &Frame<'_>) -> Markup {
    let item = |target: MenuItem<'_>, name: &str| {
        html! {
            li {
                a href=(frame.links.to(&target.path(), []))
                    aria-current=[(target == place).then_some("page")] { (name) }
            }
        }
    };
    html! {
        nav.menu aria-label="Console" {
            ul {
                (item(MenuItem::Overview, "Overview"))
                (item(MenuItem::Schema, "Schema"))
                @if frame.is_admin {
                    (item(MenuItem::Keys, "Keys"))
                    (item(MenuItem::Changes, "Changes"))
                    (item(MenuItem::Verify, "Verify"))
                }
            }
            @if !frame.collections.is_empty() {
                h2 #menu-collections { "Collections" }
                ul.names aria-labelledby="menu-collections" {
                    @for name in &frame.collections { (item(MenuItem::Collection(name), name)) }
                }
            }
        }
    }
}

fn foot(frame: &Frame<'_>) -> Markup {
    let joint = if frame.url.contains('?') { '&' } else { '?' };
    html! {
        footer {
            @if !frame.url.is_empty() {
                a href={ (frame.url) (joint) "format=json" } { "This page as JSON" }
            }
            span { "Keyloom " (env!("CARGO_PKG_VERSION")) }
            @if frame.is_open { span { "Access control is off" } }
        }
    }
}
