//! Decides whether known tests of a field's value prove another test.
//!
//! | known | of a field that is | proves |
//! | --- | --- | --- |
//! | `= "open"` | anything | `in ["open", "held"]`, `is present` |
//! | `in [1, 2]` | anything | `>= 1`, `in [1, 2, 3]` |
//! | `>= 7` | anything | `>= 5`, `> 6`, `is present` |
//! | `>= 5`, `<= 5` | anything | `= 5` |
//! | `> 4` | an integer | `>= 5` |
//! | `>= "h"` | an enum of `held`, `open`, `done` | `in ["held", "open"]` |
//! | `is present` | a boolean | `in [true, false]` |
//! | `is missing` | anything | `is missing` |
//!
//! Values are assumed to have the declared type of their field. Every known test says at least
//! whether there is a value.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use serde_json::Value;

use crate::json::compare_values;
use crate::key::{Kind, whole_of};
use crate::schema::Test;

/// Whether every value that passes all known tests passes another one too. Without known tests,
/// nothing is proved.
pub(super) fn proves(known: &[&Test], kind: Option<&Kind>, wanted: &Test) -> bool {
    if known.is_empty() {
        return false;
    }
    if known.contains(&&Test::Missing) {
        return wanted.holds(None);
    }
    if let Some(values) = listed(known, kind) {
        let mut possible =
            values.iter().filter(|value| known.iter().all(|test| test.holds(Some(value))));
        return possible.all(|value| wanted.holds(Some(value)));
    }
    match kind.and_then(Kind::wholes) {
        Some(all) => holds_throughout(narrowed(all, known), wanted),
        None => known.iter().any(|test| is_narrower(test, wanted)),
    }
}

/// All values that the field can have, if they are few: those that the query names, those of the
/// field's type, or the one between two equal bounds. Some may fail other tests.
fn listed(known: &[&Test], kind: Option<&Kind>) -> Option<Vec<Value>> {
    let asked = known.iter().find_map(|test| match test {
        Test::Equals(value) => Some(vec![value.clone()]),
        Test::OneOf(values) => Some(values.clone()),
        _ => None,
    });
    asked.or_else(|| match kind {
        Some(Kind::Enum { values }) => Some(values.iter().map(|value| json(value)).collect()),
        Some(Kind::Boolean) => Some(vec![false.into(), true.into()]),
        _ => only_one(known),
    })
}

fn json(text: &str) -> Value {
    text.into()
}

/// The value between two equal bounds.
fn only_one(known: &[&Test]) -> Option<Vec<Value>> {
    known.iter().find_map(|test| {
        let Test::AtLeast(low) = test else { return None };
        let is_highest = |test: &&Test| {
            matches!(test, Test::AtMost(high) if compare_values(low, high) == Some(Ordering::Equal))
        };
        known.iter().any(is_highest).then(|| vec![low.clone()])
    })
}

/// The whole numbers of a range that lie within the known bounds.
fn narrowed(all: RangeInclusive<i64>, known: &[&Test]) -> RangeInclusive<i64> {
    let (mut low, mut high) = all.into_inner();
    // A range without numbers: none lies above the highest, and none below the lowest.
    let nothing = RangeInclusive::new(1, 0);
    for test in known {
        match test {
            Test::AtLeast(bound) => low = low.max(whole_of(bound).unwrap_or(low)),
            Test::AtMost(bound) => high = high.min(whole_of(bound).unwrap_or(high)),
            Test::Greater(bound) => match whole_of(bound).map(|bound| bound.checked_add(1)) {
                Some(Some(bound)) => low = low.max(bound),
                Some(None) => return nothing,
                None => {}
            },
            Test::Less(bound) => match whole_of(bound).map(|bound| bound.checked_sub(1)) {
                Some(Some(bound)) => high = high.min(bound),
                Some(None) => return nothing,
                None => {}
            },
            Test::Equals(_) | Test::OneOf(_) | Test::Present | Test::Missing => {}
        }
    }
    low..=high
}

/// Whether all whole numbers of a range pass the wanted test.
fn holds_throughout(mut numbers: RangeInclusive<i64>, wanted: &Test) -> bool {
    let holds = |number: i64| wanted.holds(Some(&number.into()));
    let listed = match wanted {
        Test::Equals(_) => 1,
        Test::OneOf(values) => values.len(),
        // Such a test is a bound: if both ends pass it, everything between them does too.
        _ => return numbers.is_empty() || holds(*numbers.start()) && holds(*numbers.end()),
    };
    // More numbers than values in the list cannot all be in the list.
    numbers.clone().nth(listed).is_none() && numbers.all(holds)
}

