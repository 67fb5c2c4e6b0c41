//! Parses values in parameters and paths as the declared types of their fields.
//!
//! | declared | text | value |
//! | --- | --- | --- |
//! | integer | `-5` | -5; other text, and too many digits, are refused |
//! | float | `2.50` | 2.5; a number that a double cannot hold is refused |
//! | timestamp | `1700000000000`, `2023-11-14T22:13:20Z` | 1700000000000 |
//! | datetime | `2023-11-14T23:13:20+01:00` | "2023-11-14T22:13:20.000Z" |
//! | uuid | with hyphens, in upper case | 32 lower-case digits |
//! | boolean | `true` | true |
//! | text | `7` | "7" |
//! | enum, id, code | `open` | "open"; a text that is not a value of the type is refused |
//! | nothing | `7`, `true`, `null`, `"7"`, `x` | 7, true, null, "7", "x" |

use keyloom::{CollectionDeclaration, DateTime, FieldType, Timestamp, read_json};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The value of a text in a field of a collection, or the reason why it has none.
pub(super) fn value_of(
    declaration: &CollectionDeclaration,
    path: &str,
    text: &str,
) -> Result<Value, String> {
    // The names in a map are text, whatever they look like.
    let is_member_name = path.rsplit('.').next() == Some("*key");
    let declared = declaration.fields.get(path).map(|field| &field.field_type);
    match declared {
        None if is_member_name => Ok(text.into()),
        None => free(text),
        Some(declared) => typed(declared, text),
    }
}

fn typed(declared: &FieldType, text: &str) -> Result<Value, String> {
    match declared {
        FieldType::Enum { values, .. } if !values.iter().any(|value| value == text) => {
            Err(format!("it is one of {}", values.join(", ")))
        }
        FieldType::Text | FieldType::Enum { .. } => Ok(text.into()),
        FieldType::Id | FieldType::Code { .. } => checked(declared, text.into()),
        FieldType::Uuid { .. } => {
            let plain = text.replace('-', "").to_lowercase();
            checked(declared, plain.into()).or_else(|_| checked(declared, text.into()))
        }
        FieldType::Datetime => {
            let moment = iso_ms(text).map(Timestamp::from).map(DateTime::try_from);
            match moment {
                Some(Ok(moment)) => Ok(moment.to_string().into()),
                _ => checked(declared, text.into()),
            }
        }
        FieldType::Integer { .. } => checked(declared, integer(text)?),
        FieldType::Timestamp => checked(declared, timestamp(text)?),
        FieldType::Float => number(text).ok_or("it is no number that a double holds")?,
        FieldType::Boolean => match text {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err("it is true or false".to_owned()),
        },
        FieldType::Point { .. } => Err("a place is not asked by value; use /near".to_owned()),
        FieldType::Map => Err("a map is not asked by value; ask for a member".to_owned()),
    }
}

/// The value, if its type allows it.
fn checked(declared: &FieldType, value: Value) -> Result<Value, String> {
    declared.check(&value).map(|()| value)
}

/// The value of an undeclared field: JSON if the text is a number, a boolean, `null` or a quoted
/// string, and otherwise text.
fn free(text: &str) -> Result<Value, String> {
    match text {
        "true" => return Ok(true.into()),
        "false" => return Ok(false.into()),
        "null" => return Ok(Value::Null),
        _ => {}
    }
    if let Some(number) = number(text) {
        return number;
    }
    match text.starts_with('"').then(|| read_json(text)) {
        Some(Ok(Value::String(quoted))) => Ok(quoted.into()),
        _ => Ok(text.into()),
    }
}

fn integer(text: &str) -> Result<Value, String> {
    match number(text) {
        Some(Ok(number)) if number.is_i64() || number.is_u64() => Ok(number),
        Some(Err(reason)) => Err(reason),
        _ => Err("it is no whole number".to_owned()),
    }
}

