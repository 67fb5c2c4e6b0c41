//! About how much work there is, told before it is done and at little cost.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::{Direction, Range};
use crate::error::Result;
use crate::key::Template;
use crate::own::OwnKind;
use crate::schema::Collection;
use crate::side::Total;
use crate::space::{Live, Loaded, count_keys_of};

/// How many keys of one collection or index are counted at most.
const BUDGET_KEYS: usize = 10_000;

/// About how many records and entries a verification looks at; `None` when that would take long to
/// find out.
pub(super) async fn keys_of_space(live: &Live, loaded: &Loaded) -> Result<Option<u64>> {
    let mut all = 0;
    for collection in loaded.schema.collections.values() {
        let Some(records) = records(live, loaded, collection).await? else { return Ok(None) };
        all += records;
        for index in collection.indexes.values() {
            if loaded.is_maintained(collection, index) {
                let range = index.entry_range()?;
                // Most indexes have one entry for each record.
                all += counted(live, &index.key, range).await?.unwrap_or(records);
            }
        }
    }
    Ok(Some(all))
}

/// How many records a collection has, if a declared count tells, or if there are few.
pub(super) async fn records(
    live: &Live,
    loaded: &Loaded,
    collection: &Collection,
) -> Result<Option<u64>> {
    let of_all = collection.aggregates.values().find_map(|aggregate| {
        let counts_all = aggregate.group.is_empty() && aggregate.condition.is_none();
        let generation = loaded.readable(aggregate).ok()?;
        counts_all.then(|| aggregate.generation(OwnKind::AggregateCell, generation.number))
    });
    if let Some(cells) = of_all {
        let limit = usize::from(u16::MAX);
        let rows = live.scan_one(&cells, limit, Direction::Forward).await?.rows;
        let count: i128 =
            rows.iter().filter_map(|row| Total::of(&row.cell)).map(|total| total.count).sum();
        return Ok(u64::try_from(count).ok());
    }
    counted(live, &collection.key, collection.record_range()?).await
}

async fn counted(live: &Live, template: &Template, range: Range) -> Result<Option<u64>> {
    let count = count_keys_of(live, template, range, BUDGET_KEYS).await?;
    Ok(count.is_exact.then_some(count.keys))
}

/// Work whose end is estimated.
pub(super) struct Gauge {
    begun: Instant,
    /// How much was done by those who had the work before.
    before: u64,
    about: Option<u64>,
}

/// How much there is to do, and how fast it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    /// About how much there is in all.
    pub(super) about: Option<u64>,
    pub(super) per_second: Option<f64>,
    pub(super) left: Option<Duration>,
}

impl Gauge {
    pub(super) fn new(before: u64, about: Option<u64>) -> Self {
        Gauge { begun: Instant::now(), before, about }
    }

    pub(super) fn at(&self, done: u64) -> Estimate {
        estimate(done.saturating_sub(self.before), done, self.about, self.begun.elapsed())
    }
}

/// What follows from so much that was done in this time, of this.
fn estimate(lately: u64, done: u64, about: Option<u64>, took: Duration) -> Estimate {
    let per_second = Some(lately as f64 / took.as_secs_f64()).filter(|rate| rate.is_normal());
    // Writers add and remove while it goes on.
    let about = about.map(|about| about.max(done));
    let left = about.zip(per_second).and_then(|(about, rate)| {
        Duration::try_from_secs_f64(about.saturating_sub(done) as f64 / rate).ok()
    });
    Estimate { about, per_second, left }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_left_follows_from_what_was_done_lately() {
        let at = estimate(100, 300, Some(500), 2 * SECOND);
        assert_eq!(
            at,
            Estimate { about: Some(500), per_second: Some(50.0), left: Some(4 * SECOND) }
        );
        let none = Estimate::default();
        assert_eq!(estimate(0, 300, None, SECOND), none);
        assert_eq!(estimate(0, 300, Some(500), SECOND), Estimate { about: Some(500), ..none });
        assert_eq!(estimate(5, 5, None, Duration::ZERO), none);
        let more = estimate(900, 900, Some(500), SECOND);
        assert_eq!((more.about, more.left), (Some(900), Some(Duration::ZERO)));
    }
}
