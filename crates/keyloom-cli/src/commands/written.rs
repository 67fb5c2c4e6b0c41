//! Reports the result of a write.

use serde_json::{Value, json};

use crate::cli::GlobalOptions;
use crate::exit::Failure;
use crate::output::{Screen, line, visible};
use crate::target::Answer;

/// Reports that a record was written: a sentence for people, the record for programs.
pub(super) fn tell(
    place: &GlobalOptions,
    what: &str,
    key: &str,
    answer: &Answer,
) -> Result<(), Failure> {
    let screen = Screen::of(place);
    let version = answer.version().unwrap_or_default();
    if screen.is_for_people() {
        return line(&format!("{what} {}, version {}", visible(key), visible(version)));
    }
    let record: Value = answer.json().unwrap_or_default();
    screen.json(&json!({ "key": key, "version": version, "record": record }))
}
