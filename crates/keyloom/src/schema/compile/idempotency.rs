//! Compiles how long the answers to idempotency keys are kept.

use super::super::declaration::IdempotencyDeclaration;
use super::super::problem::Problems;

/// A day, unless declared otherwise.
pub(crate) const KEEP_MS_DEFAULT: u64 = 24 * 60 * 60 * 1_000;

/// Ten years.
const KEEP_MS_MAX: u64 = 3_650 * 24 * 60 * 60 * 1_000;

const UNITS: [(&str, u64); 4] =
    [("second", 1_000), ("minute", 60_000), ("hour", 3_600_000), ("day", 86_400_000)];

/// The declared time in milliseconds.
pub(super) fn compile(declared: Option<&IdempotencyDeclaration>, problems: &mut Problems) -> u64 {
    let Some(declared) = declared else { return KEEP_MS_DEFAULT };
    let keep_ms = milliseconds(&declared.keep).filter(|ms| (1..=KEEP_MS_MAX).contains(ms));
    keep_ms.unwrap_or_else(|| {
        let trail = vec!["idempotency".to_owned(), "keep".to_owned()];
        let message = "must be a time such as \"24 hours\": a whole number of seconds, minutes, \
                       hours or days, and at most 3650 days";
        problems.add(trail, message);
        KEEP_MS_DEFAULT
    })
}

/// `90 minutes`, `1 day`.
fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let digits_only = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| digits_only)?;
    let singular = unit.strip_suffix('s').unwrap_or(unit);
    let (_, ms) = UNITS.iter().find(|(name, _)| *name == singular)?;
    number.checked_mul(*ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_a_unit() {
        assert_eq!(milliseconds("24 hours"), Some(KEEP_MS_DEFAULT));
        assert_eq!(milliseconds("1 day"), Some(KEEP_MS_DEFAULT));
        assert_eq!(milliseconds("90 minutes"), Some(5_400_000));
        for wrong in ["", "24", "hours", "24hours", "-1 days", "+1 days", "1.5 days", "1 week"] {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
        assert_eq!(milliseconds("99999999999999999999 days"), None);
        assert_eq!(milliseconds("9999999999999999999 days"), None);
    }
}
