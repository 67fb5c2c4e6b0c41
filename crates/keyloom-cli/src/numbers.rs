//! Parses numbers on the command line. An option with a wrong value says what it accepts.

use std::ops::RangeInclusive;

/// More than any machine can hold at once.
const COUNT_MAX: u64 = 1_000_000_000;
/// A terabyte, more than the memory of any machine.
const BYTES_MAX: u64 = 1 << 40;
/// A year.
const SECONDS_MAX: u64 = 31_536_000;

const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
];

/// A number of things, at least one.
pub(crate) fn count(text: &str) -> Result<usize, String> {
    whole(text, "a whole number", 1..=COUNT_MAX).map(in_memory)
}

/// A number of things, possibly none.
pub(crate) fn count_or_none(text: &str) -> Result<u64, String> {
    whole(text, "a whole number", 0..=COUNT_MAX)
}

/// Any whole number that is not negative.
pub(crate) fn any(text: &str) -> Result<u64, String> {
    whole(text, "a whole number", 0..=u64::MAX)
}

/// A share in percent.
pub(crate) fn percent(text: &str) -> Result<usize, String> {
    whole(text, "a whole number of percent", 1..=100).map(in_memory)
}

/// A size in bytes, with or without a unit.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    sized(text, 1..=BYTES_MAX)
}

/// A size in bytes, possibly none.
pub(crate) fn bytes_or_none(text: &str) -> Result<usize, String> {
    sized(text, 0..=BYTES_MAX)
}

/// A time in seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    whole(text, "a whole number of seconds", 1..=SECONDS_MAX)
}

/// A time in seconds, possibly none.
pub(crate) fn seconds_or_none(text: &str) -> Result<u64, String> {
    whole(text, "a whole number of seconds", 0..=SECONDS_MAX)
}

/// A latitude or a longitude. The server checks its limits.
pub(crate) fn degrees(text: &str) -> Result<f64, String> {
    let degrees = text.parse().ok().filter(|degrees: &f64| degrees.is_finite());
    degrees.ok_or_else(|| "it takes degrees, as in 52.52 or -33.86".to_owned())
}

fn whole(text: &str, what: &str, allowed: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.trim().parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| format!("it takes {what} from {} to {}", allowed.start(), allowed.end()))
}

fn sized(text: &str, allowed: RangeInclusive<u64>) -> Result<usize, String> {
    let size = in_bytes(text.trim()).filter(|size| allowed.contains(size));
    size.map(in_memory).ok_or_else(|| {
        let (least, most) = (allowed.start(), allowed.end());
        format!("it takes a number of bytes from {least} to {most}, as in 4096, 500KB or 8MiB")
    })
}

fn in_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The number as `usize`; the largest one if it does not fit.
fn in_memory(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [
            ("1", 1),
            ("4096", 4_096),
            ("7b", 7),
            ("500KB", 500_000),
            ("64 KiB", 65_536),
            ("8mib", 8 << 20),
            ("2GB", 2_000_000_000),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        let refused = Err("it takes a number of bytes from 1 to 1099511627776, as in 4096, 500KB \
                           or 8MiB"
            .to_owned());
        for text in ["", "0", "-1", "KB", "1.5MB", "1TB", "8 miles", "99999999GiB", "é", "1é"] {
            assert_eq!(bytes(text), refused, "{text}");
        }
        assert_eq!(bytes_or_none("0"), Ok(0));
    }

    #[test]
    fn every_refusal_says_what_would_do() {
        let refused = Err("it takes a whole number from 1 to 1000000000".to_owned());
        for text in ["", "0", "-1", "1.5", "many", "1000000001", "99999999999999999999999"] {
            assert_eq!(count(text), refused, "{text}");
        }
        let refused = Err("it takes a whole number of seconds from 1 to 31536000".to_owned());
        for text in ["", "0", "-1", "1h", "18446744073709551615"] {
            assert_eq!(seconds(text), refused, "{text}");
        }
        let refused = Err("it takes a whole number of percent from 1 to 100".to_owned());
        for text in ["", "0", "101", "25%", "0.5"] {
            assert_eq!(percent(text), refused, "{text}");
        }
        assert_eq!((percent("1"), percent("100")), (Ok(1), Ok(100)));
        for text in ["", "north", "nan", "inf"] {
            assert!(degrees(text).is_err(), "{text}");
        }
        assert_eq!((count("7"), seconds_or_none("0"), count_or_none("0")), (Ok(7), Ok(0), Ok(0)));
        assert_eq!((any("18446744073709551615"), degrees("-33.86")), (Ok(u64::MAX), Ok(-33.86)));
    }
}
