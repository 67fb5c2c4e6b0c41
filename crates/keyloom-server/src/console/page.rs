//! Pages: each has a model that can be written as JSON, and a view of that model.

use axum::http::StatusCode;
use maud::Markup;
use serde::Serialize;

use super::links::Links;

/// A page.
pub(super) trait Page: Serialize {
    /// The title of the window.
    fn title(&self) -> String;

    /// Its place in the menu.
    fn menu_item(&self) -> MenuItem<'_>;

    /// The content, from the heading on.
    fn view(&self, links: &Links) -> Markup;

    /// The status of the answer.
    fn status(&self) -> StatusCode {
        StatusCode::OK
    }

    /// After how many seconds a browser should reload the page, while something is in progress.
    fn refresh_s(&self) -> Option<u32> {
        None
    }
}

/// The places of the menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MenuItem<'p> {
    Overview,
    Collection(&'p str),
    Keys,
    Schema,
    Changes,
    Verify,
    /// None of them.
    Elsewhere,
}

impl MenuItem<'_> {
    /// The path of the place within its space.
    pub(super) fn path(self) -> String {
        match self {
            MenuItem::Overview | MenuItem::Elsewhere => "/".to_owned(),
            MenuItem::Collection(name) => Links::collection_path(name),
            MenuItem::Keys => "/keys".to_owned(),
            MenuItem::Schema => "/schema".to_owned(),
            MenuItem::Changes => "/changes".to_owned(),
            MenuItem::Verify => "/verify".to_owned(),
        }
    }
}
