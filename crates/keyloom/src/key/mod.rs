//! Bytes whose order is meaning: paths into records, codecs, templates and ranges.

mod kind;
mod overlap;
mod path;
mod pattern;
mod template;

pub(crate) use kind::{CodePattern, Kind};
pub(crate) use overlap::common_key;
pub(crate) use path::{Path, Step};
pub(crate) use pattern::{Pattern, PatternPart, Placeholder};
pub(crate) use template::{Codec, KeyRange, KeyRefusal, Segment, Span, Template, TemplatePart};
