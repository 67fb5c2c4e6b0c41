//! Hints at the value that a person probably meant by a text that is almost valid.
//!
//! | field | text | hint |
//! | --- | --- | --- |
//! | date-time | `2024-01-31` | a date has no time; its first moment is 2024-01-31T00:00:00.000Z |
//! | date-time | `2024-01-31T23:59:59Z` | this one is 2024-01-31T23:59:59.000Z |
//! | date-time | `2024-01-31T23:59:59+01:00` | write the moment in UTC, which ends in Z |
//! | timestamp | `2024-01-31` | this one is 1706659200000 |
//! | UUID | `0F8FAD5B-D9CB-469F-A165-70867728950E` | this one is 0f8fad5bd9cb469fa16570867728950e |

use serde_json::Value;

use super::Codec;
use crate::key::moment::millis_of;

impl Codec {
    /// The text to append to the reason of an error: a hint with its separator, or nothing.
    pub(super) fn hint(&self, value: &Value) -> String {
        let Some(text) = value.as_str() else { return String::new() };
        match self {
            Codec::DateTime => match moment(text) {
                Some(moment) if text.len() == DATE.len() => {
                    format!("; a date has no time, and its first moment is {moment}")
                }
                Some(moment) if moment != text => format!("; this one is {moment}"),
                None if may_be_elsewhere(text) => {
                    "; write the moment in UTC, which ends in Z".to_owned()
                }
                _ => String::new(),
            },
            Codec::Timestamp => moment(text)
                .map(|moment| millis_of(&moment))
                .filter(|millis| (0..=super::TIMESTAMP_MAX).contains(millis))
                .map(|millis| format!("; this one is {millis}"))
                .unwrap_or_default(),
            Codec::Uuid { .. } => {
                let plain = text.replace('-', "").to_lowercase();
                let is_meant = plain != text && self.check_exactly(&plain).is_ok();
                if is_meant { format!("; this one is {plain}") } else { String::new() }
            }
            _ => String::new(),
        }
    }
}

/// Whether a text has a date and a time, but does not say that it is UTC.
fn may_be_elsewhere(text: &str) -> bool {
    let in_utc = |clock: &str| format!("{}Z", clock.split(['+', '-']).next().unwrap_or_default());
    text.split_once(['T', 't', ' ']).is_some_and(|(date, clock)| {
        !clock.ends_with(['Z', 'z']) && moment(&format!("{date}T{}", in_utc(clock))).is_some()
    })
}

/// An example that shows the form of a date.
const DATE: &str = "2024-01-31";

/// The time of a date, or of a date and a time in UTC that omits milliseconds or seconds.
fn moment(text: &str) -> Option<String> {
    let (date, clock) = match text.split_once(['T', 't', ' ']) {
        Some((date, clock)) => (date, clock.strip_suffix(['Z', 'z'])?),
        None => (text, "00:00:00.000"),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let seconds = if clock.len() == "23:59".len() { ":00" } else { "" };
    let moment = format!("{date}T{clock}{seconds}.{fraction:0<3}Z");
    Codec::DateTime.check_exactly(&moment).is_ok().then_some(moment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn near_forms_are_completed_and_others_left_alone() {
        for (text, hint) in [
            (
                "2024-01-31",
                "; a date has no time, and its first moment is 2024-01-31T00:00:00.000Z",
            ),
            ("2024-01-31T23:59:59Z", "; this one is 2024-01-31T23:59:59.000Z"),
            ("2024-01-31 23:59Z", "; this one is 2024-01-31T23:59:00.000Z"),
            ("2024-01-31t23:59:59.5z", "; this one is 2024-01-31T23:59:59.500Z"),
            // Which time this is depends on the writer's time zone.
            ("2024-01-31T23:59:59", "; write the moment in UTC, which ends in Z"),
            ("2024-01-31T23:59:59+01:00", "; write the moment in UTC, which ends in Z"),
            ("2024-01-31T10:61:00", ""),
            ("2024-02-31", ""),
            ("yesterday", ""),
            ("", ""),
            ("ééééé", ""),
        ] {
            assert_eq!(Codec::DateTime.hint(&json!(text)), hint, "{text}");
        }
        assert_eq!(Codec::Timestamp.hint(&json!("2024-01-31")), "; this one is 1706659200000");
        assert_eq!(Codec::Timestamp.hint(&json!("1969-01-31")), "");
        assert_eq!(Codec::Timestamp.hint(&json!(1.5)), "");
        let uuid = Codec::Uuid { version: Some(4) };
        let hint = uuid.hint(&json!("0F8FAD5B-D9CB-469F-A165-70867728950E"));
        assert_eq!(hint, "; this one is 0f8fad5bd9cb469fa16570867728950e");
        assert_eq!(uuid.hint(&json!("0F8FAD5B-D9CB-169F-A165-70867728950E")), "");
    }
}