/// Whether every value that passes the known test passes the wanted one, judged by their bounds.
fn is_narrower(known: &Test, wanted: &Test) -> bool {
    use Ordering::{Equal, Greater, Less};
    let is = |bound: &Value, orders: &[Ordering], other: &Value| {
        compare_values(bound, other).is_some_and(|order| orders.contains(&order))
    };
    match (known, wanted) {
        // Every known test of a value implies that there is one.
        (_, Test::Present) => true,
        (Test::AtLeast(known), Test::Greater(wanted)) => is(known, &[Greater], wanted),
        (Test::Greater(known), Test::Greater(wanted))
        | (Test::Greater(known) | Test::AtLeast(known), Test::AtLeast(wanted)) => {
            is(known, &[Greater, Equal], wanted)
        }
        (Test::AtMost(known), Test::Less(wanted)) => is(known, &[Less], wanted),
        (Test::Less(known), Test::Less(wanted))
        | (Test::Less(known) | Test::AtMost(known), Test::AtMost(wanted)) => {
            is(known, &[Less, Equal], wanted)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values_of(kind: Option<&Kind>) -> Vec<Value> {
        match kind {
            Some(Kind::Integer { .. } | Kind::Timestamp) => (-10..=10)
                .filter(|number| kind.and_then(Kind::wholes).is_none_or(|all| all.contains(number)))
                .map(Value::from)
                .collect(),
            Some(Kind::Enum { values }) => values.iter().map(|value| json!(value)).collect(),
            Some(Kind::Boolean) => vec![json!(false), json!(true)],
            Some(Kind::Text) => ["a", "ab", "b", "c"].map(Value::from).to_vec(),
            Some(Kind::Float) => (-8..=8).map(|quarter| json!(f64::from(quarter) / 4.0)).collect(),
            // Values of any type, including the same number in two forms.
            _ => {
                vec![json!(0), json!(0.0), json!(0.5), json!(1), json!("a"), json!("b"), json!([1])]
            }
        }
    }

    fn kinds() -> impl Strategy<Value = Option<Kind>> {
        prop_oneof![
            Just(None),
            Just(Some(Kind::Integer { digits: 1 })),
            Just(Some(Kind::Timestamp)),
            Just(Some(Kind::Boolean)),
            Just(Some(Kind::Text)),
            Just(Some(Kind::Float)),
            Just(Some(Kind::Enum { values: ["open", "held", "done"].map(str::to_owned).to_vec() })),
        ]
    }

    fn test(values: Vec<Value>) -> impl Strategy<Value = Test> {
        let value = prop::sample::select(values.clone());
        let bounds = [Test::Greater, Test::AtLeast, Test::Less, Test::AtMost, Test::Equals];
        prop_oneof![
            6 => (prop::sample::select(bounds.to_vec()), value).prop_map(|(bound, value)| bound(value)),
            2 => prop::sample::subsequence(values.clone(), 1..=values.len()).prop_map(Test::OneOf),
            1 => Just(Test::Present),
            1 => Just(Test::Missing),
        ]
    }

    fn cases() -> impl Strategy<Value = (Option<Kind>, Vec<Test>, Test)> {
        kinds().prop_flat_map(|kind| {
            let values = values_of(kind.as_ref());
            let known = prop::collection::vec(test(values.clone()), 1..4);
            (Just(kind), known, test(values))
        })
    }

    /// Every value that a field of this type can have, as far as the tests of [`cases`] can
    /// distinguish values, and the missing value.
    fn every(kind: Option<&Kind>) -> Vec<Option<Value>> {
        let mut every: Vec<Option<Value>> = values_of(kind).into_iter().map(Some).collect();
        // Values between and beyond those that tests name.
        every.extend(match kind {
            Some(Kind::Timestamp) => vec![Some(json!(11)), Some(json!(9_999_999_999_999_i64))],
            Some(Kind::Text) => {
                ["", "\u{0}", "aa", "abc", "bb", "d"].map(|text| Some(json!(text))).to_vec()
            }
            Some(Kind::Float) => (-20..=20).map(|n| Some(json!(f64::from(n) / 8.0))).collect(),
            None => [
                json!(-1),
                json!(0.25),
                json!(0.75),
                json!(9),
                json!(""),
                json!("aa"),
                json!("z"),
                json!(false),
                json!({}),
            ]
            .map(Some)
            .to_vec(),
            _ => Vec::new(),
        });
        every.push(None);
        every
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        /// Every proved test holds. And every test that holds for all values is proved, unless no
        /// value passes the known tests.
        #[test]
        fn a_proof_is_what_trying_every_value_tells((kind, known, wanted) in cases()) {
            let passing: Vec<Option<Value>> = every(kind.as_ref())
                .into_iter()
                .filter(|value| known.iter().all(|test| test.holds(value.as_ref())))
                .collect();
            let holds = passing.iter().all(|value| wanted.holds(value.as_ref()));
            let known: Vec<&Test> = known.iter().collect();
            let proved = proves(&known, kind.as_ref(), &wanted);
            prop_assert!(holds || !proved, "proved, and {passing:?} do not all pass");
            prop_assert!(proved || !holds || passing.is_empty(), "holds for {passing:?}, and is not proved");
        }
    }

    #[test]
    fn nothing_proves_nothing_and_numbers_are_exact() {
        assert!(!proves(&[], None, &Test::Present));
        assert!(!proves(&[], Some(&Kind::Boolean), &Test::Present));
        let (odd, even) = (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0));
        let at_least = |value: &Value| Test::AtLeast(value.clone());
        assert!(proves(&[&at_least(&odd)], None, &Test::Greater(even.clone())));
        assert!(!proves(&[&at_least(&even)], None, &at_least(&odd)));
        let exactly = Test::Equals(json!(5.0));
        assert!(proves(&[&exactly], None, &Test::Equals(json!(5))));
        let widest = Kind::Integer { digits: 19 };
        let beyond = Test::Greater(json!(i64::MAX));
        assert!(proves(&[&beyond], Some(&widest), &Test::Equals(json!(1))));
        assert!(!proves(&[&Test::Present], Some(&widest), &Test::Equals(json!(1))));
        assert!(proves(&[&Test::Present], Some(&widest), &Test::AtMost(json!(i64::MAX))));
    }
}
