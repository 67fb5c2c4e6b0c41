//! Problems of a schema, each with its path and, if the text is known, its position.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// The names from the root of the schema down to a value.
pub(crate) type Trail = Vec<String>;

/// Which part of `name = value` is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Name,
    Value,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    trail: Trail,
    side: Side,
    message: String,
    location: Option<Location>,
}

/// The text of a problem, and the position in it if that is known. A text without a name came from
/// the program, not from a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Location {
    source: Arc<str>,
    place: Option<TextPosition>,
}

/// All problems, in the order of discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

/// A position in a text, counted from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TextPosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Where a name and its value begin, if that is known.
#[derive(Clone, Debug)]
struct Spot {
    source: Arc<str>,
    places: Option<(TextPosition, TextPosition)>,
}

/// The positions of everything that was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<Trail, Spot>);

impl Places {
    /// Records which text a value came from, and, if known, where its name and value begin.
    pub(crate) fn insert(
        &mut self,
        trail: Trail,
        source: &Arc<str>,
        at: Option<(TextPosition, TextPosition)>,
    ) {
        self.0.insert(trail, Spot { source: Arc::clone(source), places: at });
    }

    /// Adds the positions in another text. A trail in both keeps its first position.
    pub(crate) fn extend(&mut self, other: Places) {
        for (trail, spot) in other.0 {
            self.0.entry(trail).or_insert(spot);
        }
    }

    /// The position of a problem's subject, or of its nearest ancestor that has one.
    fn find(&self, problem: &Problem) -> Option<Location> {
        let trail = &problem.trail;
        let spot = (0..=trail.len()).rev().find_map(|length| self.0.get(&trail[..length]))?;
        let place = spot.places.map(|(name, value)| match problem.side {
            Side::Name => name,
            Side::Value => value,
        });
        Some(Location { source: Arc::clone(&spot.source), place })
    }
}

impl Problems {
    /// Adds a problem with the value at the trail.
    pub(crate) fn add(&mut self, trail: Trail, message: impl Into<String>) {
        self.push(trail, Side::Value, message.into(), None);
    }

    /// Adds a problem with the name at the end of the trail.
    pub(crate) fn add_to_name(&mut self, trail: Trail, message: impl Into<String>) {
        self.push(trail, Side::Name, message.into(), None);
    }

    /// Adds a problem with a whole text, before any value is known.
    pub(crate) fn add_to_text(
        &mut self,
        source: &Arc<str>,
        place: Option<TextPosition>,
        message: impl Into<String>,
    ) {
        let location = Location { source: Arc::clone(source), place };
        self.push(Trail::new(), Side::Value, message.into(), Some(location));
    }

    fn push(&mut self, trail: Trail, side: Side, message: String, location: Option<Location>) {
        self.0.push(Problem { trail, side, message, location });
    }

    /// Adds positions to all problems without one.
    pub(crate) fn locate(&mut self, places: &Places) {
        for problem in &mut self.0 {
            if problem.location.is_none() {
                problem.location = places.find(problem);
            }
        }
    }

    /// Adds all problems of another list.
    pub(crate) fn extend(&mut self, other: Problems) {
        self.0.extend(other.0);
    }

    /// Whether there is a problem at the trail or below it.
    pub(crate) fn touch(&self, trail: &[String]) -> bool {
        self.0.iter().any(|problem| problem.trail.starts_with(trail))
    }

    /// Whether there is a problem at the trail itself.
    pub(crate) fn touch_exactly(&self, trail: &[String]) -> bool {
        self.0.iter().any(|problem| problem.trail == trail)
    }

    /// The members of the value at the trail that have problems.
    pub(crate) fn names_under(&self, trail: &[String]) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |problem| problem.trail.starts_with(trail))
            .filter_map(|problem| problem.trail.get(trail.len()))
            .map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One error that lists all problems, in the order of the texts.
    pub(crate) fn into_error(mut self) -> Error {
        self.0.sort_by(|a, b| a.location.cmp(&b.location));
        let error = Error::new(ErrorKind::InvalidSchema, "the schema has problems");
        self.0.iter().fold(error, |error, problem| error.with("problem", problem))
    }
}

impl fmt::Display for Problem {
    /// `keyloom.toml:12:7: collection.approval.key: the sentence`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            location.fmt(f)?;
        }
        if !self.trail.is_empty() {
            write!(f, "{}: ", ShowTrail(&self.trail))?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.source, self.place) {
            ("", None) => Ok(()),
            ("", Some(TextPosition { line, column })) => {
                write!(f, "line {line}, column {column}: ")
            }
            (source, None) => write!(f, "{source}: "),
            (source, Some(TextPosition { line, column })) => {
                write!(f, "{source}:{line}:{column}: ")
            }
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { "; " };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

/// A trail as it would be written in TOML: `collection.post.fields."tags.*"`.
pub(crate) struct ShowTrail<'a>(pub(crate) &'a [String]);

impl fmt::Display for ShowTrail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            let is_bare = !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
            if is_bare { f.write_str(name)? } else { write!(f, "{name:?}")? }
        }
        Ok(())
    }
}
