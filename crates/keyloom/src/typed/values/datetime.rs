//! Moments as text.

use super::text::{Ascii, text_value};
use super::timestamp::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Kind;

const DAY_MS: i64 = 86_400_000;

/// The first moment of the year 0, and the first of the year 10000, in milliseconds.
const YEAR_0_MS: i64 = -62_167_219_200_000;
const YEAR_10000_MS: i64 = 253_402_300_800_000;

/// A moment as text: exactly `2024-01-31T23:59:59.999Z`, so that the order of texts is the order
/// of time.
///
/// ```
/// use keyloom::{DateTime, Timestamp};
///
/// let started: DateTime = "2023-01-29T00:06:27.234Z".parse()?;
/// assert_eq!(started.timestamp(), Timestamp::from(1_674_950_787_234));
/// assert_eq!(DateTime::try_from(started.timestamp())?, started);
/// assert!("2023-02-29T00:00:00.000Z".parse::<DateTime>().is_err());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(Ascii<24>);

text_value!(DateTime, Kind::DateTime, "datetime");

impl DateTime {
    /// The present time.
    pub fn now() -> Self {
        of_millis(Timestamp::now().millis())
    }

    /// The same moment in milliseconds since 1970.
    pub fn timestamp(&self) -> Timestamp {
        let number = |start: usize, end: usize| {
            let digits = self.as_str().get(start..end).and_then(|digits| digits.parse().ok());
            digits.unwrap_or(0_i64)
        };
        let days = days_since_1970(number(0, 4), number(5, 7), number(8, 10));
        let minutes = (days * 24 + number(11, 13)) * 60 + number(14, 16);
        Timestamp::from((minutes * 60 + number(17, 19)) * 1_000 + number(20, 23))
    }
}

impl TryFrom<Timestamp> for DateTime {
    type Error = Error;

    /// Fails for years that do not have four digits.
    fn try_from(timestamp: Timestamp) -> Result<Self> {
        let millis = timestamp.millis();
        if (YEAR_0_MS..YEAR_10000_MS).contains(&millis) {
            return Ok(of_millis(millis));
        }
        Err(Error::new(ErrorKind::InvalidArgument, "a date-time has a year of four digits")
            .with("timestamp", timestamp))
    }
}

fn of_millis(millis: i64) -> DateTime {
    let millis = millis.clamp(YEAR_0_MS, YEAR_10000_MS - 1);
    let (days, of_day) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
    let (year, month, day) = date_of(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    let text =
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z");
    DateTime(Ascii::made(text.as_bytes()))
}

/// The days from 1970 to a date. Years begin in March here, so that the leap day is their last
/// and the days before a month follow from its number alone.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let days_of_months = (153 * month_from_march + 2) / 5;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + days_of_months + day - 1 - DAYS_TO_1970
}

/// From the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: i64 = 719_468;

/// The calendar repeats after these.
const DAYS_OF_400_YEARS: i64 = 146_097;

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    // Takes the leap days out, so that years have 365 days each.
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month < 3);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_674_950_787_234, "2023-01-29T00:06:27.234Z"),
            (YEAR_0_MS, "0000-01-01T00:00:00.000Z"),
            (YEAR_10000_MS - 1, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(DateTime::try_from(Timestamp::from(millis)).unwrap(), text);
            assert_eq!(text.parse::<DateTime>().unwrap().timestamp().millis(), millis);
        }
        assert!(DateTime::try_from(Timestamp::from(YEAR_0_MS - 1)).is_err());
        assert!(DateTime::try_from(Timestamp::from(YEAR_10000_MS)).is_err());
    }

    proptest! {
        #[test]
        fn texts_and_timestamps_are_the_same_moments(
            a in YEAR_0_MS..YEAR_10000_MS,
            b in YEAR_0_MS..YEAR_10000_MS,
        ) {
            let text = |millis| DateTime::try_from(Timestamp::from(millis)).unwrap();
            prop_assert_eq!(text(a).timestamp().millis(), a);
            prop_assert_eq!(text(a).to_string().parse::<DateTime>().unwrap(), text(a));
            prop_assert_eq!(a.cmp(&b), text(a).cmp(&text(b)));
        }
    }
}
