//! The keys of a history.
//!
//! | part | form | example |
//! | --- | --- | --- |
//! | collection | its name, which has no `:` | `note` |
//! | incarnation | 32 lower-case hex digits | `0199c0e2a1b27f3c…` |
//! | revision | 20 digits | `00000000000000000003` |
//! | key | the record's key, `%XX` for `:`, `%` and control bytes; `%sha256.` and 64 hex digits where that is too long | `note%3Aana%3A1` |
//! | time | milliseconds since 1970, 13 digits | `1700000000000` |
//!
//! Revisions have a fixed width, so that the versions of an incarnation lie in order. So do times,
//! and the traces under one key.

use sha2::{Digest, Sha256};

use crate::engine::{Address, Area, KEY_BYTES_MAX, Range, percent};
use crate::record::Version;

const VERSIONS: &str = "history:version:";
const TRACES: &str = "history:left:";

/// The highest time that 13 digits hold.
const TIME_MAX: u64 = 9_999_999_999_999;

/// The digits of a revision.
const REVISION_DIGITS: usize = 20;

/// What follows the record's key in the key of a trace: time, incarnation and revision, each
/// after a colon.
const TRACE_TAIL_BYTES: usize = 1 + 13 + 1 + 32 + 1 + REVISION_DIGITS;

/// No escaped key begins so: two upper-case hex digits follow each `%`.
const HASHED: &str = "%sha256.";

/// Where a record was until a version that is no longer there: deleted, or moved to another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// When it left.
    pub(crate) at: u64,
    /// The version with which it left.
    pub(crate) version: Version,
}

/// The cell of one version.
pub(crate) fn version_address(collection: &str, version: Version) -> Address {
    let key = format!("{}{:020}", versions_prefix(collection, version), version.revision());
    Address::new(Area::own(), key)
}

/// The versions of an incarnation, in order, from one revision to another, both included.
pub(crate) fn versions_of(collection: &str, of: Version, first: u64, last: u64) -> Range {
    let prefix = versions_prefix(collection, of);
    let end = last
        .checked_add(1)
        .map_or_else(|| format!("{prefix}:"), |end| format!("{prefix}{end:020}"));
    Range { area: Area::own(), start: format!("{prefix}{first:020}").into(), end: Some(end.into()) }
}

/// The collection and the version whose cell this is; `None` for another key.
pub(crate) fn version_of(key: &[u8]) -> Option<(&str, Version)> {
    let text = std::str::from_utf8(key).ok()?.strip_prefix(VERSIONS)?;
    let (collection, rest) = text.split_once(':')?;
    let (incarnation, revision) = rest.split_once(':')?;
    Some((collection, version(incarnation, revision)?))
}

/// The cell of one trace under the record's key.
pub(crate) fn trace_address(collection: &str, record: &[u8], trace: Trace) -> Address {
    let mut key = traces_prefix(collection, record);
    let Trace { at, version } = trace;
    let at = at.min(TIME_MAX);
    let tail = format!("{at:013}:{}:{:020}", version.incarnation_text(), version.revision());
    key.extend(tail.as_bytes());
    Address::new(Area::own(), key)
}

/// The traces under a record's key that were left after this time, in order of time.
pub(crate) fn traces_of(collection: &str, record: &[u8], after: Option<u64>) -> Range {
    let prefix = traces_prefix(collection, record);
    let mut range = Range::prefix(Area::own(), prefix.clone());
    if let Some(after) = after {
        let first = after.saturating_add(1).min(TIME_MAX + 1);
        let mut start = prefix;
        // One more than the highest time has 14 digits and sorts wrongly; nothing is after it.
        match first <= TIME_MAX {
            true => start.extend(format!("{first:013}").as_bytes()),
            false => start.extend(b":"),
        }
        range.start = start.into();
    }
    range
}

