//! Small drawings that many pages share.

mod json;
mod key;
mod numbers;
mod plot;

pub(super) use json::{capital, json, json_line, visible};
pub(super) use key::{key, template};
pub(super) use numbers::{at_least, bytes, count, distance, duration, time};
pub(super) use plot::{bars, line};

use maud::{Markup, html};

/// The logo: threads through a loom.
pub(super) fn logo() -> Markup {
    html! {
        svg.logo viewBox="0 0 24 24" width="22" height="22" aria-hidden="true" {
            path d="M5 3v18M12 3v18M19 3v18" fill="none" stroke="currentColor" stroke-width="2"
                stroke-linecap="round" {}
            path d="M2 8c3 0 3 3 6 3s4-3 8-3 4 3 6 3M2 15c3 0 3 3 6 3s4-3 8-3 4 3 6 3" fill="none"
                class="weft" stroke-width="2" stroke-linecap="round" {}
        }
    }
}

/// A short word on a coloured background. The word says everything; the colour only helps.
pub(super) fn badge(word: &str, tone: &'static str) -> Markup {
    html! { span class={ "badge " (tone) } { (word) } }
}

/// The path from the overview to a page.
pub(super) fn crumbs(steps: &[(&str, Option<String>)]) -> Markup {
    html! {
        nav.crumbs aria-label="Breadcrumb" {
            ol {
                @for (name, url) in steps {
                    li {
                        @if let Some(url) = url { a href=(url) { (name) } }
                        @else { span aria-current="page" { (name) } }
                    }
                }
            }
        }
    }
}
