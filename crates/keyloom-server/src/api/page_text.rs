//! Writes a page. The stored text of records is copied, never parsed and printed again.

use keyloom::{Document, Key, Nearby, Page, Problem as PageProblem, ProblemKind, Stopped, Version};
use serde::Serialize;

use super::answer::is_json;
use super::names::{Name, Names};
use crate::problem::Problem;

/// A record of a page, as it is shown.
pub(super) struct Item<'r> {
    /// The whole key.
    stored_at: &'r str,
    /// The version and the text; `None` if only keys were requested.
    record: Option<(Version, &'r [u8])>,
    distance_m: Option<f64>,
}

/// A kind of record that a page can have.
pub(super) trait Shown {
    fn item(&self) -> Item<'_>;
}

impl Shown for Document {
    fn item(&self) -> Item<'_> {
        let record = Some((self.version, self.text()));
        Item { stored_at: &self.key, record, distance_m: None }
    }
}

impl Shown for Nearby<Document> {
    fn item(&self) -> Item<'_> {
        Item { distance_m: Some(self.distance_m), ..self.record.item() }
    }
}

/// A key alone.
impl Shown for Key {
    fn item(&self) -> Item<'_> {
        Item { stored_at: self, record: None, distance_m: None }
    }
}

/// The text of a page.
pub(super) async fn write(
    page: &Page<impl Shown>,
    names: &mut Names<'_>,
) -> Result<Vec<u8>, Problem> {
    let bytes = page.records.iter().map(|record| record.item().bytes()).sum::<usize>();
    let mut text = Vec::with_capacity(bytes + 1_024);
    let mut unreadable = Vec::new();
    text.extend_from_slice(b"{\"records\":[");
    let mut is_first = true;
    for record in &page.records {
        let item = record.item();
        if item.record.is_some_and(|(_, record)| !is_json(record)) {
            unreadable.push(no_json(item.stored_at));
            continue;
        }
        if !is_first {
            text.push(b',');
        }
        is_first = false;
        item.write(names.of(item.stored_at).await?, &mut text);
    }
    text.push(b']');
    end(page, &unreadable, &mut text);
    Ok(text)
}

impl Item<'_> {
    /// The approximate length of its text.
    fn bytes(&self) -> usize {
        self.record.map_or(0, |(_, record)| record.len()) + 2 * self.stored_at.len() + 128
    }

    fn write(&self, name: Name<'_>, text: &mut Vec<u8>) {
        member(b"{\"key\":", name.key, text);
        if let Some(owner) = name.owner {
            member(b",\"owner\":", owner, text);
        }
        member(b",\"stored_at\":", self.stored_at, text);
        if let Some((version, record)) = self.record {
            member(b",\"version\":", &version.to_string(), text);
            if let Some(distance_m) = self.distance_m {
                member(b",\"distance_m\":", &distance_m, text);
            }
            text.extend_from_slice(b",\"record\":");
            text.extend_from_slice(record);
        }
        text.push(b'}');
    }
}

/// Everything after the records.
fn end<R>(page: &Page<R>, unreadable: &[PageProblem], text: &mut Vec<u8>) {
    if let Some(next) = &page.next {
        member(b",\"next\":", &next.to_string(), text);
    }
    if let Some(previous) = &page.previous {
        member(b",\"previous\":", &previous.to_string(), text);
    }
    member(b",\"stopped\":", stopped(page.stopped), text);
    member(b",\"read\":", &page.read, text);
    text.extend_from_slice(b",\"problems\":[");
    for (place, problem) in page.problems.iter().chain(unreadable).enumerate() {
        if place > 0 {
            text.push(b',');
        }
        member(b"{\"kind\":", kind(problem.kind), text);
        member(b",\"key\":", &problem.key, text);
        member(b",\"reason\":", &problem.reason, text);
        text.push(b'}');
    }
    text.push(b']');
    if let Some(swept_until) = page.swept_until {
        member(b",\"swept_until\":", &swept_until, text);
    }
    text.push(b'}');
}

/// Adds a separator with a name, and a value.
fn member(before: &[u8], value: &(impl Serialize + ?Sized), text: &mut Vec<u8>) {
    text.extend_from_slice(before);
    // Writing text and numbers into memory cannot fail.
    let _ = serde_json::to_writer(text, value);
}

pub(super) fn stopped(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::End => "end",
        Stopped::Take => "take",
        Stopped::Limit => "limit",
        Stopped::Bytes => "bytes",
    }
}

pub(super) fn kind(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Dangling => "dangling",
        ProblemKind::Wrong => "wrong",
        // Kinds of a newer library are about unreadable keys, too.
        _ => "unreadable",
    }
}

fn no_json(stored_at: &str) -> PageProblem {
    let (key, reason) = (stored_at.to_owned(), "the record in the store is no JSON".to_owned());
    PageProblem { kind: ProblemKind::Unreadable, key, reason }
}
