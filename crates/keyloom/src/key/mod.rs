//! Keys as bytes in the order of their values: paths into records, codecs, templates and ranges.
//!
//! A [`Pattern`] is a template as a person wrote it; a [`Template`] adds the types. A template
//! turns values into a key and back ([`template`], [`codec`]), and into ranges ([`span`]). It knows
//! which prefixes none of its keys has ([`automaton`]), whether it shares a key with another
//! template ([`overlap`]), and how an index entry's key becomes the record's ([`recipe`]).

mod automaton;
mod class;
mod codec;
mod fault;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod geohash;
mod kind;
mod moment;
mod overlap;
mod path;
mod pattern;
mod recipe;
mod refusal;
mod span;
mod template;
#[cfg(test)]
mod tests;
mod typing;

pub(crate) use codec::Codec;
pub(crate) use codec::alphabet::CODE_ALPHABET;
pub(crate) use codec::number::{asked_float, whole_of};
pub(crate) use geohash::{LETTERS as GEOHASH_LETTERS, geohash_bounds, geohash_encode};
pub(crate) use kind::{CodePattern, Kind};
pub(crate) use moment::{YEAR_0_MS, YEAR_10000_MS, datetime_of, millis_of};
pub(crate) use overlap::common_key;
pub(crate) use path::{Path, Step};
pub(crate) use pattern::Pattern;
pub(crate) use recipe::recipe;
pub(crate) use refusal::{KeyRefusal, shortened};
pub(crate) use span::Span;
pub(crate) use template::{Segment, Template, TemplatePart};
#[cfg(test)]
pub(crate) use tests::cases;
