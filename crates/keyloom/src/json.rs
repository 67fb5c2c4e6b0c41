//! Reads JSON text from outside, and refuses whatever could not be stored exactly as written.
//!
//! `serde_json` is lenient where a store must not be. Of two members with one name it keeps the
//! last. Numbers that fit neither 64 bits nor a double silently lose digits.
//!
//! | text | what becomes of it |
//! | --- | --- |
//! | `{"a": 1, "a": 2}` | refused: a name stands twice |
//! | `18446744073709551616` | refused: a whole number has up to 64 bits |
//! | `9007199254740993.0` | refused: the nearest double is another number |
//! | `0.10000000000000001`, `1e2` | read: the double has all the digits that are written |
//! | `-0` | refused: it would be read back as `-0.0` |
//! | `1e400`, `1e-400` | refused: beyond a double |
//! | `"\ud800"` | refused: half a character |
//! | more than 100 levels | refused: reading it back must not exhaust the stack |

mod compare;

use std::fmt;

use memchr::memchr2;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};

pub(crate) use compare::compare_values;
pub use compare::same_value;

/// How deep JSON may nest.
pub(crate) const DEPTH_MAX: usize = 100;

/// No double has more significant digits than this, written out in full.
const DIGITS_MAX: usize = 767;

/// Why a text is refused, and where in it. Lines and columns count from one, columns in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) reason: String,
}

/// Reads JSON text from outside: a request, a file. Refuses whatever could not be stored exactly as
/// written: an object with two members of one name, whole numbers beyond 64 bits, numbers with more
/// digits than a double has, and more than 100 levels.
///
/// ```
/// use keyloom::read_json;
/// assert_eq!(read_json(r#"{"stars": 5}"#)?, serde_json::json!({ "stars": 5 }));
/// let error = read_json("{\"stars\": 5,\n \"stars\": 6}").unwrap_err();
/// assert_eq!(error.context_value("line"), Some("2"));
/// # Ok::<_, keyloom::Error>(())
/// ```
pub fn read_json(text: impl AsRef<[u8]>) -> Result<Value> {
    parse(text.as_ref()).map_err(|fault| {
        fault.describe(Error::new(ErrorKind::InvalidArgument, "the text cannot be taken as JSON"))
    })
}

/// As [`read_json`], for callers that report faults in their own way.
pub(crate) fn parse(text: &[u8]) -> Result<Value, Fault> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let parsed = Strict { levels_left: DEPTH_MAX }.deserialize(&mut deserializer);
    let value = parsed
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| unlike_json(text).unwrap_or_else(|| Fault::of_syntax(&error)))?;
    check_numbers(text)?;
    Ok(value)
}

/// A fault of the text as a whole, if it says more than the first wrong byte would.
fn unlike_json(text: &[u8]) -> Option<Fault> {
    let at = |line, column, reason: &str| Some(Fault { line, column, reason: reason.to_owned() });
    if text.trim_ascii().is_empty() {
        return at(1, 1, "the text is empty");
    }
    if text.starts_with(b"\xef\xbb\xbf") {
        return at(1, 1, "it begins with a byte order mark, which JSON has not; leave that out");
    }
    let end = std::str::from_utf8(text).err()?.valid_up_to();
    let (line, column) = place_of(text, end);
    at(line, column, "it is not UTF-8")
}

impl Fault {
    fn of_syntax(error: &serde_json::Error) -> Self {
        // `Fault` has the position in fields of its own; `serde_json` repeats it at the end of the
        // message.
        let message = error.to_string();
        let reason = message.split(" at line ").next().unwrap_or_default().to_owned();
        // For a text that ends after a line break, `serde_json` reports column 0.
        Fault { line: error.line(), column: error.column().max(1), reason }
    }

    /// Adds the place and the reason to an error.
    pub(crate) fn describe(self, error: Error) -> Error {
        error.with("line", self.line).with("column", self.column).with("reason", self.reason)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {} column {}", self.reason, self.line, self.column)
    }
}

/// Any JSON value without duplicate names in an object, nested at most `levels_left` deep.
#[derive(Clone, Copy)]
struct Strict {
    levels_left: usize,
}

