//! What a verification or a repair has come to so far.

use serde::{Deserialize, Serialize};

use super::finding::{Finding, FindingCounts};
use super::verify::Tallied;

/// What is kept of a verification or a repair that goes on later, besides its findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Account {
    pub(super) records: u64,
    pub(super) entries: u64,
    pub(super) unsettled: u64,
    /// Faults that were mended.
    pub(super) mended: FindingCounts,
    /// Faults that were left, as a verification leaves all.
    pub(super) left: FindingCounts,
    /// How far the aggregates are done, once all keys of templates are.
    pub(super) tallied: Tallied,
    /// When it began, by the store's clock.
    pub(super) began: u64,
}

impl Account {
    pub(super) fn begun(now: u64) -> Self {
        Account { began: now, ..Account::default() }
    }

    /// How many faults were found.
    pub(super) fn findings(&self) -> u64 {
        self.mended.total() + self.left.total()
    }
}

/// A finding as it is kept, with what became of it.
#[derive(Serialize, Deserialize)]
struct Noted<F> {
    #[serde(default)]
    mended: bool,
    #[serde(flatten)]
    finding: F,
}

/// The first findings.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) mended: Vec<Finding>,
    pub(super) left: Vec<Finding>,
}

impl Found {
    /// The findings that were noted before.
    pub(super) fn of(notes: &[String]) -> Self {
        let mut found = Found::default();
        for note in notes {
            // A line that cannot be read is one finding less in the report; it is still counted.
            if let Ok(Noted { mended, finding }) = serde_json::from_str(note) {
                found.list(mended).push(finding);
            }
        }
        found
    }

    /// Adds a finding unless there are enough, and gives what is to be noted of it.
    pub(super) fn add(&mut self, mended: bool, finding: Finding, most: usize) -> Option<String> {
        let list = self.list(mended);
        if list.len() >= most {
            return None;
        }
        let note = serde_json::to_string(&Noted { mended, finding: &finding }).ok();
        list.push(finding);
        note
    }

    fn list(&mut self, mended: bool) -> &mut Vec<Finding> {
        if mended { &mut self.mended } else { &mut self.left }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingKind;
    use super::*;

    /// Whatever bytes its key has.
    #[test]
    fn a_finding_is_read_as_it_was_noted() {
        let finding = |key: &'static [u8], collection: Option<&str>| Finding {
            kind: FindingKind::Dangling,
            collection: collection.map(str::to_owned),
            index: None,
            area: "~".to_owned(),
            key: crate::engine::ShowKey(key).to_string(),
            key_bytes: key.into(),
            record: Some("a\nb".to_owned()),
            reason: "it has \"no\" record".to_owned(),
        };
        let all = [finding(b"a:%41\n\xff\x00", None), finding(b"caf\xc3\xa9", Some("c"))];
        let (mut found, mut notes) = (Found::default(), Vec::new());
        for (place, finding) in all.iter().enumerate() {
            notes.extend(found.add(place == 0, finding.clone(), 1));
        }
        assert_eq!(found.add(true, all[0].clone(), 1), None, "there are enough");
        assert!(notes.iter().all(|note| !note.contains('\n')), "each is one line");
        let read = Found::of(&notes);
        assert_eq!((&read.mended[..], &read.left[..]), (&all[..1], &all[1..]));
    }
}
