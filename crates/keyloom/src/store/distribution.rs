//! How the entries of an index spread over values.

use serde_json::Value;

use super::Store;
use super::stats::Amount;
use crate::engine::{Direction, EngineExt, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::index::tally_template;
use crate::key::Template;
use crate::schema::Live;

/// Which first values the entries of an index have, and how many have each.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Distribution {
    /// Those with the most entries first.
    pub shares: Vec<IndexShare>,
    /// Whether every one of them was met, and counted to its end.
    pub is_exact: bool,
}

/// The entries that share their first values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexShare {
    /// The values, in the order of the index's key.
    pub values: Vec<Value>,
    /// The entries with these values.
    pub entries: Amount,
}

/// Into how many parts of a budget one share may grow, so that the first large one leaves room to
/// meet others.
const SHARES_IN_BUDGET: usize = 16;

impl Store {
    /// How the entries of an index spread over the values of its first segments, those with the
    /// most entries first. Values are found by seeking from one to the next; `budget` entries are
    /// counted at most, and of one group of values no more than a part of that, so that a large one
    /// does not hide the others. Refused to acting users.
    pub async fn distribution(
        &self,
        collection: &str,
        index: &str,
        first_segments: usize,
        budget: usize,
    ) -> Result<Distribution> {
        let live = self.session().program()?;
        let loaded = live.reload().await?;
        let index = loaded.schema.collection(collection)?.index(index)?;
        let segments = index.key.segments().count();
        if !(1..=segments).contains(&first_segments) {
            let message = "an index spreads over one of its segments or more";
            return Err(Error::new(ErrorKind::InvalidArgument, message)
                .with("index", &index.name)
                .with("key", &index.key.source)
                .with("segments asked for", first_segments));
        }
        let (mut left, mut budget_left) = (index.entry_range()?, budget);
        let (mut shares, mut is_exact) = (Vec::new(), true);
        while let Some((values, group)) =
            first_group(live, &index.key, &mut left, first_segments).await?
        {
            if budget_left == 0 {
                is_exact = false;
                break;
            }
            let part = (budget / SHARES_IN_BUDGET).clamp(1, budget_left);
            let tally = tally_template(live, &index.key, group.clone(), part).await?;
            is_exact &= tally.is_exact;
            budget_left -= usize::try_from(tally.keys).unwrap_or(usize::MAX).clamp(1, budget_left);
            shares.push(IndexShare { values, entries: tally.into() });
            match group.end {
                Some(end) => left.start = end,
                None => break,
            }
        }
        // Equal ones stay in the order of their values.
        shares.sort_by_key(|share| std::cmp::Reverse(share.entries.keys));
        Ok(Distribution { shares, is_exact })
    }
}

/// The first values of the next entry in what is left, and the range of all entries with them.
async fn first_group(
    live: &Live,
    template: &Template,
    left: &mut Range,
    count: usize,
) -> Result<Option<(Vec<Value>, Range)>> {
    while !left.is_empty() {
        let found = live.engine.scan_one(&live.space, left, 1, Direction::Forward).await?;
        let Some(row) = found.rows.first() else { return Ok(None) };
        let Some(mut values) = template.decode(&row.key) else {
            *left = template.skip(left, &row.key, Direction::Forward);
            continue;
        };
        values.truncate(count);
        let group = template.range(&values.iter().collect::<Vec<_>>(), None);
        let group = group.map_err(|refusal| refusal.into_error())?;
        return Ok(Some((values, group.in_area(left.area.clone()))));
    }
    Ok(None)
}