/// The collection and the trace that a key names; `None` for another key.
pub(crate) fn trace_of(key: &[u8]) -> Option<(&str, Trace)> {
    let rest = key.strip_prefix(TRACES.as_bytes())?;
    let (head, tail) = rest.split_at_checked(rest.len().checked_sub(TRACE_TAIL_BYTES)?)?;
    let colon = head.iter().position(|&byte| byte == b':')?;
    let (collection, record) = (std::str::from_utf8(&head[..colon]).ok()?, &head[colon + 1..]);
    let is_record = match record.strip_prefix(HASHED.as_bytes()) {
        Some(hash) => hash.len() == 64 && hash.iter().all(u8::is_ascii_hexdigit),
        None => !record.contains(&b':') && percent::unescape(record).is_some(),
    };
    let mut parts = std::str::from_utf8(tail).ok()?.strip_prefix(':')?.splitn(3, ':');
    let at = parts.next().filter(|at| at.len() == 13 && is_digits(at))?.parse().ok()?;
    let version = version(parts.next()?, parts.next()?)?;
    is_record.then_some((collection, Trace { at, version }))
}

/// Every cell of every history.
pub(crate) fn own_range() -> Range {
    Range::prefix(Area::own(), "history:")
}

pub(super) fn all_versions() -> Range {
    Range::prefix(Area::own(), VERSIONS)
}

pub(super) fn all_traces() -> Range {
    Range::prefix(Area::own(), TRACES)
}

fn versions_prefix(collection: &str, of: Version) -> String {
    format!("{VERSIONS}{collection}:{}:", of.incarnation_text())
}

fn traces_prefix(collection: &str, record: &[u8]) -> Vec<u8> {
    let mut prefix = format!("{TRACES}{collection}:").into_bytes();
    let start = prefix.len();
    percent::escape(record, Some(b':'), &mut prefix);
    if prefix.len() + TRACE_TAIL_BYTES > KEY_BYTES_MAX {
        prefix.truncate(start);
        let hash: String =
            Sha256::digest(record).iter().map(|byte| format!("{byte:02x}")).collect();
        prefix.extend(format!("{HASHED}{hash}").into_bytes());
    }
    prefix.push(b':');
    prefix
}

fn version(incarnation: &str, revision: &str) -> Option<Version> {
    if revision.len() != REVISION_DIGITS || !is_digits(revision) {
        return None;
    }
    let revision: u64 = revision.parse().ok()?;
    format!("{incarnation}-{revision}").parse().ok()
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_name_what_they_were_made_of(
            record in prop::collection::vec(any::<u8>(), 1..KEY_BYTES_MAX),
            revision: u64,
            at in 0..=TIME_MAX,
        ) {
            let version = Version::first().at_revision(revision);
            let address = version_address("note", version);
            prop_assert!(address.check().is_ok());
            prop_assert_eq!(version_of(&address.key), Some(("note", version)));
            let trace = Trace { at, version };
            let address = trace_address("note", &record, trace);
            prop_assert!(address.check().is_ok());
            prop_assert_eq!(trace_of(&address.key), Some(("note", trace)));
            prop_assert!(traces_of("note", &record, None).contains(&address.key));
            prop_assert!(!traces_of("note", &record, Some(at)).contains(&address.key));
            let before = at.checked_sub(1);
            prop_assert!(traces_of("note", &record, before).contains(&address.key));
        }

        #[test]
        fn the_traces_of_a_key_are_those_of_no_other(
            one in "[a:%\\x00]{1,6}", other in "[a:%\\x00]{1,6}",
        ) {
            let trace = Trace { at: 7, version: Version::first() };
            let address = trace_address("note", other.as_bytes(), trace);
            let range = traces_of("note", one.as_bytes(), None);
            prop_assert_eq!(range.contains(&address.key), one == other);
        }

        #[test]
        fn any_key_can_be_tried(key: Vec<u8>, tail in "[0-9a-f:%]{0,80}") {
            let _ = (version_of(&key), trace_of(&key));
            for kind in [VERSIONS, TRACES] {
                let key = format!("{kind}{tail}");
                let _ = (version_of(key.as_bytes()), trace_of(key.as_bytes()));
            }
        }
    }

    #[test]
    fn versions_lie_in_order() {
        let first = Version::first();
        let range = versions_of("note", first, 2, u64::MAX);
        for (revision, inside) in [(1, false), (2, true), (10, true), (u64::MAX, true)] {
            let address = version_address("note", first.at_revision(revision));
            assert_eq!(range.contains(&address.key), inside, "{revision}");
        }
        assert!(
            !versions_of("note", first, 1, 9)
                .contains(&version_address("note", first.at_revision(10)).key)
        );
    }
}
