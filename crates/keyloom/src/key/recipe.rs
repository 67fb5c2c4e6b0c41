//! Converts the key of an index entry to the key of its record, by bytes only.
//!
//! | segment of the index | segment of the record | part |
//! | --- | --- | --- |
//! | any | the same codec, direction and separator | the bytes as they are |
//! | text, enum | text, enum with another separator | escaped anew |
//! | sorted text, ascending | text | escaped anew |
//!
//! Every other conversion (`raw` from `text`, a change of direction) needs more than the bytes, and
//! has no recipe: the reader then decodes the entry's key.

use bytes::Bytes;

use super::codec::Codec;
use super::template::{Segment, Template, TemplatePart};
use crate::engine::{Area, Cut, Part, Recipe};

/// The recipe from the keys of `index` to those of `record`. It exists if the index's key has every
/// segment of the record's key, in a form that can be converted by bytes only.
pub(crate) fn recipe(index: &Template, record: &Template, area: Area) -> Option<Recipe> {
    let mut cuts = Cuts::of(index);
    let mut parts = Vec::new();
    let mut needed = 0;
    for part in &record.parts {
        match part {
            TemplatePart::Literal(literal) => push_literal(&mut parts, literal.as_bytes()),
            TemplatePart::Segment(target) => {
                let (field, source) = cuts.field_of(target)?;
                needed = needed.max(field + 1);
                parts.push(carry_over(source, target, field)?);
                if let Some(terminator) = target.codec.terminator(target.desc) {
                    push_literal(&mut parts, &[terminator]);
                }
            }
        }
    }
    cuts.cuts.truncate(needed);
    Some(Recipe { area, cuts: cuts.cuts, parts })
}

/// How the bytes of a field, without its terminator, become those of the record's segment.
fn carry_over(source: &Segment, target: &Segment, field: usize) -> Option<Part> {
    let alike = source.codec == target.codec && source.desc == target.desc;
    let escapes = target.codec.needs_separator(target.desc);
    let is_sorted = source.codec == Codec::SortedText && !source.desc;
    if alike && (!escapes || source.separator == target.separator) {
        Some(Part::Field(field))
    } else if alike || is_sorted && target.codec == Codec::Text {
        Some(Part::Recoded { field, separator: target.separator })
    } else {
        None
    }
}

fn push_literal(parts: &mut Vec<Part>, literal: &[u8]) {
    match parts.last_mut() {
        Some(Part::Literal(before)) => *before = [before, literal].concat().into(),
        _ => parts.push(Part::Literal(Bytes::copy_from_slice(literal))),
    }
}

/// How to cut the keys of an index, as far as bytes alone can tell.
struct Cuts<'t> {
    cuts: Vec<Cut>,
    fields: Vec<(usize, &'t Segment)>,
}

impl<'t> Cuts<'t> {
    fn of(index: &'t Template) -> Self {
        let mut found = Cuts { cuts: Vec::new(), fields: Vec::new() };
        for (place, part) in index.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(literal) => found.cuts.push(Cut::Fixed(literal.len())),
                TemplatePart::Segment(segment) => {
                    let Some(cut) = cut_of(segment, index.parts.get(place + 1)) else { break };
                    found.fields.push((found.cuts.len(), segment));
                    found.cuts.push(cut);
                    if segment.codec.terminator(segment.desc).is_some() {
                        found.cuts.push(Cut::Fixed(1));
                    }
                }
            }
        }
        found
    }

    fn field_of(&self, target: &Segment) -> Option<(usize, &'t Segment)> {
        self.fields.iter().find(|(_, source)| source.path == target.path).copied()
    }
}

/// The cut that ends with the segment, if bytes alone show where it ends.
fn cut_of(segment: &Segment, after: Option<&TemplatePart>) -> Option<Cut> {
    if let Some(terminator) = segment.codec.terminator(segment.desc) {
        return Some(Cut::Until(terminator));
    }
    if let Some(width) = segment.codec.width() {
        return Some(Cut::Fixed(width));
    }
    match after {
        None => Some(Cut::Rest),
        // The width of an integer depends on its sign, so it ends at a byte that no integer
        // contains.
        Some(TemplatePart::Literal(literal)) if matches!(segment.codec, Codec::Integer { .. }) => {
            let next = literal.bytes().next();
            next.filter(|byte| !byte.is_ascii_digit() && *byte != b'-').map(Cut::Until)
        }
        Some(TemplatePart::Literal(_)) => segment.separator.map(Cut::Until),
        Some(TemplatePart::Segment(_)) => None,
    }
}
