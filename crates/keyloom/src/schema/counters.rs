//! The counters of a collection: single ones, and open families such as `stats.*`.
//!
//! A counter's name is its path in the record, such as `stats.running`. It is not a field: its
//! value is stored beside the record, and shown at its path when the record is read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::table::did_you_mean;
use crate::engine::{Addition, COUNTER_NAME_BYTES_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Path, Step, shortened};

/// The bounds of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
}

/// The declared counters of one collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    exact: BTreeMap<String, Bounds>,
    /// By the name before `.*`.
    families: BTreeMap<String, Bounds>,
    /// The objects that show counters.
    holders: BTreeSet<String>,
}

impl Counters {
    /// Adds a declared counter. Its path has no `*`, or one at its end.
    pub(super) fn insert(&mut self, path: &Path, bounds: Bounds) {
        match path.star() {
            None => self.exact.insert(path.to_string(), bounds),
            Some(family) => self.families.insert(family.to_string(), bounds),
        };
        let above = (1..path.0.len()).map(|length| Path(path.0[..length].to_vec()));
        self.holders.extend(above.map(|path| path.to_string()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.families.is_empty()
    }

    /// The bounds of a counter; `None` if there is no counter with this name. An exact name takes
    /// precedence over a family.
    pub(crate) fn bounds(&self, name: &str) -> Option<Bounds> {
        self.exact.get(name).copied().or_else(|| {
            let (bounds, member) = self.family_of(name)?;
            let is_name = name.len() <= COUNTER_NAME_BYTES_MAX
                && !matches!(member, "" | "*" | "*key")
                && !member.chars().any(char::is_control);
            is_name.then_some(bounds)
        })
    }

    /// The bounds of the family that a name belongs to, and the rest of the name, dots included.
    /// Families are never nested.
    fn family_of<'n>(&self, name: &'n str) -> Option<(Bounds, &'n str)> {
        name.match_indices('.').find_map(|(dot, _)| {
            let bounds = self.families.get(&name[..dot])?;
            Some((*bounds, &name[dot + 1..]))
        })
    }

    /// The path at which a record shows a counter.
    pub(crate) fn path_of<'n>(&self, name: &'n str) -> impl Iterator<Item = &'n str> {
        let member = match self.exact.contains_key(name) {
            true => None,
            false => self.family_of(name).map(|(_, member)| member),
        };
        let above = match member {
            Some(member) => &name[..name.len() - member.len() - 1],
            None => name,
        };
        above.split('.').chain(member)
    }

    /// The declared counters that are shown at this path or in the object there.
    pub(crate) fn names_at(&self, path: &str) -> Vec<String> {
        let place = Path(path.split('.').map(|name| Step::Name(name.into())).collect());
        let meets = |pattern: &Path| meet(&place.0, &pattern.0).is_some();
        self.patterns().filter(meets).map(|pattern| pattern.to_string()).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.bounds(name).is_some()
    }

    /// The counters that every record has.
    pub(crate) fn exact_names(&self) -> impl Iterator<Item = &str> {
        self.exact.keys().map(String::as_str)
    }

    /// Whether every member of the object at this path is a counter.
    pub(crate) fn is_family(&self, path: &str) -> bool {
        self.families.contains_key(path)
    }

    /// Whether counters are shown in the object at this path.
    pub(crate) fn is_holder(&self, path: &str) -> bool {
        self.holders.contains(path)
    }

    /// Whether a query for this path is a query for counters.
    pub(crate) fn is_asked_by(&self, path: &Path) -> bool {
        self.patterns().any(|pattern| {
            matches!(meet(&path.0, &pattern.0), Some(Meeting::Same | Meeting::Below))
        })
    }

    /// How a path relates to a counter; `None` if no counter is near it.
    pub(crate) fn meeting(&self, path: &Path) -> Option<Meeting> {
        self.patterns().find_map(|pattern| meet(&path.0, &pattern.0))
    }

    /// The addition to a counter; an error if there is no counter with this name.
    pub(crate) fn addition(&self, name: &str, delta: i64) -> Result<Addition> {
        let Some(Bounds { min, max }) = self.bounds(name) else {
            return Err(self.unknown(name));
        };
        Ok(Addition { name: name.to_owned(), delta, min, max })
    }

    fn unknown(&self, name: &str) -> Error {
        let known: Vec<String> = self.patterns().map(|path| path.to_string()).collect();
        let message = match known.is_empty() {
            true => "the collection declares no counters",
            false if self.family_of(name).is_some() => {
                "the name of a counter in a family is not empty, not `*` or `*key`, and has no \
                 control characters; with the family's it has at most 255 bytes"
            }
            false => "the collection has no counter of that name",
        };
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = match self.family_of(name) {
            Some(_) => String::new(),
            None => did_you_mean(name, &names),
        };
        let error =
            Error::new(ErrorKind::InvalidArgument, message).with("counter", shown_name(name));
        match known.is_empty() {
            true => error,
            false => error.with("known", format_args!("{}{hint}", known.join(", "))),
        }
    }

    /// Every declared name; families have their `*`.
    fn patterns(&self) -> impl Iterator<Item = Path> {
        let path = |name: &String| Path(name.split('.').map(|n| Step::Name(n.into())).collect());
        let family = move |name: &String| {
            let mut pattern = path(name);
            pattern.0.push(Step::Each);
            pattern
        };
        self.exact.keys().map(path).chain(self.families.keys().map(family))
    }
}

