//! The condition of a partial index, which decides which records have entries.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::declaration::{AggregateDeclaration, Comparison, IndexDeclaration, TestDeclaration};
use crate::json::{compare_values, same_value};
use crate::key::Path;

/// A list of tests that must all hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) tests: Vec<(Path, Test)>,
}

/// A test of one field. A `null` counts as missing, as it does in indexes.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The field has this value; 3 and 3.0 are the same number.
    Equals(Value),
    /// The field has one of these values.
    OneOf(Vec<Value>),
    /// The field has a value.
    Present,
    /// The field has no value.
    Missing,
    /// The field is greater than this, and of the same type.
    Greater(Value),
    /// The field is this or greater.
    AtLeast(Value),
    /// The field is less than this, and of the same type.
    Less(Value),
    /// The field is this or less.
    AtMost(Value),
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Test::Equals(value) => write!(f, "= {value}"),
            Test::OneOf(values) => write!(f, "in {}", Value::Array(values.clone())),
            Test::Present => f.write_str("is present"),
            Test::Missing => f.write_str("is missing"),
            Test::Greater(value) => write!(f, "> {value}"),
            Test::AtLeast(value) => write!(f, ">= {value}"),
            Test::Less(value) => write!(f, "< {value}"),
            Test::AtMost(value) => write!(f, "<= {value}"),
        }
    }
}

impl fmt::Display for TestDeclaration {
    /// As in plans and errors: `= "open"`, `>= 3 and < 10`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tests: Vec<String> = match self {
            TestDeclaration::Equals(value) => vec![Test::Equals(value.clone()).to_string()],
            TestDeclaration::OneOf(values) => vec![Test::OneOf(values.clone()).to_string()],
            TestDeclaration::Compare(comparison) => {
                let Comparison { present, gt, gte, lt, lte } = &**comparison;
                let presence = present.map(|it| if it { Test::Present } else { Test::Missing });
                let bounds = [
                    gt.clone().map(Test::Greater),
                    gte.clone().map(Test::AtLeast),
                    lt.clone().map(Test::Less),
                    lte.clone().map(Test::AtMost),
                ];
                let all = presence.into_iter().chain(bounds.into_iter().flatten());
                all.map(|test| test.to_string()).collect()
            }
        };
        f.write_str(&tests.join(" and "))
    }
}

impl IndexDeclaration {
    /// The condition in words: `state = "open" and prio >= 3`. `None` if all records have entries.
    pub fn condition_text(&self) -> Option<String> {
        in_words(&self.condition)
    }
}

impl AggregateDeclaration {
    /// The condition in words: `state = "open" and prio >= 3`. `None` if all records are counted.
    pub fn condition_text(&self) -> Option<String> {
        in_words(&self.condition)
    }
}

fn in_words(condition: &BTreeMap<String, TestDeclaration>) -> Option<String> {
    let tests: Vec<String> =
        condition.iter().map(|(field, test)| format!("{field} {test}")).collect();
    (!tests.is_empty()).then(|| tests.join(" and "))
}

impl Condition {
    /// Whether the record meets the condition.
    pub(crate) fn holds(&self, record: &Value) -> bool {
        self.tests
            .iter()
            .all(|(path, test)| test.holds(path.get(record).filter(|value| !value.is_null())))
    }

    /// The tests of one field.
    pub(crate) fn tests_of<'c>(&'c self, field: &'c Path) -> impl Iterator<Item = &'c Test> {
        self.tests.iter().filter(move |(path, _)| path == field).map(|(_, test)| test)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (path, test)) in self.tests.iter().enumerate() {
            let and = if place > 0 { " and " } else { "" };
            write!(f, "{and}{path} {test}")?;
        }
        Ok(())
    }
}

impl Test {
    /// Whether the value of the field, or its absence, passes.
    pub(crate) fn holds(&self, value: Option<&Value>) -> bool {
        let Some(value) = value else { return matches!(self, Test::Missing) };
        let order = |bound: &Value| compare_values(value, bound);
        match self {
            Test::Equals(wanted) => same_value(value, wanted),
            Test::OneOf(wanted) => wanted.iter().any(|wanted| same_value(value, wanted)),
            Test::Present => true,
            Test::Missing => false,
            Test::Greater(bound) => order(bound).is_some_and(Ordering::is_gt),
            Test::AtLeast(bound) => order(bound).is_some_and(Ordering::is_ge),
            Test::Less(bound) => order(bound).is_some_and(Ordering::is_lt),
            Test::AtMost(bound) => order(bound).is_some_and(Ordering::is_le),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_compare_by_value_and_never_across_types() {
        let three = json!(3.0);
        assert!(Test::Equals(json!(3)).holds(Some(&three)));
        assert!(Test::OneOf(vec![json!(1), json!(3)]).holds(Some(&three)));
        assert!(Test::AtLeast(json!(3)).holds(Some(&three)));
        assert!(!Test::Greater(json!(3)).holds(Some(&three)));
        assert!(Test::Less(json!(3.5)).holds(Some(&three)));
        assert!(!Test::Greater(json!(3)).holds(Some(&json!("4"))));
        assert!(!Test::AtMost(json!("b")).holds(Some(&json!(1))));
        assert!(Test::AtMost(json!("b")).holds(Some(&json!("a"))));
    }

    #[test]
    fn large_integers_are_not_rounded() {
        let bound = json!(9_007_199_254_740_993_i64);
        assert!(Test::Less(bound.clone()).holds(Some(&json!(9_007_199_254_740_992_i64))));
        assert!(!Test::Equals(bound).holds(Some(&json!(9_007_199_254_740_992_i64))));
        assert!(Test::Greater(json!(i64::MAX)).holds(Some(&json!(u64::MAX))));
        let (odd, even) = (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0));
        assert!(!Test::Equals(even.clone()).holds(Some(&odd)));
        assert!(!Test::OneOf(vec![odd.clone()]).holds(Some(&even)));
        assert!(Test::Greater(even.clone()).holds(Some(&odd)));
        assert!(!Test::AtMost(even).holds(Some(&odd)));
    }

    #[test]
    fn what_is_missing_passes_only_the_test_for_missing() {
        let tests = [
            Test::Equals(json!(null)),
            Test::OneOf(vec![json!(null)]),
            Test::Present,
            Test::Greater(json!(1)),
            Test::AtLeast(json!(1)),
            Test::Less(json!(1)),
            Test::AtMost(json!(1)),
        ];
        assert!(tests.iter().all(|test| !test.holds(None)));
        assert!(Test::Missing.holds(None));
        assert!(!Test::Missing.holds(Some(&json!(0))));
    }
}