impl Strict {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Strict { levels_left }),
            None => Err(E::custom(format_args!("it nests more than {DEPTH_MAX} levels deep"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(inner)? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match object.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(members.next_value_seed(inner)?);
                }
                Entry::Occupied(first) => {
                    let name = first.key();
                    return Err(A::Error::custom(format_args!("duplicate key {name:?}")));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

/// Checks every number as it is written: once it is parsed, nothing tells what was lost. The text
/// is valid JSON, so whatever begins like a number outside a string is a number.
fn check_numbers(text: &[u8]) -> Result<(), Fault> {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let length = match byte {
            b'"' => string_bytes(&text[at..]),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = text[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = std::str::from_utf8(&text[at..at + length]).unwrap_or_default();
                check_number(number).map_err(|reason| fault_at(text, at, number, reason))?;
                length
            }
            _ => 1,
        };
        at += length;
    }
    Ok(())
}

/// The length of the string at the beginning of a text, quotes included.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        match text[at] {
            b'"' => return at + 1,
            _ => at += 2,
        }
    }
    text.len()
}

fn fault_at(text: &[u8], at: usize, number: &str, reason: &str) -> Fault {
    let (line, column) = place_of(text, at);
    Fault { line, column, reason: format!("{number}: {reason}") }
}

/// The line and the column of a byte.
fn place_of(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    (before.iter().filter(|&&byte| byte == b'\n').count() + 1, at - line_start + 1)
}

/// Whether a double or a 64-bit integer keeps the number exactly as it is written.
fn check_number(number: &str) -> Result<(), &'static str> {
    const LOST: &str = "it has more digits than are kept; write it as a string";
    if !number.contains(['.', 'e', 'E']) {
        return match number {
            "-0" => Err("there is no negative zero among whole numbers; write 0 or -0.0"),
            _ if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() => Ok(()),
            _ => Err("a whole number has at most 64 bits; write it as a string"),
        };
    }
    let Some(written) = Decimal::of(number) else { return Ok(()) };
    if written.digits.len() > DIGITS_MAX {
        return Err(LOST);
    }
    let kept = number.parse::<f64>().unwrap_or(f64::INFINITY);
    // Prints as many digits as were written. The double may have more, but nobody wrote those.
    let shown = format!("{:.*e}", written.digits.len() - 1, kept);
    // Between two equally near decimals, a program that prints doubles may choose the other one.
    let shortest = format!("{kept:e}");
    match [shown, shortest].iter().any(|kept| Decimal::of(kept).as_ref() == Some(&written)) {
        true => Ok(()),
        false => Err(LOST),
    }
}

/// The significant digits of a number, and the power of ten of the first.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    digits: String,
    power: i64,
}

