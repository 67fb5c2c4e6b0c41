//! What is wrong with a schema: every problem, each with its path and, where the text is known,
//! its place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// The names from the root of the schema down to a value.
pub(crate) type Trail = Vec<String>;

/// Which part of `name = value` is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Name,
    Value,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    trail: Trail,
    side: Side,
    message: String,
    location: Option<Location>,
}

/// In which text, and where in it if that is known. A text without a name is one that the
/// program gave, not a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Location {
    source: Arc<str>,
    place: Option<TextPosition>,
}

/// Everything that is wrong, in the order of discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

/// A place in a text, counted from 1. Columns count characters.
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

/// Where everything that was read stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<Trail, Spot>);

impl Places {
    /// Remembers which text a value came from, and where name and value begin in it if known.
    pub(crate) fn insert(
        &mut self,
        trail: Trail,
        source: &Arc<str>,
        at: Option<(TextPosition, TextPosition)>,
    ) {
        self.0.insert(trail, Spot { source: Arc::clone(source), places: at });
    }

    /// Adds the places of another text. What both have keeps its first place.
    pub(crate) fn extend(&mut self, other: Places) {
        for (trail, spot) in other.0 {
            self.0.entry(trail).or_insert(spot);
        }
    }

    /// The place of what the problem is about, or of the nearest thing above that has one.
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

    /// Adds a problem with a text as such, where no value is known yet.
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

    /// Gives a place to every problem that has none yet.
    pub(crate) fn locate(&mut self, places: &Places) {
        for problem in &mut self.0 {
            if problem.location.is_none() {
                problem.location = places.find(problem);
            }
        }
    }

    /// Adds all of another list.
    pub(crate) fn extend(&mut self, other: Problems) {
        self.0.extend(other.0);
    }

    /// Whether anything at or under the trail is wrong.
    pub(crate) fn touch(&self, trail: &[String]) -> bool {
        self.0.iter().any(|problem| problem.trail.starts_with(trail))
    }

    /// Whether anything is wrong with what the trail names itself, not with what is under it.
    pub(crate) fn touch_exactly(&self, trail: &[String]) -> bool {
        self.0.iter().any(|problem| problem.trail == trail)
    }

    /// The members of what the trail names that anything is wrong with.
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

    /// The one error that tells all of them, in the order of the texts.
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
