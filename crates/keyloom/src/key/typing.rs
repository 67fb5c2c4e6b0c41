//! Combines a pattern with the types of its fields into the parts of a template, or lists all
//! problems.

use std::collections::HashSet;

use super::codec::Codec;
use super::kind::{CodePattern, Kind};
use super::path::Path;
use super::pattern::{Pattern, PatternPart, Placeholder};
use super::template::{Segment, TemplatePart};
use crate::engine::KEY_BYTES_MAX;

/// The typed parts of a pattern, or everything that is wrong with it.
pub(super) fn type_parts(
    pattern: &Pattern,
    kind_of: impl Fn(&Path) -> Option<Kind>,
) -> Result<Vec<TemplatePart>, Vec<String>> {
    let mut problems = Vec::new();
    if pattern.parts.is_empty() {
        problems.push("the template is empty".into());
    }
    let mut seen = HashSet::new();
    for path in pattern.paths() {
        if !seen.insert(path) {
            problems.push(format!("the field `{path}` stands twice in `{}`", pattern.source));
        }
    }
    let mut parts = Vec::with_capacity(pattern.parts.len());
    for (place, part) in pattern.parts.iter().enumerate() {
        match part {
            PatternPart::Literal(literal) => parts.push(TemplatePart::Literal(literal.clone())),
            PatternPart::Placeholder(placeholder) => {
                let after = pattern.parts.get(place + 1);
                let before = place.checked_sub(1).and_then(|before| pattern.parts.get(before));
                match type_segment(placeholder, before, after, &kind_of) {
                    Ok(segment) => parts.push(TemplatePart::Segment(segment)),
                    Err(reasons) => problems
                        .extend(reasons.iter().map(|reason| format!("`{placeholder}`: {reason}"))),
                }
            }
        }
    }
    if problems.is_empty() && parts.iter().map(length_min).sum::<usize>() > KEY_BYTES_MAX {
        problems.push(format!("every key would have more than {KEY_BYTES_MAX} bytes"));
    }
    if problems.is_empty() { Ok(parts) } else { Err(problems) }
}

fn type_segment(
    placeholder: &Placeholder,
    before: Option<&PatternPart>,
    after: Option<&PatternPart>,
    kind_of: &impl Fn(&Path) -> Option<Kind>,
) -> Result<Segment, Vec<String>> {
    let mut problems = Vec::new();
    if placeholder.raw && after.is_some() {
        problems.push("`raw` is the rest of the key, so nothing can follow it".into());
    }
    let kind = kind_of(&placeholder.path);
    let codec = match kind.ok_or_else(|| "the field is not declared".into()) {
        Ok(kind) => codec_of(placeholder, kind),
        Err(undeclared) => Err(undeclared),
    };
    let codec = match codec {
        Ok(codec) => codec,
        Err(reason) => {
            problems.push(reason);
            return Err(problems);
        }
    };
    let segment = Segment {
        path: placeholder.path.clone(),
        desc: placeholder.desc,
        separator: separator(before, after),
        codec,
    };
    problems.extend(check_codec(&segment.codec));
    if segment.codec.needs_separator(segment.desc) {
        problems.extend(check_separator(after, segment.separator));
    }
    if problems.is_empty() {
        problems.extend(check_enum_order(&segment, after));
    }
    if problems.is_empty() { Ok(segment) } else { Err(problems) }
}

/// The codec for a type with these modifiers, or the reason why there is none.
fn codec_of(placeholder: &Placeholder, kind: Kind) -> Result<Codec, String> {
    let Placeholder { sorted, raw, desc, geohash, .. } = *placeholder;
    if (sorted || raw) && kind != Kind::Text {
        let modifier = if sorted { "sorted" } else { "raw" };
        return Err(format!("`{modifier}` is for text, and the field is {}", name_of(&kind)));
    }
    if geohash.is_some() && !matches!(kind, Kind::Point { .. }) {
        return Err(format!("`geohash` is for points, and the field is {}", name_of(&kind)));
    }
    Ok(match kind {
        Kind::Text => match (sorted, raw, desc) {
            (true, true, _) => return Err("`sorted` and `raw` exclude each other".into()),
            (false, true, true) => {
                return Err("`raw` cannot be `desc`; write `sorted desc` instead".into());
            }
            (false, false, true) => {
                return Err("plain text has no order; write `sorted desc` instead".into());
            }
            (true, false, _) => Codec::SortedText,
            (false, true, false) => Codec::Raw,
            (false, false, false) => Codec::Text,
        },
        Kind::Point { lat, lon } => match geohash {
            Some(chars) => Codec::Geohash { chars, lat, lon },
            None => return Err("a point needs a number of characters: `geohash 6`".into()),
        },
        other => other.plain_codec(),
    })
}

