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
}

/// Everything that is wrong, in the order of discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

/// A place in a text, counted from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Where in which text a name and its value stand.
#[derive(Clone, Debug)]
struct Spot {
    source: Arc<str>,
    places: Option<(Place, Place)>,
}

/// Where everything that was read stands. A source without a name is a text that the program
/// gave, without a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(BTreeMap<Trail, Spot>);

impl Places {
    /// Remembers which file a value came from, and where name and value begin in it if known.
    pub(crate) fn insert(&mut self, trail: Trail, source: &Arc<str>, at: Option<(Place, Place)>) {
        self.0.insert(trail, Spot { source: Arc::clone(source), places: at });
    }

    /// Adds the places of another text. What both have keeps its first place.
    pub(crate) fn extend(&mut self, other: Places) {
        for (trail, spot) in other.0 {
            self.0.entry(trail).or_insert(spot);
        }
    }

    /// The spot of the trail, or of the nearest thing above it that has one.
    fn find(&self, problem: &Problem) -> Option<(&str, Option<Place>)> {
        let trail = &problem.trail;
        let (length, spot) = (0..=trail.len())
            .rev()
            .find_map(|length| Some((length, self.0.get(&trail[..length])?)))?;
        let exact = length == trail.len();
        let place = spot.places.map(|(name, value)| match problem.side {
            Side::Value if exact => value,
            _ => name,
        });
        Some((&spot.source, place))
    }
}

impl Problems {
    /// Adds a problem with the value at the trail.
    pub(crate) fn add(&mut self, trail: Trail, message: impl Into<String>) {
        self.0.push(Problem { trail, side: Side::Value, message: message.into() });
    }

    /// Adds a problem with the name at the end of the trail.
    pub(crate) fn add_to_name(&mut self, trail: Trail, message: impl Into<String>) {
        self.0.push(Problem { trail, side: Side::Name, message: message.into() });
    }

    /// Whether anything at or under the trail is wrong.
    pub(crate) fn touch(&self, trail: &[String]) -> bool {
        self.0.iter().any(|problem| problem.trail.starts_with(trail))
    }

    /// Whether anything is wrong with exactly what the trail names.
    pub(crate) fn touch_exactly(&self, trail: &[String]) -> bool {
        self.0.iter().any(|problem| problem.trail == trail)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one error that tells all of them, in the order of the text.
    pub(crate) fn into_error(self, places: &Places) -> Error {
        let mut located: Vec<_> =
            self.0.iter().map(|problem| (places.find(problem), problem)).collect();
        located.sort_by(|(a, _), (b, _)| a.cmp(b));
        let error = Error::new(ErrorKind::InvalidSchema, "the schema has problems");
        located.into_iter().fold(error, |error, (found, problem)| {
            error.with("problem", Located { found, problem })
        })
    }
}

/// `keyloom.toml:12:7: collection.approval.key: the sentence`.
struct Located<'a> {
    found: Option<(&'a str, Option<Place>)>,
    problem: &'a Problem,
}

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found {
            None | Some(("", None)) => {}
            Some(("", Some(place))) => write!(f, "line {place}: ")?,
            Some((source, None)) => write!(f, "{source}: ")?,
            Some((source, Some(place))) => write!(f, "{source}:{place}: ")?,
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.trail.is_empty() {
            write!(f, "{}: ", ShowTrail(&self.trail))?;
        }
        f.write_str(&self.message)
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
