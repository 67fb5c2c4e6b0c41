//! The page of an index, a count or a sum: its state, its entries, and their distribution.

mod view;

use axum::response::Response;
use keyloom::{
    AggregateDeclaration, CollectionDeclaration, GroupQuery, IndexDeclaration, IndexState,
    StatsOptions, Store,
};
use serde::Serialize;
use serde_json::Value;

use super::overview::Counted;
use super::toml;
use super::verify;
use super::visit::{Sent, Visit};
use crate::auth::Verb;
use crate::problem::Problem;

/// How many entries are counted, and how many values are shown.
const ENTRIES_MAX: usize = 50_000;
const SHARES_MAX: usize = 40;

/// The page.
#[derive(Serialize)]
struct IndexPage {
    collection: String,
    name: String,
    /// `index`, `unique`, `geo`, `count`, `sum`, or `own` for Keyloom's own index.
    kind: &'static str,
    /// The template of its entries; none for counts and sums.
    template: Option<String>,
    /// Which records are in it; all if there is no condition.
    condition: Option<String>,
    declaration: Value,
    /// The declaration as in a schema file, if TOML can express it.
    toml: Option<String>,
    /// The part that only administrators see.
    inside: Option<Inside>,
}

/// Its content.
#[derive(Serialize)]
struct Inside {
    state: &'static str,
    /// Why it failed.
    reason: Option<String>,
    entries: Option<Counted>,
    shares: Vec<Share>,
    /// Whether these are all existing values.
    has_all_values: bool,
    /// Whether these are all values, and each was counted completely.
    is_exact: bool,
}

/// The entries, or the number, of one value.
#[derive(Serialize)]
struct Share {
    values: Vec<Value>,
    amount: i64,
    bytes: Option<u64>,
    /// Whether it was counted completely. If not, the true number is higher.
    is_exact: bool,
}

/// `GET /collections/{collection}/indexes/{index}`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model(&mut visit).await;
    visit.answer(made)
}

/// `POST /collections/{collection}/indexes/{index}/build`
pub(super) async fn build(mut visit: Visit, Sent(sent): Sent) -> Response {
    let made = match visit.take_button(sent) {
        Ok(()) => building(&visit).await,
        Err(problem) => Err(problem),
    };
    visit.go_on(made)
}

/// Starts a build. A missing index is refused at once, rather than with a failed job.
async fn building(visit: &Visit) -> Result<String, Problem> {
    let (collection, index) = (visit.part("collection"), visit.part("index"));
    visit.caller.admin()?.index_state(collection, index).await?;
    verify::build(visit, collection, index).await
}

async fn model(visit: &mut Visit) -> Result<IndexPage, Problem> {
    visit.take_params().finish()?;
    let (collection, declared) = visit.collection(Verb::Read).await?;
    let name = visit.part("index").to_owned();
    let store = visit.caller.admin().ok();
    let known = known(declared, &name);
    let inside = match (store, &known) {
        (Some(store), Some(Known::Aggregate(kind, _))) => {
            Some(groups(store, &collection, &name, *kind == "sum").await?)
        }
        (Some(store), _) => entries(store, collection.name(), &name).await?,
        (None, _) => None,
    };
    let (kind, template, condition, declaration) = match known {
        Some(Known::Index(kind, index)) => {
            (kind, Some(index.key.clone()), index.condition_text(), as_json(index))
        }
        Some(Known::Aggregate(kind, aggregate)) => {
            (kind, None, aggregate.condition_text(), as_json(aggregate))
        }
        None if inside.is_some() => ("own", None, None, Value::Null),
        None => return Err(Problem::not_found("the collection has no index of that name")),
    };
    let collection = collection.name().to_owned();
    let toml = toml::table(&["collection", &collection, kind, &name], &declaration);
    Ok(IndexPage { collection, name, kind, template, condition, declaration, toml, inside })
}

/// The declaration under a name.
enum Known<'d> {
    Index(&'static str, &'d IndexDeclaration),
    Aggregate(&'static str, &'d AggregateDeclaration),
}

