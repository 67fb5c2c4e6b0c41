//! The allowed changes of an enum field.

use std::collections::BTreeMap;

/// The declared transitions of an enum field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transitions {
    /// For each value, the values that it may change to. A value that is not listed is final.
    pub(crate) allowed: BTreeMap<String, Vec<String>>,
    /// Whether a write with an undeclared change succeeds without effect instead of failing.
    pub(crate) ignore: bool,
}

/// What happens to a write that changes the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It continues.
    Allowed,
    /// It succeeds and changes nothing.
    Ignored,
    /// It is refused.
    Illegal,
}

impl Transitions {
    /// Judges a change from `old` to `new`, which is `None` if the value is removed. A value may
    /// always stay as it is.
    pub(crate) fn check(&self, old: &str, new: Option<&str>) -> Verdict {
        let declared = |new| self.after(old).iter().any(|allowed| allowed == new);
        if new.is_some_and(|new| old == new || declared(new)) {
            Verdict::Allowed
        } else if self.ignore {
            Verdict::Ignored
        } else {
            Verdict::Illegal
        }
    }

    /// The values that this one may change to, for messages.
    pub(crate) fn after(&self, old: &str) -> &[String] {
        self.allowed.get(old).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transitions(ignore: bool) -> Transitions {
        let allowed = BTreeMap::from([("RUNNING".to_owned(), vec!["SUCCEEDED".to_owned()])]);
        Transitions { allowed, ignore }
    }

    #[test]
    fn a_value_changes_only_as_declared() {
        let strict = transitions(false);
        assert_eq!(strict.check("RUNNING", Some("SUCCEEDED")), Verdict::Allowed);
        assert_eq!(strict.check("SUCCEEDED", Some("RUNNING")), Verdict::Illegal);
        assert_eq!(strict.check("RUNNING", Some("FAILED")), Verdict::Illegal);
        assert_eq!(transitions(true).check("SUCCEEDED", Some("RUNNING")), Verdict::Ignored);
    }

    #[test]
    fn a_value_cannot_be_taken_away() {
        assert_eq!(transitions(false).check("RUNNING", None), Verdict::Illegal);
        assert_eq!(transitions(true).check("RUNNING", None), Verdict::Ignored);
    }

    #[test]
    fn staying_is_always_allowed() {
        for ignore in [false, true] {
            assert_eq!(transitions(ignore).check("SUCCEEDED", Some("SUCCEEDED")), Verdict::Allowed);
        }
    }
}
