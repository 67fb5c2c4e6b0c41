//! Numbers, sizes and times for people.

use keyloom::{DateTime, Timestamp};
use maud::{Markup, html};

/// A number with its digits in groups.
pub(in crate::console) fn count(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number or a size, with a plus if counting stopped early.
pub(in crate::console) fn at_least(told: &str, is_exact: bool) -> Markup {
    html! {
        (told)
        @if !is_exact { abbr title="There are more than were counted" { "+" } }
    }
}

/// A size in the unit that keeps it short.
pub(in crate::console) fn bytes(size: impl Into<u64>) -> String {
    let size = size.into();
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match units.into_iter().find(|(_, unit)| size >= *unit) {
        None => format!("{size} B"),
        Some((name, unit)) => format!("{}.{} {name}", size / unit, size % unit * 10 / unit),
    }
}

/// A distance in the unit that keeps it short.
pub(in crate::console) fn distance(metres: f64) -> String {
    match metres {
        // Below this, rounding still gives metres of three digits.
        ..999.5 => format!("{metres:.0} m"),
        ..99_950.0 => format!("{:.1} km", metres / 1_000.0),
        // At most half the way around the Earth.
        _ => format!("{} km", count((metres / 1_000.0).round() as u64)),
    }
}

/// A duration.
pub(in crate::console) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A time, in milliseconds since 1970.
pub(in crate::console) fn time(at_ms: u64) -> Markup {
    let exact = i64::try_from(at_ms).ok().map(Timestamp::from);
    let exact = exact.and_then(|at| DateTime::try_from(at).ok()).map(String::from);
    match exact {
        None => html! { (at_ms) " ms" },
        Some(exact) => {
            let shown = exact.get(..19).unwrap_or(&exact).replace('T', " ");
            html! { time datetime=(exact) title=(exact) { (shown) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sizes_and_times_are_short_and_right() {
        assert_eq!([count(0_u64), count(999_u64), count(1_000_u64)], ["0", "999", "1,000"]);
        assert_eq!(count(12_345_678_u64), "12,345,678");
        assert_eq!(
            [bytes(999_u64), bytes(1_550_u64), bytes(2_000_000_u64)],
            ["999 B", "1.5 kB", "2.0 MB"]
        );
        let far = [0.0, 999.4, 999.5, 12_345.0, 99_950.0, 20_015_115.0].map(distance);
        assert_eq!(far, ["0 m", "999 m", "1.0 km", "12.3 km", "100 km", "20,015 km"]);
        assert_eq!(
            [duration(59), duration(3_700), duration(90_000)],
            ["59 s", "1 h 1 min", "1 d 1 h"]
        );
        assert!(time(1_700_000_000_000).into_string().contains(">2023-11-14 22:13:20<"));
        assert_eq!(time(u64::MAX).into_string(), format!("{} ms", u64::MAX));
    }
}
