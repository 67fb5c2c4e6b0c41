//! The keyspace as a tree: the next level below a prefix, and the value at a key.

mod view;

use axum::response::Response;
use bytes::Bytes;
use keyloom::engine::ShowKey;
use keyloom::{BranchOptions, RawKeys, RawKind};
use serde::Serialize;

use super::links::encoded;
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
    /// As people read it: bytes that are not text as `\xNN`.
    prefix: String,
    /// The same, encoded for the parameter.
    prefix_encoded: String,
    /// The key that equals the prefix, with its value.
    key: Option<Here>,
    branches: Vec<Twig>,
    /// Where to continue, encoded for the parameter.
    after_encoded: Option<String>,
    #[serde(skip)]
    prefix_bytes: Bytes,
    #[serde(skip)]
    after_bytes: Option<Bytes>,
}

/// One stored key.
#[derive(Serialize)]
struct Here {
    text: String,
    bytes: u64,
    kind: &'static str,
    collection: Option<String>,
    index: Option<String>,
    /// Its name, if it is a record.
    name: Option<String>,
    value: String,
}

/// Keys with a common prefix.
#[derive(Serialize)]
struct Twig {
    /// Their prefix, encoded for the parameter.
    prefix_encoded: String,
    #[serde(skip)]
    prefix_bytes: Bytes,
    /// The part after the page's prefix, as people read it.
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
    // These are read as bytes elsewhere, and only marked as known here.
    params.take("prefix")?;
    params.take("after")?;
    params.finish()?;
    let prefix = visit.param_bytes("prefix");
    let after = Some(visit.param_bytes("after")).filter(|after| !after.is_empty());
    let raw = visit.caller.admin()?.raw_keys()?;
    let options = BranchOptions {
        keys_max: COUNTED_MAX,
        branches_max: BRANCHES_MAX,
        after,
        ..BranchOptions::default()
    };
    let found = raw.branches(&area, &prefix, &options).await?;
    let last = found.branches.last().map(|branch| branch.prefix.clone());
    let after = last.filter(|_| found.more);
    let branches = found.branches.into_iter().map(|branch| Twig {
        text: key_text(branch.prefix.get(prefix.len()..).unwrap_or_default()),
        prefix_encoded: encoded(&branch.prefix),
        prefix_bytes: branch.prefix,
        keys: branch.keys,
        bytes: branch.bytes,
        is_key: branch.is_key,
        is_exact: branch.is_exact,
    });
    let branches: Vec<Twig> = branches.filter(|twig| !twig.text.is_empty()).collect();
    let key = here(visit, &raw, &area, &prefix).await?;
    Ok(KeysPage {
        areas: raw.areas().await?,
        area,
        prefix: key_text(&prefix),
        prefix_encoded: encoded(&prefix),
        key,
        branches,
        after_encoded: after.as_deref().map(encoded),
        prefix_bytes: prefix,
        after_bytes: after,
    })
}

/// The value at the prefix itself.
async fn here(
    visit: &Visit,
    raw: &RawKeys,
    area: &str,
    prefix: &[u8],
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
            match std::str::from_utf8(prefix) {
                Ok(key) => collection.name_of(key).await.ok(),
                Err(_) => None,
            }
        }
        _ => None,
    };
    let (text, bytes, value) = (found.text, found.bytes, found.value.unwrap_or_default());
    Ok(Some(Here { text, bytes, kind, collection, index, name, value }))
}

/// A key as people read it: bytes that are not text as `\xNN`.
fn key_text(bytes: &[u8]) -> String {
    ShowKey(bytes).to_string()
}
