//! Filters: tests that records must pass after they are read.

use std::fmt;
use std::ops::Bound;

use serde_json::Value;

use crate::key::{Path, Span};
use crate::schema::Test;

/// Tests of one field. A single value of the field must pass all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) path: Path,
    pub(super) tests: Vec<Test>,
}

impl Filter {
    pub(super) fn equal(path: &Path, value: &Value) -> Self {
        Filter { path: path.clone(), tests: vec![Test::Equals(value.clone())] }
    }

    /// A range as a filter. Without bounds it tests that there is a value, as an index does. `None`
    /// for a text prefix, since no test checks one.
    pub(super) fn within(path: &Path, span: &Span) -> Option<Self> {
        let Span::Between(low, high) = span else { return None };
        let mut tests: Vec<Test> = above(low).into_iter().chain(below(high)).collect();
        if tests.is_empty() {
            tests.push(Test::Present);
        }
        Some(Filter { path: path.clone(), tests })
    }

    /// Whether a record passes.
    pub(super) fn passes(&self, record: &Value) -> bool {
        let holds = |value: Option<&Value>| self.tests.iter().all(|test| test.holds(value));
        let mut present = self.path.all(record).filter(|value| !value.is_null()).peekable();
        match present.peek() {
            None => holds(None),
            Some(_) => present.any(|value| holds(Some(&value))),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tests: Vec<String> = self.tests.iter().map(Test::to_string).collect();
        write!(f, "{} {}", self.path, tests.join(" and "))
    }
}

fn above(bound: &Bound<Value>) -> Option<Test> {
    match bound {
        Bound::Included(value) => Some(Test::AtLeast(value.clone())),
        Bound::Excluded(value) => Some(Test::Greater(value.clone())),
        Bound::Unbounded => None,
    }
}

fn below(bound: &Bound<Value>) -> Option<Test> {
    match bound {
        Bound::Included(value) => Some(Test::AtMost(value.clone())),
        Bound::Excluded(value) => Some(Test::Less(value.clone())),
        Bound::Unbounded => None,
    }
}

/// The tests that every value within a span passes.
pub(super) fn tests_of(span: &Span) -> Vec<Test> {
    match span {
        Span::Between(low, high) => {
            let bounds = above(low).into_iter().chain(below(high));
            std::iter::once(Test::Present).chain(bounds).collect()
        }
        Span::Prefix(text) => {
            let end = after_all_with(text).map(|end| Test::Less(end.into()));
            std::iter::once(Test::AtLeast(text.as_str().into())).chain(end).collect()
        }
    }
}

/// The lowest text after all texts with this prefix; `None` if there is none.
fn after_all_with(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // The range between these two holds surrogates, which are not characters.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_begins_so_lies_before_the_end(prefix in "[a-c\u{d7ff}\u{10ffff}]{0,3}", rest: String, other in "[a-c\u{d7ff}\u{e000}\u{10ffff}]{0,4}") {
            let end = after_all_with(&prefix);
            let inside = |text: &str| *text >= *prefix && end.as_ref().is_none_or(|end| text < end.as_str());
            let text = format!("{prefix}{rest}");
            prop_assert!(inside(&text));
            prop_assert_eq!(inside(&other), other.starts_with(&prefix));
        }
    }
}
