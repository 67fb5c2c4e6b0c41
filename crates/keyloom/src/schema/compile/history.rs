//! Compiles the bounds of a history.

use super::super::declaration::HistoryDeclaration;
use super::super::problem::{Problems, Trail};
use super::under;

const VERSIONS_MAX: usize = 1_000_000;
const DAYS_MAX: usize = 36_500;

/// The history, if its bounds are valid.
pub(super) fn compile(
    declared: Option<HistoryDeclaration>,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<HistoryDeclaration> {
    let declared = declared?;
    let HistoryDeclaration { versions, days } = declared;
    let is_broken = problems.touch(trail);
    if versions.is_none() && days.is_none() && !is_broken {
        problems.add(trail.clone(), "needs `versions`, `days` or both: what is kept has a bound");
    }
    for (name, bound, most) in [("versions", versions, VERSIONS_MAX), ("days", days, DAYS_MAX)] {
        if bound.is_some_and(|bound| !(1..=most).contains(&bound)) {
            problems.add(under(trail, name), format!("must be a number from 1 to {most}"));
        }
    }
    (!is_broken).then_some(declared)
}
