//! Writes numbers as text whose byte order is the order of the numbers.
//!
//! | type | bytes | examples |
//! | --- | --- | --- |
//! | integer of 4 digits, v ≥ 0 | 4 digits | 42 is `0042` |
//! | integer of 4 digits, v < 0 | `-`, then 4 digits of 10^4 + v | -1 is `-9999`, -42 is `-9958` |
//! | integer, descending | the ascending form of -v - 1 | 42 is `-9957`, -1 is `0000` |
//! | float | 16 hex digits of its bits: sign bit set when positive, all inverted when negative | 1.5 is `bff8000000000000`, -1.5 is `4007ffffffffffff` |
//!
//! `-` is below every digit, so negative integers come first. Among them, the complement gives the
//! lower text to the number farther from zero.

use serde_json::{Number, Value};

const SIGN_BIT: u64 = 1 << 63;

/// The lowest and the highest integer with this many digits, within 64 bits.
pub(in crate::key) fn integer_limits(digits: u8) -> (i64, i64) {
    match 10i64.checked_pow(u32::from(digits)) {
        Some(power) => (-power, power - 1),
        None => (i64::MIN, i64::MAX),
    }
}

/// The digits of the encoding without its sign: those of `value` itself, or of its distance from
/// the lowest integer with this many digits.
pub(in crate::key) fn integer_magnitude(value: i64, digits: u8) -> u64 {
    if value >= 0 { value.unsigned_abs() } else { highest(digits) - (!value).unsigned_abs() }
}

pub(super) fn write_integer(value: i64, digits: u8, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    push_digits(integer_magnitude(value, digits), usize::from(digits), out);
}

/// The integer at the start of `key`, and the rest of the key.
pub(super) fn read_integer(key: &[u8], digits: u8) -> Option<(i64, &[u8])> {
    let (negative, rest) = match key.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, key),
    };
    let (number, rest) = rest.split_at_checked(usize::from(digits))?;
    let number = parse_digits(number)?;
    let value = if negative {
        !i64::try_from(highest(digits) - number).ok()?
    } else {
        i64::try_from(number).ok()?
    };
    Some((value, rest))
}

/// 10^digits - 1. For 19 digits it is beyond `i64`, but within `u64`.
fn highest(digits: u8) -> u64 {
    10u64.checked_pow(u32::from(digits)).map_or(u64::MAX, |power| power - 1)
}

/// The whole number in a JSON number, within 64 bits. In JSON `5.0` and `5` are the same, and
/// programs whose numbers are all doubles may write either.
pub(crate) fn whole_of(value: &Value) -> Option<i64> {
    /// The first number beyond 64 bits, signed.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    value.as_i64().or_else(|| {
        let float = value.as_number().filter(|number| number.is_f64())?.as_f64()?;
        // A whole float in this range is exactly an integer.
        (float.fract() == 0.0 && (-BEYOND..BEYOND).contains(&float)).then_some(float as i64)
    })
}

/// The double of a JSON number; `None` for a whole number that no double equals.
pub(super) fn float_of(value: &Value) -> Option<f64> {
    let number = value.as_number()?;
    let float = number.as_f64().filter(|float| float.is_finite())?;
    let exact = match (number.as_i64(), number.as_u64()) {
        (Some(whole), _) => float as i128 == i128::from(whole),
        (None, Some(whole)) => float as i128 == i128::from(whole),
        (None, None) => true,
    };
    exact.then_some(float)
}

/// A double in a query. JSON has neither NaN nor infinities, so such a number is represented by its
/// name. No segment of floats accepts a name, and the error can then say which number it was.
pub(crate) fn asked_float(float: f64) -> Value {
    Number::from_f64(float).map_or_else(|| float.to_string().into(), Value::Number)
}

/// The name of a number that [`asked_float`] could not represent.
pub(in crate::key) fn name_of_not_finite(value: &Value) -> Option<&str> {
    let is_not_finite = |name: &&str| ["NaN", "inf", "-inf"].contains(name);
    value.as_str().filter(is_not_finite)
}

/// The bits of a double, changed so that they sort as a whole number in the order of doubles.
pub(super) fn float_to_ordered(float: f64) -> u64 {
    // Adding zero turns -0.0 into 0.0: the two are equal, so they must have the same key.
    let bits = (float + 0.0).to_bits();
    if bits & SIGN_BIT == 0 { bits | SIGN_BIT } else { !bits }
}

/// Undoes [`float_to_ordered`]; `None` for bits that it never gives (NaN, infinities, -0.0).
pub(super) fn float_from_ordered(ordered: u64) -> Option<f64> {
    let bits = if ordered & SIGN_BIT == 0 { !ordered } else { ordered & !SIGN_BIT };
    Some(f64::from_bits(bits)).filter(|float| float.is_finite() && bits != SIGN_BIT)
}

pub(super) fn push_digits(number: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + width, b'0');
    let mut left = number;
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

pub(super) fn parse_digits(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

pub(super) fn push_hex(number: u64, out: &mut Vec<u8>) {
    for nibble in (0..16).rev() {
        out.push(b"0123456789abcdef"[(number >> (4 * nibble) & 15) as usize]);
    }
}

/// Parses sixteen lower-case hex digits, which the caller has checked.
pub(super) fn parse_hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
