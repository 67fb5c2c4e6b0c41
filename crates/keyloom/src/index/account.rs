//! What a verification or a repair has come to so far.

use serde::{Deserialize, Serialize};

use super::repair::Fate;
use super::verify::ComparedUpTo;
use crate::engine::{Batch, Outcome};
use crate::side::{Finding, FindingCounts};
use crate::space::{Loaded, Position, Task, Under};

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
    /// How far the comparisons are, once all keys were looked at.
    pub(super) compared: ComparedUpTo,
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

/// Hears what has been done so far, after each chunk of keys and each aggregate.
pub(super) type HearAccount<'h> = &'h (dyn Fn(&Account) + Send + Sync);

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
    fn add(&mut self, mended: bool, finding: Finding, most: usize) -> Option<String> {
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

/// An account with its findings, kept by a task as it goes on.
pub(super) struct Ledger<'t, 'l> {
    pub(super) task: &'t mut Task<'l, Account>,
    pub(super) account: Account,
    pub(super) found: Found,
    /// Notes of findings that the task has not been given yet.
    notes: Vec<String>,
    /// How many findings are told, of those that were mended and of those that were left.
    findings_max: usize,
    /// Whether something was mended that is not kept yet.
    has_mended: bool,
}

impl<'t, 'l> Ledger<'t, 'l> {
    pub(super) fn new(task: &'t mut Task<'l, Account>, findings_max: usize) -> Self {
        let (account, found) = (task.progress().clone(), Found::of(&task.take_notes()));
        Ledger { task, account, found, notes: Vec::new(), findings_max, has_mended: false }
    }

    /// Notes what became of a fault.
    pub(super) fn note(&mut self, mut finding: Finding, fate: Fate) {
        match fate {
            Fate::Mended => {
                self.has_mended = true;
                self.account.mended.add(finding.kind);
                self.notes.extend(self.found.add(true, finding, self.findings_max));
            }
            Fate::Left(reason) => {
                finding.reason.push_str(&reason);
                self.account.left.add(finding.kind);
                self.notes.extend(self.found.add(false, finding, self.findings_max));
            }
            Fate::Gone => {}
        }
    }

    /// Commits what mends these faults, and keeps with it that they were mended; `false` when
    /// something that it rests on is no longer so.
    pub(super) async fn mend<'f>(
        &mut self,
        loaded: &Loaded,
        batch: Batch,
        mended: impl Iterator<Item = &'f Finding>,
    ) -> Under<bool> {
        let (mut account, mut told, mut notes) = (self.account.clone(), Found::default(), vec![]);
        let room = self.findings_max.saturating_sub(self.found.mended.len());
        for finding in mended {
            account.mended.add(finding.kind);
            notes.extend(told.add(true, finding.clone(), room));
        }
        let outcome = self.task.commit_with(loaded, batch, account.clone(), notes).await?;
        let is_committed = matches!(outcome, Outcome::Committed(_));
        if is_committed {
            self.account = account;
            self.found.mended.extend(told.mended);
        }
        Ok(is_committed)
    }

    /// Moves the task on, with everything that was noted.
    pub(super) async fn move_on(&mut self, position: Position) -> Under<()> {
        let notes = std::mem::take(&mut self.notes);
        let is_to_be_kept = std::mem::take(&mut self.has_mended);
        self.task.move_on(position, self.account.clone(), notes, is_to_be_kept).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::FindingKind;

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
