//! How answers look: tables on a terminal, JSON lines in a pipe or with `--json`.

use std::io::{IsTerminal, Write, stdout};

use crate::cli::Place;
use crate::exit::Failure;
use crate::target::Answer;

/// Whether a person looks at the answer.
pub(crate) fn is_for_people(place: &Place) -> bool {
    !place.json && stdout().is_terminal()
}

/// Prints one record.
pub(crate) fn record(place: &Place, answer: &Answer) -> Result<(), Failure> {
    let value = answer.json()?;
    let text = match is_for_people(place) {
        true => serde_json::to_string_pretty(&value),
        false => serde_json::to_string(&value),
    };
    line(&text.map_err(|error| Failure::new(1, error.to_string()))?)
}

/// Prints one line. A pipe that was closed ends the command quietly, as `head` expects.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    match writeln!(stdout(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|error| Failure::new(1, format!("cannot write: {error}"))),
    }
}
