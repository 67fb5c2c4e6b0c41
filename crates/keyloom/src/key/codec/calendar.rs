//! Date-times: exactly `YYYY-MM-DDTHH:MM:SS.mmmZ` in the Gregorian calendar. Their byte order is
//! the order of time.

/// The shape: a `0` stands for any digit, every other character for itself.
pub(super) const SHAPE: &[u8; 24] = b"0000-00-00T00:00:00.000Z";

/// Whether a text of this shape is a time that exists. Leap seconds do not exist: a clock that
/// counts milliseconds since 1970 has no place for them.
pub(super) fn exists(text: &[u8]) -> bool {
    let number = |start: usize, end: usize| {
        text.get(start..end).and_then(super::number::parse_digits).unwrap_or(u64::MAX)
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && number(11, 13) < 24
        && number(14, 16) < 60
        && number(17, 19) < 60
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

#[cfg(test)]
mod tests {
    use super::exists;

    #[test]
    fn only_moments_that_exist() {
        for text in [
            "2024-01-31T23:59:59.999Z",
            "2024-02-29T00:00:00.000Z",
            "2000-02-29T00:00:00.000Z",
            "0000-02-29T00:00:00.000Z",
            "9999-12-31T23:59:59.999Z",
        ] {
            assert!(exists(text.as_bytes()), "{text}");
        }
        for text in [
            "2023-02-29T00:00:00.000Z",
            "1900-02-29T00:00:00.000Z",
            "2024-02-30T00:00:00.000Z",
            "2024-04-31T00:00:00.000Z",
            "2024-00-01T00:00:00.000Z",
            "2024-13-01T00:00:00.000Z",
            "2024-01-00T00:00:00.000Z",
            "2024-01-32T00:00:00.000Z",
            "2024-01-01T24:00:00.000Z",
            "2024-01-01T00:60:00.000Z",
            "2024-01-01T00:00:60.000Z",
        ] {
            assert!(!exists(text.as_bytes()), "{text}");
        }
    }
}