/// A name for a message: shortened if it is too long or has control characters.
fn shown_name(name: &str) -> String {
    let is_plain = name.len() <= COUNTER_NAME_BYTES_MAX && !name.chars().any(char::is_control);
    if is_plain { name.to_owned() } else { shortened(&Value::from(name)) }
}

/// How two paths, possibly with a `*`, relate within one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// They can name the same value.
    Same,
    /// The first can lead into what the second names.
    Below,
    /// The second can lead into what the first names.
    Above,
}

/// How two paths relate within one record; `None` if they never meet.
pub(crate) fn meet(one: &[Step], other: &[Step]) -> Option<Meeting> {
    let fits = |(a, b): (&Step, &Step)| match (a, b) {
        (Step::Name(a), Step::Name(b)) => a == b,
        _ => true,
    };
    one.iter().zip(other).all(fits).then(|| match one.len().cmp(&other.len()) {
        std::cmp::Ordering::Equal => Meeting::Same,
        std::cmp::Ordering::Greater => Meeting::Below,
        std::cmp::Ordering::Less => Meeting::Above,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn counters(names: &[(&str, Option<i64>)]) -> Counters {
        let mut counters = Counters::default();
        for (name, min) in names {
            counters.insert(&Path::parse(name).unwrap(), Bounds { min: *min, max: None });
        }
        counters
    }

    #[test]
    fn an_exact_name_wins_over_a_family() {
        let counters = counters(&[("stats.*", Some(0)), ("stats.free", None), ("count", Some(-3))]);
        let min = |name: &str| counters.bounds(name).map(|bounds| bounds.min);
        assert_eq!(min("stats.free"), Some(None));
        assert_eq!(min("stats.other"), Some(Some(0)));
        assert_eq!(min("count"), Some(Some(-3)));
        let long = format!("stats.{}", "n".repeat(250));
        for unknown in ["stats", "stats.", "stats.*", "stats.*key", "stats.a\n", "x", "", &long] {
            assert_eq!(min(unknown), None, "{unknown}");
        }
        for any in ["stats.a.b", "stats.a b", "stats.{a}", "stats.5*", "stats..", "stats.free.x"] {
            assert_eq!(min(any), Some(Some(0)), "{any}");
            let path: Vec<&str> = counters.path_of(any).collect();
            assert_eq!(path, ["stats", &any[6..]]);
        }
    }

    #[test]
    fn an_unknown_name_meets_the_known_ones() {
        let error = counters(&[("stats.running", None), ("hits.*", None)])
            .addition("stats.runing", 1)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let known = error.context_value("known").unwrap();
        assert_eq!(known, "stats.running, hits.*; did you mean `stats.running`?");
    }

    #[test]
    fn counters_are_shown_in_the_objects_above_them() {
        let counters = counters(&[("a.b.c", None), ("a.d", None), ("e.*", None), ("f", None)]);
        let holders: Vec<&str> = counters.holders.iter().map(String::as_str).collect();
        assert_eq!(holders, ["a", "a.b", "e"]);
        assert!(counters.is_family("e") && !counters.is_family("a"));
    }
}
