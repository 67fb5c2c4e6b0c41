//! The calendar of the codec and that of the automaton are one.

use super::template;
use crate::key::Kind;

#[test]
fn every_day_is_known_to_decoding_and_to_the_automaton_alike() {
    let up = template("{v}", &[("v", Kind::DateTime)]);
    let down = template("{v desc}", &[("v", Kind::DateTime)]);
    let mut days_found = 0;
    let mut check = |year: u32, month: u32, day: u32| {
        let text = format!("{year:04}-{month:02}-{day:02}T00:00:00.000Z");
        let mirrored: String = text
            .chars()
            .map(|c| c.to_digit(10).and_then(|digit| char::from_digit(9 - digit, 10)).unwrap_or(c))
            .collect();
        let exists = up.decode(text.as_bytes()).is_some();
        assert_eq!(up.automaton.accepts(text.as_bytes()), exists, "{text}");
        assert_eq!(down.automaton.accepts(mirrored.as_bytes()), exists, "{text}");
        days_found += u32::from(exists);
    };
    for year in 0..10_000 {
        check(year, 2, 29);
    }
    for (month, day) in (0..20).flat_map(|month| (0..40).map(move |day| (month, day))) {
        check(2023, month, day);
    }
    // 2,425 leap days in 10,000 years, and the days of one common year.
    assert_eq!(days_found, 2_425 + 365);
}

#[test]
fn every_time_of_day_is_known_to_both() {
    let times = template("{v}", &[("v", Kind::DateTime)]);
    for number in 0..100 {
        for text in [
            format!("2024-01-01T{number:02}:00:00.000Z"),
            format!("2024-01-01T00:{number:02}:00.000Z"),
            format!("2024-01-01T00:00:{number:02}.000Z"),
        ] {
            let exists = times.decode(text.as_bytes()).is_some();
            assert_eq!(times.automaton.accepts(text.as_bytes()), exists, "{text}");
        }
    }
}
