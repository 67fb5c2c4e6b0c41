//! A key template as a person writes it, before the types of its fields are known.

use super::path::Path;

/// `approval:index:requester:{requester_id}:{created_at desc}:{id}`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// As it was written.
    pub(crate) source: String,
    /// Literals (never empty, never two in a row) and placeholders.
    pub(crate) parts: Vec<PatternPart>,
}

/// One part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternPart {
    /// Text that stands for itself.
    Literal(String),
    /// `{path modifiers}`.
    Placeholder(Placeholder),
}

/// `{path}`, `{path desc}`, `{path sorted}`, `{path raw}`, `{path geohash 6}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    /// Which value of the record.
    pub(crate) path: Path,
    /// `desc`: highest first.
    pub(crate) desc: bool,
    /// `sorted`: text with an order.
    pub(crate) sorted: bool,
    /// `raw`: the rest of the key, never escaped.
    pub(crate) raw: bool,
    /// `geohash n`: a place, in so many characters.
    pub(crate) geohash: Option<u8>,
}

impl Pattern {
    /// Reads a pattern; the error is a sentence that says what is wrong, and where.
    pub(crate) fn parse(_source: &str) -> Result<Self, String> {
        todo!()
    }

    /// The paths of all placeholders, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            PatternPart::Literal(_) => None,
            PatternPart::Placeholder(placeholder) => Some(&placeholder.path),
        })
    }
}