/// Milliseconds since 1970, or an ISO 8601 time.
pub(super) fn timestamp(text: &str) -> Result<Value, String> {
    integer(text).or_else(|_| {
        let read = iso_ms(text).map(Value::from);
        read.ok_or_else(|| "it is neither milliseconds since 1970 nor an ISO-8601 time".to_owned())
    })
}

/// The number in a text; `None` for other text, and a reason if reading would change the number.
fn number(text: &str) -> Option<Result<Value, String>> {
    let is_number =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            && serde_json::from_str::<IgnoredAny>(text).is_ok();
    is_number.then(|| {
        read_json(text).map_err(|error| {
            let reason = error.context_value("reason").unwrap_or(error.message());
            format!("the number cannot be kept as it is written: {reason}")
        })
    })
}

/// `2024-01-31`, `2024-01-31T23:59Z`, `2024-01-31T23:59:59.9+01:00` as milliseconds since 1970. A
/// time without an offset is refused, since its time zone is unknown.
fn iso_ms(text: &str) -> Option<i64> {
    if !text.is_ascii() {
        return None;
    }
    let (date, clock) = match text.split_once(['T', 't']) {
        Some((date, clock)) => (date, clock),
        None => (text, "00:00Z"),
    };
    let (clock, offset) = match clock.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => {
            let at = clock.rfind(['+', '-'])?;
            let (clock, offset) = clock.split_at(at);
            (clock, offset_minutes(offset)?)
        }
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let is_fraction = (1..=3).contains(&fraction.len());
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    let canonical = format!("{date}T{clock}{seconds}.{fraction:0<3}Z");
    let moment: DateTime = canonical.parse().ok().filter(|_| is_fraction)?;
    Some(moment.timestamp().millis() - offset * 60_000)
}

