//! Times for people.

/// Milliseconds since 1970 as an ISO-8601 time of UTC.
pub(crate) fn moment(millis: i64) -> String {
    let (days, within) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = date(days);
    let (seconds, millis) = (within / 1000, within % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date this many days after 1 January 1970, in the Gregorian calendar. Years begin in March
/// here, so that a leap day is the last day of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_utc() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(moment(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(moment(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(moment(9_999_999_999_999), "2286-11-20T17:46:39.999Z");
    }
}
