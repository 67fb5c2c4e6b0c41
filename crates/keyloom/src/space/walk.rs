//! A walk over a store: stages of ranges, read chunk by chunk, and pulled by whoever needs them.
//!
//! A walk holds nothing but its [`Position`]. So it goes on from where another one was, also under
//! another schema or in another process, and it stops when nobody pulls. It reads whatever engine
//! its space lies on: one that is written to, or one that holds a moment.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::live::Live;
use crate::engine::{Area, Direction, Range, Row};
use crate::error::Result;
use crate::key::Template;

/// Ranges that are gone over together, in order of area and key.
pub(crate) struct Stage<'t> {
    ranges: Vec<Range>,
    /// Whose keys are given; those of others are jumped over. `None` for all keys.
    template: Option<&'t Template>,
}

impl<'t> Stage<'t> {
    /// Every key of these ranges, no two of which overlap.
    pub(crate) fn all(mut ranges: Vec<Range>) -> Self {
        ranges.sort_by(|a, b| (&a.area, &a.start).cmp(&(&b.area, &b.start)));
        Stage { ranges, template: None }
    }

    /// The keys of a template in a range.
    pub(crate) fn of(template: &'t Template, range: Range) -> Self {
        Stage { ranges: vec![range], template: Some(template) }
    }

    /// The first range that is not done, without its part that is.
    fn left(&self, done: Option<&Done>) -> Option<Range> {
        let whole = |range: &&Range| !range.is_empty();
        let Some(done) = done else { return self.ranges.iter().find(whole).cloned() };
        self.ranges.iter().find_map(|range| match range.area.cmp(&done.area) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Greater => Some(range.clone()).filter(|range| !range.is_empty()),
            std::cmp::Ordering::Equal => {
                let start = range.start.clone().max(done.next.clone()?);
                Some(Range { start, ..range.clone() }).filter(|left| !left.is_empty())
            }
        })
    }

    /// The rows that are given, and what is left of the range after them.
    fn own(&self, mut left: Range, rows: Vec<Row>) -> (Vec<Row>, Range) {
        let mut own = Vec::with_capacity(rows.len());
        for row in rows {
            // A jump may have gone beyond keys that were read already.
            if !left.contains(&row.key) {
                continue;
            }
            match self.template.filter(|template| template.decode(&row.key).is_none()) {
                Some(template) => left = template.skip(&left, &row.key, Direction::Forward),
                None => {
                    left = left.after(&row.key, Direction::Forward);
                    own.push(row);
                }
            }
        }
        (own, left)
    }
}

/// How far a walk has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    /// The stage that is under way; all before it are done.
    pub(crate) stage: usize,
    /// What of the stage is done; `None` at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Done>,
}

/// Everything before this is done, by area and key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Done {
    #[serde(with = "area_name")]
    area: Area,
    /// The first key that is not done; `None` when the whole area is.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "next_key")]
    next: Option<Bytes>,
}

impl Position {
    /// Before this key of an area, within a stage.
    pub(crate) fn before(stage: usize, area: Area, key: Bytes) -> Self {
        Position { stage, done: Some(Done { area, next: Some(key) }) }
    }

    /// The key that a walk goes on from.
    pub(crate) fn next_key(&self) -> Option<&Bytes> {
        self.done.as_ref()?.next.as_ref()
    }
}

/// Some keys of a stage, in order.
pub(crate) struct Chunk {
    /// The number of the stage.
    pub(crate) stage: usize,
    pub(crate) area: Area,
    /// Never empty.
    pub(crate) rows: Vec<Row>,
}

/// A walk over stages, one after the other.
pub(crate) struct Walk<'t> {
    stages: Vec<Stage<'t>>,
    position: Position,
    chunk_keys: usize,
}

impl<'t> Walk<'t> {
    /// A walk from the start, so many keys at once.
    pub(crate) fn new(stages: Vec<Stage<'t>>, chunk_keys: usize) -> Self {
        let chunk_keys = chunk_keys.max(1);
        Walk { stages, position: Position::default(), chunk_keys }
    }

    /// A walk over the keys of one template.
    pub(crate) fn of(template: &'t Template, range: Range, chunk_keys: usize) -> Self {
        Walk::new(vec![Stage::of(template, range)], chunk_keys)
    }

    /// The same walk from here on.
    pub(crate) fn from(self, position: Position) -> Self {
        Walk { position, ..self }
    }

    /// How far the walk is: everything before has been given.
    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    /// The next keys; `None` when all have been given.
    pub(crate) async fn next(&mut self, live: &Live) -> Result<Option<Chunk>> {
        self.next_of(live, self.chunk_keys).await
    }

    /// The next keys, at most so many.
    pub(crate) async fn next_of(&mut self, live: &Live, keys: usize) -> Result<Option<Chunk>> {
        while let Some(stage) = self.stages.get(self.position.stage) {
            let Some(range) = stage.left(self.position.done.as_ref()) else {
                self.position = Position { stage: self.position.stage + 1, done: None };
                continue;
            };
            let stretch = live.scan_one(&range, keys, Direction::Forward).await?;
            let (area, end) = (range.area.clone(), range.end.clone());
            let (rows, left) = stage.own(range, stretch.rows);
            let next = if stretch.more { Some(left.start) } else { end };
            self.position.done = Some(Done { area: area.clone(), next });
            if !rows.is_empty() {
                return Ok(Some(Chunk { stage: self.position.stage, area, rows }));
            }
        }
        Ok(None)
    }
}

/// An area as its name.
mod area_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::engine::Area;

    pub(super) fn serialize<S: Serializer>(area: &Area, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(area.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Area, D::Error> {
        let name = String::deserialize(deserializer)?;
        Area::known(&name).map_err(D::Error::custom)
    }
}

/// The next key as text, if there is one.
mod next_key {
    use bytes::Bytes;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::space::{from_text, to_text};

    pub(super) fn serialize<S: Serializer>(
        key: &Option<Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        key.as_ref().map(|key| to_text(key)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        from_text(&text).map(Some).ok_or_else(|| D::Error::custom("no escaped key"))
    }
}
