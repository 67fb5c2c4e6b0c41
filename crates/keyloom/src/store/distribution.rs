//! How the entries of an index spread over values.

use serde_json::Value;

use super::Store;
use super::stats::Amount;
use crate::engine::{Direction, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Template;
use crate::space::KeyCounter;
use crate::space::Live;

/// Which first values the entries of an index have, and how many have each.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Distribution {
    /// Those with the most entries first, as far as they were counted: where
    /// [`Amount::is_exact`] is false a share has at least so many, and may have any number more.
    pub shares: Vec<IndexShare>,
    /// Whether every value was met. Otherwise the budget ended before that, and those that were not
    /// met may have any number of entries.
    pub has_all_values: bool,
    /// Whether every value was met, and each was counted to its end.
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

/// Which part of a budget one share may take at first, so that a large one leaves room to meet
/// others.
const SHARES_IN_BUDGET: usize = 16;

impl Store {
    /// How the entries of an index spread over the values of its first segments, those with the
    /// most entries first. Values are found by seeking from one to the next. At most `budget`
    /// entries are counted: at first a part of that for each value, so that a large one does not
    /// hide the others, and then the rest in equal parts for the values that have more. A value
    /// that was not counted to its end says so. Refused to acting users.
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
        let mut counted: Vec<(Vec<Value>, KeyCounter<'_>)> = Vec::new();
        let mut has_all_values = true;
        while let Some((values, group)) =
            first_group(live, &index.key, &mut left, first_segments).await?
        {
            if budget_left == 0 {
                has_all_values = false;
                break;
            }
            let mut counter = KeyCounter::new(&index.key, group.clone());
            let part = (budget / SHARES_IN_BUDGET).clamp(1, budget_left);
            budget_left -= spend(live, &mut counter, part).await?.max(1);
            counted.push((values, counter));
            match group.end {
                Some(end) => left.start = end,
                None => break,
            }
        }
        count_on(live, &mut counted, budget_left).await?;
        let mut shares: Vec<IndexShare> = counted
            .into_iter()
            .map(|(values, counter)| IndexShare { values, entries: counter.count.into() })
            .collect();
        // Equal ones stay in the order of their values.
        shares.sort_by_key(|share| std::cmp::Reverse(share.entries.keys));
        let is_exact = has_all_values && shares.iter().all(|share| share.entries.is_exact);
        Ok(Distribution { shares, has_all_values, is_exact })
    }
}

/// Counts up to `budget` entries more of one share; gives how many that were.
async fn spend(live: &Live, counter: &mut KeyCounter<'_>, budget: usize) -> Result<usize> {
    let before = counter.count.keys;
    counter.go_on(live, budget).await?;
    Ok(usize::try_from(counter.count.keys - before).unwrap_or(usize::MAX))
}

/// Spends what is left of a budget on the shares that have more, in equal parts.
async fn count_on(
    live: &Live,
    counted: &mut [(Vec<Value>, KeyCounter<'_>)],
    mut budget_left: usize,
) -> Result<()> {
    loop {
        let open = counted.iter_mut().filter(|(_, counter)| !counter.count.is_exact);
        let mut open: Vec<&mut KeyCounter<'_>> = open.map(|(_, counter)| counter).collect();
        let part = budget_left / open.len().max(1);
        if open.is_empty() || part == 0 {
            return Ok(());
        }
        for counter in &mut open {
            budget_left -= spend(live, counter, part).await?;
        }
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
        let found = live.scan_one(left, 1, Direction::Forward).await?;
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
