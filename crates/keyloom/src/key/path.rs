//! The path of a value in a record: `status`, `stats.running`, `tags.*`,
//! `awaitingSteps.*.timeoutAt`, `awaitingSteps.*key`.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

/// One step into a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// A member of an object.
    Name(String),
    /// `*`: each element of an array, or each value of a map.
    Each,
    /// `*key`: each name of a map. Only as the last step.
    EachKey,
}

/// A path into a record, with at most one `*` or `*key`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Path(pub(crate) Vec<Step>);

impl Path {
    /// Parses a path; the error is a sentence that says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a path needs at least one name".into());
        }
        let steps: Vec<Step> = text
            .split('.')
            .map(Step::parse)
            .collect::<Result<_, _>>()
            .map_err(|reason| format!("the path `{text}` is not valid: {reason}"))?;
        if !matches!(steps.first(), Some(Step::Name(_))) {
            return Err(format!("the path `{text}` is not valid: it must begin with a name"));
        }
        if steps.iter().filter(|step| !matches!(step, Step::Name(_))).count() > 1 {
            return Err(format!(
                "the path `{text}` is not valid: it may walk over one array or map only"
            ));
        }
        if steps.iter().rev().skip(1).any(|step| *step == Step::EachKey) {
            return Err(format!("the path `{text}` is not valid: `*key` can only be its end"));
        }
        Ok(Path(steps))
    }

    /// The path before `*`, if it has one: the array or map that it walks over.
    pub(crate) fn star(&self) -> Option<Path> {
        let place = self.0.iter().position(|step| !matches!(step, Step::Name(_)))?;
        Some(Path(self.0[..place].to_vec()))
    }

    /// Whether another path names one of this path's values: `steps.*.at` covers `steps.first.at`.
    pub(crate) fn covers(&self, other: &Path) -> bool {
        let is_one = |(own, other): (&Step, &Step)| {
            own == other || matches!((own, other), (Step::Each, Step::Name(_)))
        };
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(is_one)
    }

    /// All values at the path: none if it is missing, several if the path walks over an array or a
    /// map. A present `null` is a value.
    pub(crate) fn all<'v>(&self, record: &'v Value) -> impl Iterator<Item = Cow<'v, Value>> {
        let star = self.0.iter().position(|step| !matches!(step, Step::Name(_)));
        let one = if star.is_none() { self.get(record).map(Cow::Borrowed) } else { None };
        let several = star.map(|place| self.several(place, record)).unwrap_or_default();
        one.into_iter().chain(several)
    }

    /// The values at a path that walks over an array or a map at step `place`.
    fn several<'v>(&self, place: usize, record: &'v Value) -> Vec<Cow<'v, Value>> {
        let of = |value| Path::get_steps(&self.0[place + 1..], value).map(Cow::Borrowed);
        match (Path::get_steps(&self.0[..place], record), &self.0[place]) {
            (Some(Value::Object(members)), Step::EachKey) => {
                members.keys().map(|name| Cow::Owned(Value::String(name.clone()))).collect()
            }
            (Some(Value::Object(members)), _) => members.values().filter_map(of).collect(),
            (Some(Value::Array(items)), Step::Each) => items.iter().filter_map(of).collect(),
            _ => Vec::new(),
        }
    }

    /// The value at a path without `*`; `None` if it, or anything above it, is missing. A present
    /// `null` is `Some(Null)`.
    pub(crate) fn get<'v>(&self, record: &'v Value) -> Option<&'v Value> {
        Path::get_steps(&self.0, record)
    }

    /// The value at the end of some steps of a path, as [`get`](Self::get) finds it.
    pub(crate) fn get_steps<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
        steps.iter().try_fold(value, |at, step| match step {
            Step::Name(name) => member(at.as_object()?, name),
            Step::Each | Step::EachKey => None,
        })
    }
}

/// A member of an object. Most objects have few members; comparing their names is faster than
/// hashing one.
fn member<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    const FEW: usize = 12;
    match members.len() {
        0..=FEW => members.iter().find(|(found, _)| *found == name).map(|(_, value)| value),
        _ => members.get(name),
    }
}

impl Step {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("a name is empty".into()),
            "*" => Ok(Step::Each),
            "*key" => Ok(Step::EachKey),
            name => match name
                .chars()
                .find(|&c| matches!(c, '{' | '}' | '*') || c.is_whitespace() || c.is_control())
            {
                Some(found) => Err(format!("a name cannot contain {found:?}")),
                None => Ok(Step::Name(name.into())),
            },
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            f.write_str(match step {
                Step::Name(name) => name,
                Step::Each => "*",
                Step::EachKey => "*key",
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_written_as_it_was_read() {
        for text in ["a", "stats.running", "tags.*", "steps.*.timeoutAt", "steps.*key", "a-b.c$"] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn paths_that_cannot_be_walked_are_refused() {
        for (text, reason) in [
            ("", "at least one name"),
            ("a..b", "a name is empty"),
            (".a", "a name is empty"),
            ("*", "begin with a name"),
            ("*key", "begin with a name"),
            ("a.*.b.*", "one array or map only"),
            ("a.*.*key", "one array or map only"),
            ("a.*key.b", "can only be its end"),
            ("a.b*", "cannot contain '*'"),
            ("a b", "cannot contain ' '"),
            ("a{", "cannot contain '{'"),
        ] {
            let error = Path::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_star_is_where_the_path_spreads() {
        let star = |text: &str| Path::parse(text).unwrap().star().map(|path| path.to_string());
        assert_eq!(star("a.b"), None);
        assert_eq!(star("a.b.*"), Some("a.b".into()));
        assert_eq!(star("a.*.c"), Some("a".into()));
        assert_eq!(star("a.*key"), Some("a".into()));
    }

    #[test]
    fn a_star_covers_any_name() {
        let covers =
            |one: &str, other: &str| Path::parse(one).unwrap().covers(&Path::parse(other).unwrap());
        assert!(covers("a.*.c", "a.b.c") && covers("a.*", "a.b") && covers("a.b", "a.b"));
        assert!(!covers("a.*", "a") && !covers("a.*", "a.b.c") && !covers("a.b", "a.*"));
        assert!(!covers("a.*key", "a.b") && !covers("a.*.c", "a.b.d"));
    }

    #[test]
    fn missing_and_null_are_different() {
        let record = json!({"a": {"b": 1, "n": null}, "list": [1]});
        let get = |text: &str| Path::parse(text).unwrap().get(&record).cloned();
        assert_eq!(get("a.b"), Some(json!(1)));
        assert_eq!(get("a.n"), Some(Value::Null));
        assert_eq!(get("a.c"), None);
        assert_eq!(get("a.b.c"), None);
        assert_eq!(get("a.n.c"), None);
        assert_eq!(get("list.*"), None);
    }

    #[test]
    fn a_member_is_found_among_few_and_among_many() {
        let get = |name: &str, record: &Value| Path::parse(name).unwrap().get(record).cloned();
        for count in 0..40 {
            let record: Value = (0..count).map(|n| (format!("m{n}"), json!(n))).collect();
            for member in 0..count {
                assert_eq!(get(&format!("m{member}"), &record), Some(json!(member)));
            }
            assert_eq!(get(&format!("m{count}"), &record), None);
        }
    }
}
