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
    fn place(&self) -> Place<'_>;

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
pub(super) enum Place<'p> {
    Overview,
    Collection(&'p str),
    Keys,
    Schema,
    Changes,
    Verify,
    /// None of them.
    Elsewhere,
}

impl Place<'_> {
    /// The path of the place within its space.
    pub(super) fn path(self) -> String {
        match self {
            Place::Overview | Place::Elsewhere => "/".to_owned(),
            Place::Collection(name) => Links::collection_path(name),
            Place::Keys => "/keys".to_owned(),
            Place::Schema => "/schema".to_owned(),
            Place::Changes => "/changes".to_owned(),
            Place::Verify => "/verify".to_owned(),
        }
    }
}
