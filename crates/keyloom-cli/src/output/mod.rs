//! Prints answers: tables on a terminal, JSON lines in a pipe or with `--json`.

mod moment;
mod progress;
mod table;
mod visible;

pub(crate) use moment::moment;
pub(crate) use progress::Progress;
pub(crate) use table::Table;
pub(crate) use visible::{visible, visible_json};

use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use serde_json::Value;
use terminal_size::{Width, terminal_size_of};

use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure};

/// The output, and how answers look in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    is_for_people: bool,
    is_colored: bool,
    width: Option<usize>,
}

impl Screen {
    /// The output according to the flags and the terminal.
    pub(crate) fn of(place: &GlobalOptions) -> Self {
        let is_terminal = stdout().is_terminal();
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Screen {
            is_for_people: place.table || (is_terminal && !place.json),
            is_colored: is_terminal && !is_set("NO_COLOR"),
            width: columns()
                .or_else(|| terminal_size_of(stdout()).map(|(Width(width), _)| width.into())),
        }
    }

    /// Whether a person reads the answer.
    pub(crate) fn is_for_people(self) -> bool {
        self.is_for_people
    }

    /// Prints a JSON value in one line.
    pub(crate) fn json(self, value: &Value) -> Result<(), Failure> {
        line(&visible_json(&value.to_string()))
    }

    /// Prints a JSON value on several lines.
    pub(crate) fn pretty(self, value: &Value) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value);
        line(&visible_json(&text.map_err(|error| Failure::new(FAILED, error.to_string()))?))
    }

    /// Prints a table. A table without rows prints nothing.
    pub(crate) fn table(self, table: &Table) -> Result<(), Failure> {
        if table.is_empty() {
            return Ok(());
        }
        for (number, text) in table.lines(self.width).into_iter().enumerate() {
            match number {
                0 => line(&self.bold(&text))?,
                _ => line(&text)?,
            }
        }
        Ok(())
    }

    /// Whether a table fits without being cut.
    pub(crate) fn fits(self, table: &Table) -> bool {
        self.width.is_none_or(|width| table.width() <= width)
    }

    /// Whether to use colours.
    pub(crate) fn is_colored(self) -> bool {
        self.is_colored
    }

    /// Bold text, if colours are used.
    pub(crate) fn bold(self, text: &str) -> String {
        if self.is_colored { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Dim text, if colours are used.
    pub(crate) fn dim(self, text: &str) -> String {
        if self.is_colored { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// Prints one line. A closed pipe ends the command silently, as `head` expects.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    written(writeln!(stdout(), "{text}"))
}

/// The result of writing to stdout.
pub(crate) fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::silent(),
        _ => Failure::new(FAILED, format!("cannot write: {error}")),
    })
}

/// Prints a note beside the answer, to stderr.
pub(crate) fn note(text: &str) {
    // If stderr is closed, nobody could read about that either.
    let _ = writeln!(stderr(), "{}", visible(text));
}

/// A value of a record as a cell of a table: text without quotes, everything else as JSON.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A number of things: `1 record`, `2 records`, `3 entries`, `4 keys`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ if one.ends_with('y') && !one.ends_with("ey") => {
            format!("{} {}ies", grouped(count), one.trim_end_matches('y'))
        }
        _ if one.ends_with('x') => format!("{} {one}es", grouped(count)),
        _ => format!("{} {one}s", grouped(count)),
    }
}

/// A number with separated thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size for people: `1.4 MB`.
pub(crate) fn bytes(count: u64) -> String {
    let (mut size, mut unit) = (count as f64, "B");
    for larger in ["kB", "MB", "GB", "TB"] {
        if size < 1000.0 {
            break;
        }
        (size, unit) = (size / 1000.0, larger);
    }
    if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") }
}
