//! How many keys there are and how many bytes they take, counted within a budget.

use super::walk::Walk;
use crate::engine::{Cell, Content, Direction, Range, Row};
use crate::error::Result;
use crate::key::Template;
use crate::space::Live;

/// How many keys are read at once.
const CHUNK_KEYS: usize = 1_000;

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyCount {
    pub(crate) keys: u64,
    /// Of the keys and of what they hold.
    pub(crate) bytes: u64,
    /// Whether that is all there is, and not only as far as the budget went.
    pub(crate) is_exact: bool,
}

impl KeyCount {
    fn add(&mut self, key: &[u8], cell: &Cell) {
        self.keys += 1;
        self.bytes += cell_bytes(key, cell);
    }
}

/// The bytes of a key and of what it holds. An integer has 8, and its name.
pub(crate) fn cell_bytes(key: &[u8], cell: &Cell) -> u64 {
    let held = match &cell.content {
        Content::Bytes(bytes) => bytes.len(),
        Content::Integers(integers) => integers.keys().map(|name| name.len() + 8).sum(),
    };
    (key.len() + held) as u64
}

/// Counts every key of a range, `budget` at most.
pub(crate) async fn count_keys_in(live: &Live, range: Range, budget: usize) -> Result<KeyCount> {
    let mut count = KeyCount::default();
    let (mut left, mut wanted) = (range, budget);
    loop {
        // One key more than the budget tells whether there is more.
        let limit = wanted.saturating_add(1).min(CHUNK_KEYS);
        let stretch = live.scan_one(&left, limit, Direction::Forward).await?;
        for row in stretch.rows {
            if wanted == 0 {
                return Ok(count);
            }
            wanted -= 1;
            count.add(&row.key, &row.cell);
            left = left.after(&row.key, Direction::Forward);
        }
        if !stretch.more {
            return Ok(KeyCount { is_exact: true, ..count });
        }
    }
}

/// Counts the keys of a template in a range, `budget` at most. Keys of others are jumped over.
pub(crate) async fn count_keys_of(
    live: &Live,
    template: &Template,
    range: Range,
    budget: usize,
) -> Result<KeyCount> {
    let mut counter = KeyCounter::new(template, range);
    counter.go_on(live, budget).await?;
    Ok(counter.count)
}

/// Counts the keys of a template in a range, part by part. Keys of others are jumped over.
pub(crate) struct KeyCounter<'t> {
    walk: Walk<'t>,
    /// Was read to tell that there is more, and is not counted yet.
    ahead: Option<Row>,
    pub(crate) count: KeyCount,
}

impl<'t> KeyCounter<'t> {
    pub(crate) fn new(template: &'t Template, range: Range) -> Self {
        KeyCounter {
            walk: Walk::of(template, range, CHUNK_KEYS),
            ahead: None,
            count: KeyCount::default(),
        }
    }

    /// Counts `budget` keys more at most, and whether that is all.
    pub(crate) async fn go_on(&mut self, live: &Live, budget: usize) -> Result<()> {
        let mut wanted = budget;
        loop {
            // One key more than the budget tells whether there is more.
            let limit = wanted.saturating_add(1).min(CHUNK_KEYS);
            let chunk = match self.ahead.take() {
                Some(row) => vec![row],
                None => match self.walk.next_of(live, limit).await? {
                    Some(chunk) => chunk.rows,
                    None => {
                        self.count.is_exact = true;
                        return Ok(());
                    }
                },
            };
            for row in chunk {
                if wanted == 0 {
                    self.ahead = Some(row);
                    return Ok(());
                }
                wanted -= 1;
                self.count.add(&row.key, &row.cell);
            }
        }
    }
}
