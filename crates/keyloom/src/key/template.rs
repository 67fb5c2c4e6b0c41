//! Typed key templates: turn values into keys, and keys into values.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::automaton::Automaton;
use super::codec::Codec;
use super::kind::Kind;
use super::path::Path;
use super::pattern::Pattern;
use super::refusal::{KeyRefusal, check_length};
use super::typing;
use crate::engine::{Direction, KEY_BYTES_MAX, Range, after_prefix};

/// One typed placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) path: Path,
    pub(crate) codec: Codec,
    pub(crate) desc: bool,
    /// The byte that ends the segment, and that its text therefore escapes. It is the first byte of
    /// the literal that follows, or, for a trailing segment, the last byte of the literal before
    /// it. Only ASCII punctuation can be a separator.
    pub(crate) separator: Option<u8>,
}

/// One part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    Literal(String),
    Segment(Segment),
}

/// A typed key template.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) source: String,
    pub(crate) parts: Vec<TemplatePart>,
    /// Recognises the keys of the template, and finds prefixes that no key has.
    pub(super) automaton: Arc<Automaton>,
}

/// The automaton is not compared, since it follows from the parts.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.parts == other.parts
    }
}

impl Eq for Template {}

impl Template {
    /// Adds types to a pattern. The error lists all problems, each as a sentence.
    pub(crate) fn new(
        pattern: &Pattern,
        kind_of: impl Fn(&Path) -> Option<Kind>,
    ) -> Result<Self, Vec<String>> {
        let parts = typing::type_parts(pattern, kind_of)?;
        let automaton = Arc::new(Automaton::of(&parts));
        Ok(Template { source: pattern.source.clone(), parts, automaton })
    }

    /// The literal that every key begins with.
    pub(crate) fn first_literal(&self) -> &str {
        match self.parts.first() {
            Some(TemplatePart::Literal(text)) => text,
            _ => "",
        }
    }

    /// The segments, in order.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Segment(segment) => Some(segment),
        })
    }

    /// The key for one value per segment, in order.
    pub(crate) fn encode(&self, values: &[&Value]) -> Result<Bytes, KeyRefusal> {
        let expected = self.segments().count();
        if values.len() != expected {
            let reason = format!("this key has {expected} fields, and {} came", values.len());
            return Err(KeyRefusal::of_key(values, reason));
        }
        let key = self.write_up_to(values)?;
        check_length(key.len(), |reason| self.refuse_length(values, reason))?;
        // Memory of exactly the needed size can be shared later without allocating a counter now.
        Ok(key.into_boxed_slice().into())
    }

    /// The refusal of a key that is too long, or empty. It blames the longest text.
    fn refuse_length(&self, values: &[&Value], reason: String) -> KeyRefusal {
        let texts = self
            .segments()
            .zip(values)
            .filter_map(|(segment, value)| value.as_str().map(|text| (text.len(), segment, value)));
        match texts.max_by_key(|(bytes, ..)| *bytes) {
            Some((_, segment, value)) => segment.refuse(value, reason),
            None => KeyRefusal::of_key(values, reason),
        }
    }

    /// The values in a key; `None` if it is not a key of this template.
    pub(crate) fn decode(&self, key: &[u8]) -> Option<Vec<Value>> {
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return None;
        }
        let mut rest = key;
        let mut values = Vec::with_capacity(self.parts.len().div_ceil(2));
        for (place, part) in self.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(literal) => rest = rest.strip_prefix(literal.as_bytes())?,
                TemplatePart::Segment(segment) => {
                    let last = place + 1 == self.parts.len();
                    let (value, tail) =
                        segment.codec.read(rest, segment.desc, segment.separator, last)?;
                    values.push(value);
                    rest = tail;
                }
            }
        }
        rest.is_empty().then_some(values)
    }

    /// The common prefix of all keys with these first values, including the literal after them.
    pub(crate) fn prefix(&self, equal: &[&Value]) -> Result<Bytes, KeyRefusal> {
        let segments = self.segments().count();
        if equal.len() > segments {
            let reason = format!("this key has {segments} fields, and {} came", equal.len());
            return Err(KeyRefusal::of_key(equal, reason));
        }
        let prefix = self.write_up_to(equal)?;
        // The empty prefix is valid: every key has it.
        check_length(prefix.len().max(1), |reason| self.refuse_length(equal, reason))?;
        Ok(prefix.into())
    }

    /// Everything before the first segment without a value.
    fn write_up_to(&self, values: &[&Value]) -> Result<Vec<u8>, KeyRefusal> {
        let mut key = Vec::with_capacity(self.source.len().max(64));
        let mut values = values.iter();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(literal) => key.extend_from_slice(literal.as_bytes()),
                TemplatePart::Segment(segment) => match values.next() {
                    Some(value) => segment.write(value, &mut key)?,
                    None => break,
                },
            }
        }
        Ok(key)
    }

    /// The rest of `range` after a key that belongs to another template. It finds the shortest
    /// prefix of that key that no key of this template has, and skips all keys with that prefix.
    pub(crate) fn skip(&self, range: &Range, foreign: &[u8], direction: Direction) -> Range {
        let Some(dead) = self.automaton.shortest_dead_prefix(foreign) else {
            return range.after(foreign, direction);
        };
        match (direction, after_prefix(dead)) {
            (Direction::Forward, Some(start)) => {
                Range { start: start.max(range.start.clone()), ..range.clone() }
            }
            (Direction::Forward, None) => Range { end: Some(range.start.clone()), ..range.clone() },
            (Direction::Backward, _) => {
                let end = Bytes::copy_from_slice(dead);
                let end =
                    range.end.as_ref().map_or(end.clone(), |old| end.clone().min(old.clone()));
                Range { end: Some(end), ..range.clone() }
            }
        }
    }
}

impl Segment {
    /// Appends a value.
    pub(super) fn write(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), KeyRefusal> {
        self.codec
            .write(value, self.desc, self.separator, out)
            .map_err(|reason| self.refuse(value, reason))
    }

    /// Appends a value of an enum without looking it up: for a long enum, looking up each of its
    /// values would take as many comparisons again.
    pub(super) fn write_name(&self, name: &str, out: &mut Vec<u8>) {
        self.codec.write_whole_text(name, self.desc, self.separator, out);
    }

    pub(super) fn refuse(&self, value: &Value, reason: String) -> KeyRefusal {
        let refusal = KeyRefusal::of_field(&self.path, value, reason);
        match self.codec {
            Codec::Float => refusal.of_float(value),
            _ => refusal,
        }
    }
}
