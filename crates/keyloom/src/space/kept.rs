//! The cell of a task: what it holds, how it begins to be there and how it goes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::live::Live;
use super::owner::Owner;
use super::walk::Position;
use crate::engine::{Address, Batch, Cell, Condition, Effect, Entry, Outcome, Stamp};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Note;
use crate::own::OwnKey;
use crate::record::{Version, now_ms};

/// What a task is about. While one is under way, there is no other of the same kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subject {
    /// What is done: one word.
    pub(crate) kind: String,
    pub(crate) collection: String,
    pub(crate) name: String,
    /// Which of all times that it is done.
    pub(crate) number: u64,
    /// A digest of everything declared that the work rests on.
    pub(crate) definition: String,
}

impl Subject {
    pub(super) fn address(&self) -> Address {
        address_of(&self.kind, &self.collection, &self.name)
    }

    /// Where a page of its notes lies.
    pub(super) fn notes_address(&self, page: u32) -> Address {
        let Subject { kind, collection, name, .. } = self;
        OwnKey::TaskNotes { kind, collection, name, page }.address()
    }
}

fn address_of(kind: &str, collection: &str, name: &str) -> Address {
    OwnKey::Task { kind, collection, name }.address()
}

/// What the cell of a task holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept<P> {
    pub(crate) subject: Subject,
    /// What whoever began it says of it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) about: Value,
    pub(super) owner: String,
    /// Until when the owner will be heard of again, in milliseconds since 1970.
    pub(super) until: u64,
    pub(super) position: Position,
    pub(crate) progress: P,
    /// How many pages of notes there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) pages: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(pages: &u32) -> bool {
    *pages == 0
}

impl<P: DeserializeOwned> Kept<P> {
    pub(crate) fn of(cell: &Cell) -> Option<Self> {
        serde_json::from_slice(cell.bytes()?).ok()
    }
}

impl<P> Kept<P> {
    pub(super) fn begun(subject: Subject, about: Value, progress: P) -> Self {
        let (owner, position) = (String::new(), Position::default());
        Kept { subject, about, owner, until: 0, position, progress, pages: 0 }
    }

    /// Whether nobody works on it any more, or nobody is known to.
    pub(super) fn is_abandoned(&self, live: &Live) -> bool {
        let is_alone = !live.engine.capabilities().is_shared;
        Owner::has_ended(&self.owner, is_alone) || self.until < now_ms()
    }

    /// What removes the cell, if it still is as it was, and its notes with it.
    pub(super) fn removal(&self, address: &Address, stamp: Stamp) -> Vec<Entry> {
        let delete = Some(Effect::Delete);
        let condition = Some(Condition::Unchanged(stamp));
        let own = Entry { address: address.clone(), condition, effect: delete.clone() };
        let pages = (0..self.pages).map(|page| Entry {
            address: self.subject.notes_address(page),
            condition: None,
            effect: delete.clone(),
        });
        std::iter::once(own).chain(pages).collect()
    }
}

/// Begins a task that nobody works on yet, unless there is one of that kind and name which is
/// valid: that one is given then. What cannot be read is no task, and nobody could go on with it.
pub(crate) async fn leave_task<P: Serialize + DeserializeOwned>(
    live: &Live,
    subject: Subject,
    about: Value,
    progress: P,
    is_valid: impl Fn(&Kept<P>) -> bool,
) -> Result<Option<Kept<P>>> {
    let address = subject.address();
    let kept = Kept::begun(subject, about, progress);
    loop {
        let cell = live.get_one(&address).await?;
        if let Some(known) = cell.as_ref().and_then(Kept::of).filter(&is_valid) {
            return Ok(Some(known));
        }
        let condition = cell.map_or(Condition::Absent, |cell| Condition::Unchanged(cell.stamp));
        let mut batch = Batch::new(live.space.clone());
        let effect = Some(put(Version::first().stamp(), &kept)?);
        batch.push(address.clone(), Some(condition), effect);
        if is_committed(live, batch).await? {
            return Ok(None);
        }
    }
}

/// The tasks of these kinds and names that are under way.
pub(crate) async fn tasks_under_way<P: DeserializeOwned>(
    live: &Live,
    subjects: impl IntoIterator<Item = (&str, &str, &str)>,
) -> Result<Vec<Kept<P>>> {
    let subjects = subjects.into_iter();
    let addresses: Vec<Address> = subjects.map(|(k, c, n)| address_of(k, c, n)).collect();
    let cells = live.get(&addresses).await?;
    Ok(cells.iter().flatten().filter_map(Kept::of).collect())
}

/// Ends a task wherever it is, if it is still under way. Whoever works on it finds out.
pub(crate) async fn end_task(live: &Live, subject: &Subject) -> Result<bool> {
    let address = subject.address();
    loop {
        let Some(cell) = live.get_one(&address).await? else { return Ok(false) };
        let Some(kept) = Kept::<Value>::of(&cell).filter(|kept| kept.subject == *subject) else {
            return Ok(false);
        };
        let mut batch = Batch::new(live.space.clone());
        batch.entries.extend(kept.removal(&address, cell.stamp));
        // Its owner may have moved it on meanwhile.
        if is_committed(live, batch).await? {
            return Ok(true);
        }
    }
}

/// Commits what concerns the cells of tasks alone, and so means the same under every schema.
pub(super) async fn is_committed(live: &Live, batch: Batch) -> Result<bool> {
    let loaded = live.loaded().await?;
    let outcome = live.commit(&loaded, batch, Note::of_program).await?;
    Ok(matches!(outcome, Outcome::Committed(_)))
}

pub(super) fn put<P: Serialize>(stamp: Stamp, kept: &Kept<P>) -> Result<Effect> {
    let bytes = serde_json::to_vec(kept).map_err(|source| {
        let message = "the progress of a task cannot be written as JSON";
        Error::new(ErrorKind::Internal, message).with_source(source)
    })?;
    Ok(Effect::Put { stamp, bytes: bytes.into() })
}
