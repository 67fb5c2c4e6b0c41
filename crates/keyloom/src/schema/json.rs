//! JSON text as the tree of values that the reader understands.

use std::sync::Arc;

use serde_json::Value;

use super::problem::{Place, Places, Problems, Trail};
use crate::json;

/// Parses a text. `None` when it is not JSON, with the reason among the problems.
pub(crate) fn parse(
    text: &str,
    source: &Arc<str>,
    problems: &mut Problems,
) -> Option<(Value, Places)> {
    match json::parse(text.as_bytes()) {
        Ok(value) => {
            let mut places = Places::default();
            places.insert(Trail::new(), source, None);
            Some((value, places))
        }
        Err(json::Fault { line, column, reason }) => {
            let place = Place { line, column };
            problems.add_to_text(source, Some(place), format!("not JSON: {reason}"));
            None
        }
    }
}