/// `+01:30` in minutes.
fn offset_minutes(text: &str) -> Option<i64> {
    let (sign, rest) = text.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let is_written_so = [hours, minutes]
        .iter()
        .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()));
    let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
    let is_possible = is_written_so && hours < 24 && minutes < 60;
    let offset = hours * 60 + minutes;
    is_possible.then_some(if sign == "-" { -offset } else { offset })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use keyloom::{FieldDeclaration, Illegal};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn declaration() -> CollectionDeclaration {
        let field = |kind: FieldType| FieldDeclaration::from(kind);
        let values = vec!["open".to_owned(), "shut".to_owned()];
        let states = FieldType::Enum { values, transitions: None, illegal: Illegal::Error };
        CollectionDeclaration::new("x:{id}")
            .field("id", field(FieldType::Text))
            .field("n", field(FieldType::Integer { digits: 19 }))
            .field("f", field(FieldType::Float))
            .field("b", field(FieldType::Boolean))
            .field("at", field(FieldType::Timestamp))
            .field("state", field(states))
            .field("day", field(FieldType::Datetime))
            .field("uid", field(FieldType::Uuid { version: None }))
            .field("steps", field(FieldType::Map))
    }

    fn read(path: &str, text: &str) -> Result<Value, String> {
        value_of(&declaration(), path, text)
    }

    #[test]
    fn each_type_reads_its_own() {
        assert_eq!(read("id", "7"), Ok(json!("7")));
        assert_eq!(read("n", "-5"), Ok(json!(-5)));
        assert_eq!(read("f", "2.50"), Ok(json!(2.5)));
        assert_eq!(read("f", "3"), Ok(json!(3)));
        assert_eq!(read("b", "true"), Ok(json!(true)));
        assert_eq!(read("state", "shut"), Ok(json!("shut")));
        assert_eq!(read("at", "1700000000000"), Ok(json!(1_700_000_000_000_i64)));
        assert_eq!(read("steps.*key", "7"), Ok(json!("7")));
        assert_eq!(read("day", "2024-02-01T00:30+01:00"), Ok(json!("2024-01-31T23:30:00.000Z")));
        let uid = "0f8fad5bd9cb469fa16570867728950e";
        for text in [uid, "0F8FAD5B-D9CB-469F-A165-70867728950E"] {
            assert_eq!(read("uid", text), Ok(json!(uid)));
        }
        for (path, text) in [
            ("n", "18446744073709551615"),
            ("n", "18446744073709551616"),
            ("n", "5.0"),
            ("n", " 5"),
            ("n", "+5"),
            ("n", "007"),
            ("n", "-0"),
            ("n", ""),
            ("n", "five"),
            ("f", "NaN"),
            ("f", "1e400"),
            ("f", "9007199254740993.0"),
            ("b", "yes"),
            ("state", "ajar"),
            ("state", ""),
            ("at", "yesterday"),
            ("at", "99999999999999"),
            ("day", "today"),
            ("day", "2024-02-30"),
            ("uid", "x"),
            ("steps", "{}"),
        ] {
            assert!(read(path, text).is_err(), "{path} {text}");
        }
    }

    #[test]
    fn free_fields_read_json_of_one_value_and_otherwise_text() {
        for (text, value) in [
            ("7", json!(7)),
            ("-1.5e3", json!(-1500.0)),
            ("true", json!(true)),
            ("null", Value::Null),
            ("\"7\"", json!("7")),
            ("\"7", json!("\"7")),
            ("007", json!("007")),
            ("-", json!("-")),
            ("", json!("")),
            ("{\"a\":1}", json!("{\"a\":1}")),
            (" 7", json!(" 7")),
        ] {
            assert_eq!(read("free", text), Ok(value), "{text}");
        }
        for text in ["100000000000000000000000000000", "-0", "1e400"] {
            assert!(read("free", text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_read_with_their_offsets() {
        let same = 1_700_000_000_000_i64;
        for text in [
            "2023-11-14T22:13:20Z",
            "2023-11-14T22:13:20.000Z",
            "2023-11-14t22:13:20.0z",
            "2023-11-14T23:13:20+01:00",
            "2023-11-14T17:43:20.000-04:30",
        ] {
            assert_eq!(read("at", text), Ok(json!(same)), "{text}");
        }
        assert_eq!(read("at", "1970-01-02"), Ok(json!(86_400_000)));
        assert_eq!(read("at", "1970-01-01T00:01Z"), Ok(json!(60_000)));
        for text in [
            "2023-02-30T00:00:00Z",
            "2023-11-14T22:13:20",
            "2023-11-14T24:13:20Z",
            "2023-11-14T22:13:20.1234Z",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13:20+1:00",
            "2023-11-14T22:13:20+01",
            "2023-11-14T22:13:20é",
            "T",
            "-",
        ] {
            assert!(read("at", text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whole_numbers_come_through_unchanged(number: i64) {
            prop_assert_eq!(read("n", &number.to_string()), Ok(json!(number)));
            prop_assert_eq!(read("free", &number.to_string()), Ok(json!(number)));
        }

        #[test]
        fn doubles_come_through_unchanged(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite() && number != 0.0);
            let text = json!(number).to_string();
            prop_assert_eq!(read("f", &text).unwrap().as_f64(), Some(number));
        }

        #[test]
        fn larger_numbers_are_refused(number in u128::from(u64::MAX) + 1..) {
            prop_assert!(read("n", &number.to_string()).is_err());
            prop_assert!(read("free", &number.to_string()).is_err());
        }

        #[test]
        fn moments_agree_with_milliseconds(ms in 0_i64..10_000_000_000_000) {
            let text = DateTime::try_from(keyloom::Timestamp::from(ms)).unwrap().to_string();
            prop_assert_eq!(read("at", &text), Ok(json!(ms)));
        }

        #[test]
        fn no_text_breaks_it(text in "[0-9TZ:.+-]{0,30}|\\PC{0,30}") {
            for path in ["id", "n", "f", "b", "at", "steps", "free"] {
                let _ = read(path, &text);
            }
            prop_assert_eq!(read("id", &text), Ok(json!(text)));
        }
    }
}
