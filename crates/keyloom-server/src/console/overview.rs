//! The overview: what the space holds, how much of it, and how busy the server is.

mod pulse;
mod view;

use std::collections::BTreeMap;

use axum::response::Response;
use keyloom::engine::Figure;
use keyloom::{Amount, CollectionDeclaration, CollectionStats, IndexState, StatsOptions};
use serde::Serialize;

use self::pulse::Pulse;
use super::links::Links;
use super::visit::Visit;
use crate::params::Params;
use crate::problem::Problem;

/// How many keys of each collection and index are counted for the page.
const COUNTED_MAX: usize = 20_000;

/// The page.
#[derive(Serialize)]
struct OverviewPage {
    space: String,
    engine: &'static str,
    is_persistent: bool,
    collections: Vec<Summary>,
    /// The engine's figures, for administrators.
    figures: Vec<Figure>,
    is_admin: bool,
    /// The server's activity, for administrators.
    pulse: Option<Pulse>,
}

/// One collection.
#[derive(Serialize)]
struct Summary {
    name: String,
    template: String,
    /// How many records it has, for administrators.
    records: Option<Counted>,
    indexes: Vec<IndexSummary>,
    /// The counts and sums that are not ready.
    aggregates_not_ready: Vec<AggregateSummary>,
}

/// A count or a sum that is not ready.
#[derive(Serialize)]
struct AggregateSummary {
    name: String,
    state: &'static str,
}

/// One index of a collection.
#[derive(Serialize)]
struct IndexSummary {
    name: String,
    state: &'static str,
    entries: Counted,
}

/// A number of keys, and their size.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Counted {
    pub(super) keys: u64,
    pub(super) bytes: u64,
    /// Whether everything was counted.
    pub(super) is_exact: bool,
}

impl From<Amount> for Counted {
    fn from(amount: Amount) -> Self {
        Counted { keys: amount.keys, bytes: amount.bytes, is_exact: amount.is_exact }
    }
}

/// `GET /`
pub(super) async fn page(mut visit: Visit) -> Response {
    let made = model(&mut visit).await;
    visit.answer(made)
}

/// `GET /console/open?space=`: leads to the overview of another space.
pub(super) async fn open_space(mut visit: Visit) -> Response {
    let made = chosen_space(visit.take_params());
    visit.go_on(made)
}

fn chosen_space(mut params: Params) -> Result<String, Problem> {
    let space = params.take("space")?.unwrap_or_default();
    params.finish()?;
    let links = match space.trim() {
        "" | "main" => Links::new(None, None),
        space => Links::new(Some(space), None),
    };
    Ok(links.overview())
}

async fn model(visit: &mut Visit) -> Result<OverviewPage, Problem> {
    visit.take_params().finish()?;
    let capabilities = visit.caller.store.engine().capabilities().clone();
    let (mut stats, mut figures) = (Vec::new(), Vec::new());
    let mut states = BTreeMap::new();
    let is_admin = visit.caller.admin().is_ok();
    if let Ok(store) = visit.caller.admin() {
        states = store.stored_schema().await?.states;
        let options = StatsOptions { keys_max: COUNTED_MAX, ..StatsOptions::default() };
        let counted = store.stats(&options).await?;
        (stats, figures) = (counted.collections, counted.figures);
    }
    let collections = visit.schema.collections.iter().map(|(name, declared)| {
        let counted = stats.iter().find(|it: &&CollectionStats| it.name == *name);
        Summary {
            name: name.clone(),
            template: declared.key.clone(),
            records: counted.map(|it| it.records.into()),
            indexes: counted
                .map(|it| it.indexes.iter().map(IndexSummary::of).collect())
                .unwrap_or_default(),
            aggregates_not_ready: not_ready(declared, states.get(name)),
        }
    });
    Ok(OverviewPage {
        space: visit.caller.store.space_name().to_owned(),
        engine: capabilities.engine,
        is_persistent: capabilities.persistent,
        collections: collections.collect(),
        figures,
        is_admin,
        pulse: is_admin.then(|| Pulse::of(&visit.app)),
    })
}

/// The counts and sums of a collection that are not ready.
fn not_ready(
    declared: &CollectionDeclaration,
    states: Option<&BTreeMap<String, IndexState>>,
) -> Vec<AggregateSummary> {
    let names = declared.count.keys().chain(declared.sum.keys());
    let known = names.filter_map(|name| Some((name, states?.get(name)?)));
    let idle = known.filter(|(_, state)| **state != IndexState::Ready);
    let summary = |(name, state): (&String, &IndexState)| AggregateSummary {
        name: name.clone(),
        state: super::index::state_name(state),
    };
    idle.map(summary).collect()
}

impl IndexSummary {
    fn of(index: &keyloom::IndexStats) -> Self {
        IndexSummary {
            name: index.name.clone(),
            state: super::index::state_name(&index.state),
            entries: index.entries.into(),
        }
    }
}
