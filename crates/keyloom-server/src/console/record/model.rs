//! The content of a record's page.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use keyloom::{
    Collection, CollectionDeclaration, Difference, Document, HistoryEntry, HistoryKind, OwnedKey,
    OwnedKind, Page as Listed,
};
use serde::Serialize;
use serde_json::Value;

use super::Counting;
use crate::api::{key_of, key_of_owner};
use crate::auth::Verb;
use crate::console::declared;
use crate::console::links::RecordName;
use crate::console::refusal::Told;
use crate::console::visit::Visit;
use crate::params::Params;
use crate::problem::Problem;

/// How many versions of the history a page shows.
const VERSIONS: usize = 10;

/// The record in a URL.
pub(in crate::console) struct Addressed<'v> {
    pub(in crate::console) collection: Collection<Value>,
    pub(in crate::console) declared: &'v CollectionDeclaration,
    /// The values of its key.
    pub(in crate::console) values: Vec<Value>,
    name: String,
    owner: Option<String>,
}

impl Addressed<'_> {
    /// Its name in a URL.
    pub(in crate::console) fn link(&self) -> RecordName<'_> {
        let owner = self.owner.as_deref();
        RecordName { collection: self.collection.name(), name: &self.name, owner }
    }

    /// The record, if it exists.
    pub(in crate::console) async fn document(&self) -> Result<Option<Document>, Problem> {
        Ok(self.collection.get_document(self.values.clone()).await?)
    }

    /// The record, which must exist.
    pub(in crate::console) async fn found(&self) -> Result<Document, Problem> {
        let missing = || Problem::not_found("the collection has no such record");
        self.document().await?.ok_or_else(missing)
    }
}

/// Finds the record that the parameters `key` and `owner` name.
pub(in crate::console) async fn addressed<'v>(
    visit: &'v Visit,
    params: &mut Params,
    verb: Verb,
) -> Result<Addressed<'v>, Problem> {
    let nameless = || Problem::invalid_request("the parameter key names the record");
    let name = params.take("key")?.ok_or_else(nameless)?;
    let owner = params.take("owner")?;
    let (collection, declared) = visit.collection(verb).await?;
    let values = match &owner {
        Some(owner) => key_of_owner(&collection, owner, &name).await?,
        None => key_of(&collection, visit.caller.user.as_deref(), &name).await?,
    };
    Ok(Addressed { collection, declared, values, name, owner })
}

/// The page.
#[derive(Serialize)]
pub(super) struct RecordPage {
    pub(super) collection: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    /// The record; `None` if it was deleted and only its history is left.
    pub(super) found: Option<Found>,
    pub(super) history: Option<History>,
    pub(super) may_write: bool,
    pub(super) may_delete: bool,
    /// What the visitor did before.
    #[serde(skip)]
    pub(super) notice: Option<String>,
    /// Why the counters were not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<Told>,
    /// The increments of the refused form, and its key.
    #[serde(skip)]
    pub(super) counting: Counting,
    #[serde(skip)]
    pub(super) once: Option<String>,
    #[serde(skip)]
    pub(super) status: StatusCode,
}

impl RecordPage {
    /// The same page with the refused increments, and the reason.
    pub(super) fn again(self, counting: Counting, once: Option<String>, problem: &Problem) -> Self {
        let (problem, status) = (Some(Told::of(problem)), problem.status());
        RecordPage { counting, once, problem, status, ..self }
    }
}

/// A record that exists.
#[derive(Serialize)]
pub(super) struct Found {
    pub(super) stored_at: String,
    pub(super) version: String,
    pub(super) revision: u64,
    pub(super) bytes: u64,
    pub(super) record: Value,
    pub(super) counters: BTreeMap<String, i64>,
    /// The prefixes of counters in families: `stats.`.
    pub(super) counter_families: Vec<String>,
    pub(super) keys: Vec<Owned>,
}

/// A key that the record owns.
#[derive(Serialize)]
pub(super) struct Owned {
    pub(super) area: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<String>,
    pub(super) is_present: bool,
}

/// A part of the record's past, newest first.
#[derive(Serialize)]
pub(super) struct History {
    pub(super) versions: Vec<PastVersion>,
    pub(super) next: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) problems: Vec<String>,
}

