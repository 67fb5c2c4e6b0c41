//! Points in time as text.

use super::text::{Ascii, text_value};
use super::timestamp::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{Kind, YEAR_0_MS, YEAR_10000_MS, datetime_of, millis_of};

/// A point in time as text: exactly `2024-01-31T23:59:59.999Z`, so that texts sort in the order of
/// time.
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
    /// The current time.
    pub fn now() -> Self {
        of_millis(Timestamp::now().millis())
    }

    /// The same time in milliseconds since 1970.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from(millis_of(self.as_str()))
    }
}

impl TryFrom<Timestamp> for DateTime {
    type Error = Error;

    /// Fails for years without exactly four digits.
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
    DateTime(Ascii::made(datetime_of(millis).as_bytes()))
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
