//! Compares JSON values exactly.
//!
//! A number is a whole number of 64 bits or a double, and neither type holds all values of the
//! other: above 2^53 a double cannot represent every whole number. So a number is converted to the
//! other type for a comparison only if that keeps its exact value.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two JSON values are the same. Numbers are compared exactly, and 3 and 3.0 are one
/// number, also inside arrays and objects.
///
/// ```
/// use keyloom::same_value;
/// use serde_json::json;
/// assert!(same_value(&json!({ "stars": 3 }), &json!({ "stars": 3.0 })));
/// assert!(!same_value(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
/// ```
pub fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_some_and(Ordering::is_eq),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(name, a)| b.get(name).is_some_and(|b| same_value(a, b));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

/// The order of two numbers, strings or booleans; `None` for anything else, so no comparison across
/// types ever holds.
pub(crate) fn compare_values(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_with_double(a, b.as_f64()?),
        (None, Some(b)) => compare_with_double(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// The order of a 64-bit whole number and a double; `None` for NaN, which JSON does not have.
fn compare_with_double(whole: i128, double: f64) -> Option<Ordering> {
    // The part before the point either fits exactly or is cut to the limit of 128 bits, which lies
    // beyond every 64-bit number.
    match whole.cmp(&(double as i128)) {
        Ordering::Equal => 0.0.partial_cmp(&double.fract()),
        unequal => Some(unequal),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The order of a whole number and a double, computed from the double's own bits. A double is a
    /// mantissa times a power of two; both sides are multiplied until they are whole.
    fn exact(whole: i128, double: f64) -> Ordering {
        let bits = double.to_bits();
        let raw = i128::from(bits & ((1 << 52) - 1));
        let (magnitude, power) = match (bits >> 52) & 0x7ff {
            0 => (raw, -1074),
            biased => (raw | 1 << 52, biased as i32 - 1075),
        };
        let mantissa = if double.is_sign_negative() { -magnitude } else { magnitude };
        match power {
            // Beyond 64 bits; only the sign matters.
            12.. => 0.cmp(&mantissa),
            0..12 => whole.cmp(&(mantissa << power)),
            -60..0 => (whole << -power).cmp(&mantissa),
            // Between -1 and 1.
            _ if whole != 0 => whole.cmp(&0),
            _ => 0.cmp(&mantissa),
        }
    }

    /// Whole numbers of both signs, including the limits and the numbers around powers of two.
    fn wholes() -> impl Strategy<Value = Number> {
        let near = |(power, step): (u32, i128)| {
            let near = (1_i128 << power) + step;
            let clamped = near.clamp(0, u64::MAX.into());
            Number::from(u64::try_from(clamped).unwrap_or(u64::MAX))
        };
        prop_oneof![
            any::<i64>().prop_map(Number::from),
            any::<u64>().prop_map(Number::from),
            (0_u32..=64, -3_i128..=3).prop_map(near),
            (0_u32..=63, -3_i64..=3).prop_map(|(power, step)| {
                Number::from(
                    i64::MIN
                        .unsigned_abs()
                        .checked_shr(power)
                        .map_or(step, |near| step.saturating_sub_unsigned(near)),
                )
            }),
        ]
    }

    /// Doubles of all sizes, including those next to a whole number.
    fn doubles_near(whole: i128) -> impl Strategy<Value = f64> {
        let anywhere =
            any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |d| d.is_finite());
        let near = (-3_i8..=3, -2_i8..=2).prop_map(move |(steps, quarters)| {
            let near = whole as f64 + f64::from(quarters) / 4.0;
            (0..steps.unsigned_abs())
                .fold(near, |near, _| if steps < 0 { near.next_down() } else { near.next_up() })
        });
        prop_oneof![anywhere, near]
    }

    fn pairs() -> impl Strategy<Value = (Number, f64)> {
        wholes().prop_flat_map(|number| {
            let doubles = doubles_near(whole(&number).unwrap_or(0));
            (Just(number), doubles)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn whole_numbers_and_doubles_compare_exactly((number, double) in pairs()) {
            let expected = exact(whole(&number).unwrap_or(0), double);
            let (number, double) = (Value::Number(number), json!(double));
            prop_assert_eq!(compare_values(&number, &double), Some(expected));
            prop_assert_eq!(compare_values(&double, &number), Some(expected.reverse()));
            prop_assert_eq!(same_value(&number, &double), expected.is_eq());
            prop_assert_eq!(same_value(&json!([{ "n": double }]), &json!([{ "n": number }])), expected.is_eq());
        }

        #[test]
        fn whole_numbers_compare_as_such(a in wholes(), b in wholes()) {
            let expected = whole(&a).cmp(&whole(&b));
            let (a, b) = (Value::Number(a), Value::Number(b));
            prop_assert_eq!(compare_values(&a, &b), Some(expected));
            prop_assert_eq!(same_value(&a, &b), expected.is_eq());
        }
    }

    #[test]
    fn neighbours_above_2_to_the_53_are_told_apart() {
        let (odd, even) = (json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992.0));
        assert_eq!(compare_values(&odd, &even), Some(Ordering::Greater));
        assert!(!same_value(&odd, &even));
        assert!(same_value(&json!(9_007_199_254_740_992_i64), &even));
        assert!(!same_value(&json!(u64::MAX), &json!(18_446_744_073_709_551_616.0)));
        assert!(!same_value(&json!(i64::MAX), &json!(9_223_372_036_854_775_808.0)));
        assert!(same_value(&json!(i64::MIN), &json!(-9_223_372_036_854_775_808.0)));
        assert!(same_value(&json!(0), &json!(-0.0)));
    }

    #[test]
    fn values_of_several_types_are_never_the_same() {
        let values = [json!(null), json!(false), json!(0), json!(""), json!([]), json!({})];
        for (place, a) in values.iter().enumerate() {
            for (other, b) in values.iter().enumerate() {
                assert_eq!(same_value(a, b), place == other);
            }
        }
        assert!(same_value(&json!({ "a": 1, "b": 2 }), &json!({ "b": 2.0, "a": 1 })));
        assert!(!same_value(&json!({ "a": 1 }), &json!({ "a": 1, "b": 2 })));
        assert!(!same_value(&json!({ "a": 1, "c": 2 }), &json!({ "a": 1, "b": 2 })));
        assert!(!same_value(&json!([1, 2]), &json!([1])));
        assert!(!same_value(&json!([1, 2]), &json!([2, 1])));
    }
}
