//! What every page is: a model that can be written as JSON, and a view of it.

use axum::http::StatusCode;
use maud::Markup;
use serde::Serialize;

use super::links::Links;

/// A page.
pub(super) trait Page: Serialize {
    /// What it is about, for the window's title.
    fn title(&self) -> String;

    /// Where it belongs in the menu.
    fn menu_item(&self) -> MenuItem<'_>;

    /// The content, from the heading on.
    fn view(&self, links: &Links) -> Markup;

    /// The status of the answer.
    fn status(&self) -> StatusCode {
        StatusCode::OK
    }

    /// After how many seconds a browser should ask again, of what is still going on.
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