fn known<'d>(declared: &'d CollectionDeclaration, name: &str) -> Option<Known<'d>> {
    let indexes =
        [("index", &declared.index), ("unique", &declared.unique), ("geo", &declared.geo)];
    let mut indexes =
        indexes.into_iter().filter_map(|(kind, all)| Some(Known::Index(kind, all.get(name)?)));
    let aggregates = [("count", &declared.count), ("sum", &declared.sum)];
    let mut aggregates = aggregates
        .into_iter()
        .filter_map(|(kind, all)| Some(Known::Aggregate(kind, all.get(name)?)));
    indexes.next().or_else(|| aggregates.next())
}

fn as_json(declaration: &impl Serialize) -> Value {
    serde_json::to_value(declaration).unwrap_or_default()
}

/// The entries of an index; `None` if there is no such index.
async fn entries(store: &Store, collection: &str, name: &str) -> Result<Option<Inside>, Problem> {
    let options = StatsOptions { keys_max: ENTRIES_MAX, collection: Some(collection.to_owned()) };
    let stats = store.stats(&options).await?;
    let mut indexes = stats.collections.into_iter().flat_map(|it| it.indexes);
    let Some(index) = indexes.find(|it| it.name == name) else { return Ok(None) };
    let spread = store.distribution(collection, name, 1, ENTRIES_MAX).await?;
    let has_all_values = spread.has_all_values && spread.shares.len() <= SHARES_MAX;
    let shares = spread.shares.into_iter().take(SHARES_MAX).map(|share| Share {
        values: share.values,
        amount: i64::try_from(share.entries.keys).unwrap_or(i64::MAX),
        bytes: Some(share.entries.bytes),
        is_exact: share.entries.is_exact,
    });
    let state = state_name(&index.state);
    let (reason, entries) = (reason(index.state), Some(index.entries.into()));
    Ok(Some(Inside::new(state, reason, entries, shares.collect(), has_all_values)))
}

/// The groups of a count or a sum, largest first.
async fn groups(
    store: &Store,
    collection: &keyloom::Collection<Value>,
    name: &str,
    is_sum: bool,
) -> Result<Inside, Problem> {
    let state = store.index_state(collection.name(), name).await?;
    let groups = match state {
        // One group more than is shown tells whether there are more.
        IndexState::Ready => {
            collection.top_groups(&GroupQuery::new(name), SHARES_MAX + 1).await?.groups
        }
        _ => Vec::new(),
    };
    let has_all_values = groups.len() <= SHARES_MAX;
    let shares = groups.into_iter().take(SHARES_MAX).map(|group| Share {
        amount: if is_sum { group.sum.unwrap_or_default() } else { group.count },
        values: group.values,
        bytes: None,
        // Every write keeps this number up to date, so nothing is counted here.
        is_exact: true,
    });
    Ok(Inside::new(state_name(&state), reason(state), None, shares.collect(), has_all_values))
}

impl Inside {
    fn new(
        state: &'static str,
        reason: Option<String>,
        entries: Option<Counted>,
        shares: Vec<Share>,
        has_all_values: bool,
    ) -> Self {
        let is_exact = has_all_values && shares.iter().all(|share| share.is_exact);
        Inside { state, reason, entries, shares, has_all_values, is_exact }
    }
}

/// A state as a word.
pub(super) fn state_name(state: &IndexState) -> &'static str {
    match state {
        IndexState::Building => "building",
        IndexState::Ready => "ready",
        IndexState::Disabled => "disabled",
        IndexState::Failed { .. } => "failed",
    }
}

/// The colour of a state.
pub(super) fn tone(state: &str) -> &'static str {
    match state {
        "ready" => "good",
        "failed" => "bad",
        _ => "warn",
    }
}

fn reason(state: IndexState) -> Option<String> {
    match state {
        IndexState::Failed { reason } => Some(reason),
        _ => None,
    }
}