impl Decimal {
    /// `None` for zero.
    fn of(number: &str) -> Option<Self> {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let mantissa = mantissa.trim_start_matches('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let zeros = all.len() - significant.len();
        let digits = significant.trim_end_matches('0').to_owned();
        // An exponent beyond 64 bits is too large or too small for every double.
        let exponent: i64 = exponent.parse().unwrap_or(i64::MAX);
        let power = exponent.saturating_add(whole.len() as i64 - 1 - zeros as i64);
        (!digits.is_empty()).then_some(Decimal { digits, power })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> Fault {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_name_that_stands_twice_is_refused_with_its_place() {
        let fault = refused("{\"a\": {\"b\": 1,\n  \"b\": 2}}");
        assert_eq!((fault.line, fault.reason.as_str()), (2, "duplicate key \"b\""));
        // However they are spelt.
        assert_eq!(refused(r#"{"a": 1, "\u0061": 2}"#).reason, "duplicate key \"a\"");
        assert!(parse(br#"[{"a": 1}, {"a": 2}]"#).is_ok());
    }

    /// With 16 digits the double lies exactly between two decimals, and programs print the upper
    /// one: rounding to even gives the lower, which is another double.
    #[test]
    fn what_a_double_is_printed_as_is_taken() {
        let double = 2.0_f64.powi(-24);
        assert_eq!(parse(b"5.960464477539063e-08").unwrap(), json!(double));
        assert_eq!(parse(b"5.9604644775390625e-08").unwrap(), json!(double));
    }

    #[test]
    fn numbers_that_would_not_be_kept_are_refused_with_their_place() {
        for number in [
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "-0",
            "9007199254740993.0",
            "3.14159265358979323846",
            "0.1000000000000000055",
            "1e400",
            "1e-400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "1.234567890123456e-320",
        ] {
            let fault = refused(&format!("{{\"n\":\n [{number}]}}"));
            assert_eq!(fault.line, 2, "{number}: {fault}");
        }
        let fault = refused("{\"a\": \"1e999\", \"\\\"7\": 18446744073709551616}");
        assert_eq!(fault.column, 23);
        assert!(fault.reason.starts_with("18446744073709551616: a whole number"), "{fault}");
    }

    #[test]
    fn numbers_that_are_kept_are_read() {
        for (text, number) in [
            ("0", json!(0)),
            ("-1", json!(-1)),
            ("9223372036854775808", json!(9_223_372_036_854_775_808_u64)),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("-0.0", json!(-0.0)),
            ("0e5", json!(0.0)),
            ("1.50", json!(1.5)),
            ("1e2", json!(100.0)),
            ("1E+2", json!(100.0)),
            ("10000000000000000000000.0", json!(1e22)),
            ("0.10000000000000001", json!(0.1)),
            ("0.1000000000000000055511151231257827021181583404541015625", json!(0.1)),
            ("5e-324", json!(5e-324)),
            ("1.7976931348623157e308", json!(f64::MAX)),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(number), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_json_are_refused() {
        for text in
            ["", "{", "[1,]", "01", "1.", "nul", "{} {}", "\"\\ud800\"", "\"\\udc00x\"", "\"\n\""]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn what_is_wrong_with_the_whole_text_is_said() {
        let told = |text: &[u8]| {
            let Fault { line, column, reason } = parse(text).unwrap_err();
            (line, column, reason)
        };
        for empty in [&b""[..], b"  ", b"\n\n"] {
            assert_eq!(told(empty), (1, 1, "the text is empty".to_owned()));
        }
        let (line, column, reason) = told(b"\xef\xbb\xbf{}");
        assert_eq!((line, column), (1, 1));
        assert!(reason.contains("byte order mark"), "{reason}");
        assert_eq!(told(b"{\n \"a\": \"\xff\"}"), (2, 8, "it is not UTF-8".to_owned()));
        // A truncated text has a position, too.
        assert_eq!(told(b"{\"a\":\n"), (2, 1, "EOF while parsing a value".to_owned()));
    }

    #[test]
    fn depth_is_limited() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(refused(&nested(DEPTH_MAX + 1)).reason, "it nests more than 100 levels deep");
        assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn every_double_is_taken_as_it_is_printed(bits in any::<u64>(), digits in 0_usize..20) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let shortest = json!(number).to_string();
            prop_assert_eq!(parse(shortest.as_bytes()), Ok(json!(number)));
            // 17 significant digits tell every double from its neighbours.
            let longer = format!("{number:.*e}", 16 + digits);
            prop_assert_eq!(parse(longer.as_bytes()), Ok(json!(number)), "{}", longer);
        }

        #[test]
        fn what_is_read_is_what_is_written(text in r#"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?(e[+-]?[0-9]{1,3})?"#) {
            if let Ok(read) = parse(text.as_bytes()) {
                // Written again, it has the digits that were given.
                prop_assert_eq!(parse(read.to_string().as_bytes()), Ok(read.clone()));
                let (given, kept) = (Decimal::of(&text), Decimal::of(&read.to_string()));
                let digits = |number: Option<Decimal>| number.map_or(0, |number| number.digits.len());
                if digits(Decimal::of(&text)) <= 15 {
                    prop_assert_eq!(given, kept);
                }
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in any::<Vec<u8>>(), json in r#"[-0-9.eE\[\]{}":,a\\ ]{0,40}"#) {
            let _ = (parse(&text), parse(json.as_bytes()));
        }
    }
}
