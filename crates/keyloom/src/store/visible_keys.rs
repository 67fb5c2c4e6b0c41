//! Decides which keys of an area a caller of the plain interface sees.

use bytes::Bytes;

use crate::engine::{Area, Direction, Range};
use crate::error::Result;
use crate::key::Template;
use crate::schema::Schema;
use crate::space::Session;

/// The keys of an area that a caller may see.
pub(super) enum VisibleKeys<'s> {
    /// All of them: the caller is the program itself.
    Everything,
    /// The keys of these templates that the acting user may read. Keys of no template belong to
    /// nobody, and no user sees them.
    Templates(Vec<VisibleTemplate<'s>>),
}

/// The visible keys of one template.
pub(super) struct VisibleTemplate<'s> {
    range: Range,
    template: &'s Template,
}

impl<'s> VisibleKeys<'s> {
    pub(super) fn new(session: &Session, schema: &'s Schema, area: &Area) -> Result<Self> {
        if session.actor().is_none() {
            return Ok(VisibleKeys::Everything);
        }
        let mut rooms = Vec::new();
        for collection in schema.collections.values() {
            let indexes = collection.indexes.values().map(|index| Some(&**index));
            for index in std::iter::once(None).chain(indexes) {
                // If an index mixes entries of all owners, a user sees none of them.
                let Ok(own) = session.confine(collection, index) else { continue };
                let (range, template) = match (own, index) {
                    (Some(own), Some(index)) => (own, &index.key),
                    (Some(own), None) => (own, &collection.key),
                    (None, Some(index)) => (index.entry_range()?, &index.key),
                    (None, None) => (collection.record_range()?, &collection.key),
                };
                if range.area == *area {
                    rooms.push(VisibleTemplate { range, template });
                }
            }
        }
        Ok(VisibleKeys::Templates(rooms))
    }

    /// Whether the caller may see this key, if it exists.
    pub(super) fn shows(&self, key: &[u8]) -> bool {
        match self {
            VisibleKeys::Everything => true,
            VisibleKeys::Templates(rooms) => rooms
                .iter()
                .any(|room| room.range.contains(key) && room.template.decode(key).is_some()),
        }
    }

    /// The first part of a range that may hold visible keys.
    pub(super) fn first_part(&self, left: &Range) -> Option<Range> {
        let VisibleKeys::Templates(rooms) = self else {
            return (!left.is_empty()).then(|| left.clone());
        };
        let start = rooms.iter().filter_map(|room| room.first_of(left)).min()?;
        let end = rooms
            .iter()
            .filter(|room| room.range.contains(&start))
            .map(|room| &room.range.end)
            .try_fold(start.clone(), |end, room| Some(end.max(room.clone()?)));
        let end = match (end, &left.end) {
            (Some(end), Some(limit)) => Some(end.min(limit.clone())),
            (end, limit) => end.or_else(|| limit.clone()),
        };
        Some(Range { area: left.area.clone(), start, end })
    }

    /// The rest of a range after a hidden key: it skips to where the next visible key may be.
    pub(super) fn skip(&self, left: &Range, hidden: &[u8]) -> Range {
        let left = left.after(hidden, Direction::Forward);
        let VisibleKeys::Templates(rooms) = self else { return left };
        let next = rooms.iter().filter_map(|room| {
            if !room.range.contains(hidden) {
                return room.first_of(&left);
            }
            let rest = room.template.skip(&room.range, hidden, Direction::Forward);
            VisibleTemplate { range: rest, template: room.template }.first_of(&left)
        });
        match next.min() {
            Some(start) => Range { start, ..left },
            None => Range { end: Some(left.start.clone()), ..left },
        }
    }
}

impl VisibleTemplate<'_> {
    /// The lowest key that the template and a range share.
    fn first_of(&self, range: &Range) -> Option<Bytes> {
        let start = self.range.start.clone().max(range.start.clone());
        (self.range.contains(&start) && range.contains(&start)).then_some(start)
    }
}