fn name_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Integer { .. } => "an integer",
        Kind::Float => "a float",
        Kind::Boolean => "a boolean",
        Kind::Enum { .. } => "an enum",
        Kind::Timestamp => "a timestamp",
        Kind::DateTime => "a date-time",
        Kind::Uuid { .. } => "a UUID",
        Kind::Id => "an id",
        Kind::Code(_) => "a code",
        Kind::Point { .. } => "a point",
    }
}

/// Why no key can hold this type; `None` if keys can.
fn check_codec(codec: &Codec) -> Option<String> {
    match codec {
        Codec::Integer { digits } if !(1..=19).contains(digits) => {
            Some(format!("an integer has 1 to 19 digits, not {digits}"))
        }
        Codec::Uuid { version: Some(version) } if !(1..=8).contains(version) => {
            Some(format!("UUIDs have the versions 1 to 8, not {version}"))
        }
        Codec::Code(CodePattern(pattern)) if pattern.is_empty() => {
            Some("the pattern of the code is empty".into())
        }
        Codec::Enum { values } if values.is_empty() => Some("the enum has no values".into()),
        _ => None,
    }
}

/// The byte that the texts of a segment escape.
fn separator(before: Option<&PatternPart>, after: Option<&PatternPart>) -> Option<u8> {
    let byte = match (before, after) {
        (_, Some(PatternPart::Literal(after))) => after.bytes().next(),
        (Some(PatternPart::Literal(before)), None) => before.bytes().last(),
        _ => None,
    };
    byte.filter(u8::is_ascii_punctuation)
}

/// Checks the literal after a text. It marks the text's end, so it must begin with a byte that the
/// text can escape and that no escape contains.
fn check_separator(after: Option<&PatternPart>, separator: Option<u8>) -> Option<String> {
    match (after, separator) {
        (Some(PatternPart::Placeholder(next)), _) => Some(format!(
            "nothing says where it ends; put a literal such as `:` between it and `{next}`"
        )),
        (Some(PatternPart::Literal(literal)), None) => Some(format!(
            "what follows it must begin with ASCII punctuation such as `:`, but `{literal}` does \
             not"
        )),
        _ => None,
    }
}

/// Checks that an enum sorts in the order of its names. Escaping, or a separator above other
/// characters, can break that order; such an enum is refused rather than sorted wrongly.
fn check_enum_order(segment: &Segment, after: Option<&PatternPart>) -> Option<String> {
    let Codec::Enum { values } = &segment.codec else { return None };
    let following = match after {
        Some(PatternPart::Literal(literal)) => literal.as_bytes(),
        _ => &[],
    };
    let mut names: Vec<&String> = values.iter().collect();
    names.sort();
    names.dedup();
    let mut written: Vec<(Vec<u8>, &str)> = Vec::with_capacity(names.len());
    for name in names {
        let mut out = Vec::new();
        segment.write_name(name, &mut out);
        out.extend_from_slice(following);
        written.push((out, name));
    }
    let (before, behind) = written
        .windows(2)
        .map(|pair| (&pair[0], &pair[1]))
        .find(|(before, behind)| (before.0 < behind.0) == segment.desc)?;
    Some(format!(
        "in keys the value `{}` would not be sorted as it is by name against `{}`; rename one, or \
         choose another separator",
        before.1, behind.1
    ))
}

fn length_min(part: &TemplatePart) -> usize {
    match part {
        TemplatePart::Literal(literal) => literal.len(),
        TemplatePart::Segment(segment) => match &segment.codec {
            Codec::Integer { digits } => usize::from(*digits),
            codec => codec.width().unwrap_or_default(),
        },
    }
}
