//! The keyspace as a tree: what comes next below a prefix, and what lies at a key.

mod view;

use axum::response::Response;
use keyloom::{BranchOptions, RawKeys, RawKind};
use serde::Serialize;

use super::visit::Visit;
use crate::problem::Problem;

/// How many branches a page has, and how many keys of each are counted.
const BRANCHES_MAX: usize = 200;
const COUNTED_MAX: usize = 1_000;

/// The page.
#[derive(Serialize)]
struct KeysPage {
    area: String,
    areas: Vec<String>,
    prefix: String,
    /// The key that the prefix is itself, with what it holds.
    key: Option<Here>,
    branches: Vec<Twig>,
    /// Where to go on.
    after: Option<String>,
}

/// One key as it lies.
#[derive(Serialize)]
struct Here {
    text: String,
    bytes: u64,
    kind: &'static str,
    collection: Option<String>,
    index: Option<String>,
    /// What names it, of a record.
    name: Option<String>,
    value: String,
}

/// Keys that begin alike.
#[derive(Serialize)]
struct Twig {
    /// What its keys begin with; `None` where that is no text, so that no URL can say it.
    prefix: Option<String>,
    /// What it adds to the prefix of the page, as people read it.
    text: String,
    keys: u64,
    bytes: u64,
    is_key: bool,
    is_exact: bool,
}

/// `GET /keys?area=&prefix=&after=`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model(&mut visit).await;
    visit.answer(made)
}

async fn model(visit: &mut Visit) -> Result<KeysPage, Problem> {
    let mut params = visit.take_params();
    let area = params.take("area")?.unwrap_or_default();
    let prefix = params.take("prefix")?.unwrap_or_default();
    let after = params.take("after")?.filter(|after| !after.is_empty());
    params.finish()?;
    let raw = visit.caller.admin()?.raw_keys()?;
    let options = BranchOptions {
        keys_max: COUNTED_MAX,
        branches_max: BRANCHES_MAX,
        after: after.map(bytes::Bytes::from),
        ..BranchOptions::default()
    };
    let found = raw.branches(&area, &prefix, &options).await?;
    let last = found.branches.last().map(|branch| branch.prefix.clone());
    let after = last.filter(|_| found.more).and_then(|it| String::from_utf8(it.to_vec()).ok());
    let branches = found.branches.into_iter().map(|branch| Twig {
        text: branch.text.strip_prefix(&prefix).unwrap_or(&branch.text).to_owned(),
        prefix: String::from_utf8(branch.prefix.to_vec()).ok(),
        keys: branch.keys,
        bytes: branch.bytes,
        is_key: branch.is_key,
        is_exact: branch.is_exact,
    });
    let branches: Vec<Twig> = branches.filter(|twig| !twig.text.is_empty()).collect();
    let key = here(visit, &raw, &area, &prefix).await?;
    Ok(KeysPage { areas: raw.areas().await?, area, prefix, key, branches, after })
}

/// What lies at the prefix itself.
async fn here(
    visit: &Visit,
    raw: &RawKeys,
    area: &str,
    prefix: &str,
) -> Result<Option<Here>, Problem> {
    if prefix.is_empty() {
        return Ok(None);
    }
    let Some(found) = raw.get(area, prefix).await? else { return Ok(None) };
    let (kind, collection, index) = match found.kind {
        RawKind::Record { collection } => ("record", Some(collection), None),
        RawKind::Entry { collection, index } => ("entry", Some(collection), Some(index)),
        RawKind::Counters => ("counters", None, None),
        RawKind::Own => ("Keyloom's own", None, None),
        RawKind::Free => ("free", None, None),
        RawKind::Stray { .. } => ("stray", None, None),
        _ => ("other", None, None),
    };
    let name = match (kind, &collection) {
        ("record", Some(collection)) => {
            let collection = visit.caller.store.documents(collection).await?;
            collection.name_of(prefix).await.ok()
        }
        _ => None,
    };
    let (text, bytes, value) = (found.text, found.bytes, found.value.unwrap_or_default());
    Ok(Some(Here { text, bytes, kind, collection, index, name, value }))
}
