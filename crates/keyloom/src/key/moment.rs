//! Converts points in time between text and milliseconds since 1970.

const DAY_MS: i64 = 86_400_000;

/// The beginning of the year 0, and of the year 10000, in milliseconds.
pub(crate) const YEAR_0_MS: i64 = -62_167_219_200_000;
pub(crate) const YEAR_10000_MS: i64 = 253_402_300_800_000;

/// `2024-01-31T23:59:59.999Z`. Times before the year 0 or after 9999 become the first or the last
/// time with a year of four digits.
pub(crate) fn datetime_of(millis: i64) -> String {
    let millis = millis.clamp(YEAR_0_MS, YEAR_10000_MS - 1);
    let (days, of_day) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
    let (year, month, day) = date_of(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The milliseconds of a valid date-time.
pub(crate) fn millis_of(datetime: &str) -> i64 {
    let number = |start: usize, end: usize| {
        let digits = datetime.get(start..end).and_then(|digits| digits.parse().ok());
        digits.unwrap_or(0_i64)
    };
    let days = days_since_1970(number(0, 4), number(5, 7), number(8, 10));
    let minutes = (days * 24 + number(11, 13)) * 60 + number(14, 16);
    (minutes * 60 + number(17, 19)) * 1_000 + number(20, 23)
}

/// The days from 1970 to a date. Here years begin in March: the leap day is then the last day of
/// the year, and the number of a month alone gives the days before it.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let days_of_months = (153 * month_from_march + 2) / 5;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + days_of_months + day - 1 - DAYS_TO_1970
}

/// From 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: i64 = 719_468;

/// The calendar repeats after this many days.
const DAYS_OF_400_YEARS: i64 = 146_097;

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, of_era) = (days.div_euclid(DAYS_OF_400_YEARS), days.rem_euclid(DAYS_OF_400_YEARS));
    // Removes the leap days, so that every year has 365 days.
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month < 3);
    (year, month, day)
}