/// One version.
#[derive(Serialize)]
pub(super) struct PastVersion {
    pub(super) version: String,
    pub(super) revision: u64,
    pub(super) kind: HistoryKind,
    pub(super) at_ms: u64,
    pub(super) by: Option<String>,
    pub(super) renamed_from: Option<String>,
    pub(super) changes: Vec<Difference>,
    pub(super) record: Option<Value>,
}

/// The page for a URL.
pub(super) async fn record(visit: &mut Visit) -> Result<RecordPage, Problem> {
    let mut params = visit.take_params();
    let cursor = params.take("cursor")?;
    let notice = params.take("notice")?;
    let (may_write, may_delete) = (visit.may(Verb::Write), visit.may(Verb::Delete));
    let addressed = addressed(visit, &mut params, Verb::Read).await?;
    params.finish()?;
    let found = match addressed.document().await? {
        Some(document) => Some(found(&addressed, document).await?),
        None => None,
    };
    let history = match addressed.declared.history {
        Some(_) => {
            let cursor = cursor.as_deref();
            let page = addressed.collection.history(addressed.values.clone(), VERSIONS, cursor);
            Some(history(page.await?))
        }
        None => None,
    };
    if found.is_none() && history.as_ref().is_none_or(|it| it.versions.is_empty()) {
        return Err(Problem::not_found("the collection has no such record"));
    }
    let Addressed { collection, name, owner, .. } = addressed;
    let collection = collection.name().to_owned();
    // Records of others are shown but cannot be changed, since their owners maintain them.
    let is_own = owner.is_none();
    let (may_write, may_delete) = (may_write && is_own, may_delete && is_own);
    Ok(RecordPage {
        collection,
        name,
        owner,
        found,
        history,
        may_write,
        may_delete,
        notice,
        problem: None,
        counting: Counting::default(),
        once: None,
        status: StatusCode::OK,
    })
}

async fn found(addressed: &Addressed<'_>, document: Document) -> Result<Found, Problem> {
    let Addressed { collection, declared, values, .. } = addressed;
    let record = document.json()?;
    let keys = collection.owned_keys(values.clone()).await?.unwrap_or_default();
    let families = declared::counter_families(declared).into_iter().map(str::to_owned);
    Ok(Found {
        stored_at: document.key.to_string(),
        version: document.version.to_string(),
        revision: document.version.revision(),
        bytes: document.text().len() as u64,
        counters: declared::counters(declared, &record),
        counter_families: families.collect(),
        record,
        keys: keys.into_iter().map(Owned::from).collect(),
    })
}

fn history(page: Listed<HistoryEntry<Value>>) -> History {
    let problems = page.problems.into_iter();
    History {
        versions: page.records.into_iter().map(PastVersion::from).collect(),
        next: page.next.map(|cursor| cursor.to_string()),
        previous: page.previous.map(|cursor| cursor.to_string()),
        problems: problems.map(|it| format!("{}: {}", it.key, it.reason)).collect(),
    }
}

impl From<HistoryEntry<Value>> for PastVersion {
    fn from(entry: HistoryEntry<Value>) -> Self {
        PastVersion {
            version: entry.version.to_string(),
            revision: entry.version.revision(),
            kind: entry.kind,
            at_ms: entry.at_ms,
            by: entry.by,
            renamed_from: entry.renamed_from,
            changes: entry.changes,
            record: entry.record,
        }
    }
}

impl From<OwnedKey> for Owned {
    fn from(owned: OwnedKey) -> Self {
        let (kind, index) = match owned.kind {
            OwnedKind::Record => ("record", None),
            OwnedKind::Entry { index } => ("entry", Some(index)),
            OwnedKind::Counters => ("counters", None),
            OwnedKind::History => ("history", None),
            OwnedKind::Lease { index } => ("lease", Some(index)),
            OwnedKind::Mark { aggregate } => ("mark", Some(aggregate)),
            _ => ("other", None),
        };
        let OwnedKey { area, key, value, is_present, .. } = owned;
        Owned { area, key, value, kind, index, is_present }
    }
}
