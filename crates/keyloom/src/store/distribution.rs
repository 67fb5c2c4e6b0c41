//! How the entries of an index are distributed over values.

use serde_json::Value;

use super::Store;
use super::stats::Amount;
use crate::engine::{Direction, Range};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Template;
use crate::space::KeyCounter;
use crate::space::Live;

/// The first values of an index's entries, and how many entries each value has.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Distribution {
    /// Shares with the most entries first, as far as they were counted. A share whose
    /// [`Amount::is_exact`] is false has at least that many entries, and may have any number more.
    pub shares: Vec<IndexShare>,
    /// Whether every value was found. If not, the budget ended before that, and the missing values
    /// may have any number of entries.
    pub has_all_values: bool,
    /// Whether every value was found, and the entries of each were counted completely.
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

/// Divides the budget into this many parts. The first count of each share may use one of them, so
/// that a large share leaves enough to find the others.
const SHARES_IN_BUDGET: usize = 16;

impl Store {
    /// How the entries of an index are distributed over the values of its first segments; values
    /// with the most entries come first. The call finds values by seeking from one to the next. It
    /// counts at most `budget` entries: first a part of the budget for each value, so that a large
    /// one does not hide the others. It then divides the rest equally among the values that have
    /// more entries. A value whose entries were not all counted says so. Refused to acting users.
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
        // The sort is stable, so equal shares stay in the order of their values.
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

/// Divides the rest of a budget equally among the shares that have more entries.
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

/// The first values of the next entry in a range, and the range of all entries with these values.
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
