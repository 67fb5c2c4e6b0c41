//! Random queries, and what a filter and a sort over everything would answer.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;

use keyloom::{Order, Query, Test};
use serde_json::Value;

use super::random::Random;
use super::shape::{IndexShape, Kind, LATER, Segment, Shape, compare};
use super::values::Draw;

/// A query together with the index that must answer it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The index; `None` for the records themselves.
    pub index: Option<String>,
    /// Whether the query says so, or the planner has to find it.
    named: bool,
    /// Values of the first segments.
    equal: Vec<(String, Value)>,
    /// A second index, of which the union is asked: the first value of each.
    union: Option<(String, Value)>,
    range: Option<(Bound<Value>, Bound<Value>)>,
    prefix: Option<String>,
    order: Option<Order>,
    filter: Option<(String, Test)>,
    pub take: usize,
    limit: Option<usize>,
}

/// Where an answer has an entry: the values that order it.
pub type Place = Vec<Value>;

impl Question {
    /// A question about a collection. `later`: whether the newer schema's indexes may be asked.
    pub fn random(shape: &Shape, draw: &mut Draw<'_>, later: bool) -> Self {
        let usable: Vec<&IndexShape> = shape
            .indexes
            .iter()
            .filter(|index| index.kind != Kind::Geo && (later || index.name != LATER))
            .collect();
        let index = (!draw.random.percent(20)).then(|| *draw.random.pick(&usable));
        let mut question = Question {
            take: *draw.random.pick(&[1, 2, 3, 5, 10, 50]),
            ..Question::everything(index.map(|index| index.name.clone()))
        };
        let segments = question.segments(shape);
        let fixed = draw.random.below(segments.len().min(3) + 1);
        for segment in &segments[..fixed] {
            let value = draw.value(&shape.name, &segment.path);
            question.equal.push((segment.path.clone(), value));
        }
        if let Some(next) = segments.get(fixed) {
            question.bound(shape, next, draw);
        }
        if shape.name == "item" && draw.random.percent(30) {
            question.unite(shape, draw);
        }
        if draw.random.percent(20) {
            question.filter = Some(filter(draw.random));
            question.limit = draw.random.percent(30).then(|| 1 + draw.random.below(10));
        }
        question.named = !question.is_planned(shape) || draw.random.percent(50);
        question
    }

    /// Bounds the segment after the fixed ones, and gives it an order.
    fn bound(&mut self, shape: &Shape, next: &Segment, draw: &mut Draw<'_>) {
        if next.text && !next.desc && draw.random.percent(30) {
            let value = draw.value(&shape.name, &next.path);
            let text = value.as_str().unwrap();
            let end = draw.random.below(text.chars().count() + 1);
            self.prefix = Some(text.chars().take(end).collect());
        } else if next.ordered && draw.random.percent(40) {
            let bound = |random: &mut Random, value| match random.below(3) {
                0 => Bound::Unbounded,
                1 => Bound::Included(value),
                _ => Bound::Excluded(value),
            };
            let mut ends = [(); 2].map(|()| draw.value(&shape.name, &next.path));
            if draw.random.percent(80) {
                ends.sort_by(compare);
            }
            let [low, high] = ends;
            self.range = Some((bound(draw.random, low), bound(draw.random, high)));
        }
        if next.ordered {
            let orders = [None, Some(Order::Ascending), Some(Order::Descending)];
            self.order = *draw.random.pick(&orders);
        }
    }

    /// What I own or am second of.
    fn unite(&mut self, shape: &Shape, draw: &mut Draw<'_>) {
        self.index = Some("owner".to_owned());
        self.equal = vec![("owner".to_owned(), draw.value("item", "owner"))];
        self.union = Some(("second".to_owned(), draw.value("item", "second")));
        (self.prefix, self.range, self.order) = (None, None, None);
        let next = shape.index("owner").segments[1].clone();
        self.bound(shape, &next, draw);
    }

    fn segments(&self, shape: &Shape) -> Vec<Segment> {
        match &self.index {
            Some(name) => shape.index(name).segments.clone(),
            None => shape.key.clone(),
        }
    }

    /// Whether the planner can come to no other index.
    fn is_planned(&self, shape: &Shape) -> bool {
        if self.index.is_none() || self.union.is_some() {
            return true;
        }
        // It has no record without the field, and is not taken for a question about these.
        if let Some((path, Test::Missing)) = &self.filter
            && self.segments(shape).iter().any(|segment| segment.path == *path)
        {
            return false;
        }
        let asked = self.equal.len()
            + usize::from(self.range.is_some() || self.prefix.is_some() || self.order.is_some());
        let wanted = self.segments(shape);
        let wanted: Vec<&str> =
            wanted[..asked].iter().map(|segment| segment.path.as_str()).collect();
        let begins_alike = |segments: &[Segment]| {
            segments.len() >= asked
                && wanted
                    .iter()
                    .all(|path| segments[..asked].iter().any(|segment| segment.path == *path))
        };
        asked > 0
            && !begins_alike(&shape.key)
            && shape.indexes.iter().filter(|index| begins_alike(&index.segments)).count() == 1
            && !shape.index(self.index.as_ref().unwrap()).is_partial()
    }

    /// The question as the library is asked.
    pub fn query(&self, shape: &Shape) -> Query {
        let mut query = Query::new().take(self.take);
        for (path, value) in &self.equal {
            query = match &self.union {
                Some((other, second)) => query.any(path, value.clone()).any(other, second.clone()),
                None => query.equal(path, value.clone()),
            };
        }
        let segments = self.segments(shape);
        let next = segments.get(self.equal.len()).map(|segment| segment.path.as_str());
        if let (Some(path), Some(range)) = (next, &self.range) {
            query = query.range::<Value>(path, range.clone());
        }
        if let (Some(path), Some(prefix)) = (next, &self.prefix) {
            query = query.starts_with(path, prefix);
        }
        if let (Some(path), Some(order)) = (next, self.order) {
            query = query.order(path, order);
        }
        match &self.index {
            Some(name) if self.named && self.union.is_none() => query = query.index(name),
            // Nothing is asked of the records, so that the filter goes over all of them.
            None if self.equal.is_empty()
                && self.range.is_none()
                && self.prefix.is_none()
                && self.order.is_none()
                && self.filter.is_some() =>
            {
                query = query.scan();
            }
            _ => {}
        }
        if let Some((path, test)) = &self.filter {
            query = query.filter(path, test.clone());
        }
        match self.limit {
            Some(limit) => query.limit(limit),
            None => query,
        }
    }

    /// All entries of an index, or all records.
    pub fn everything(index: Option<String>) -> Self {
        Question {
            index,
            named: true,
            equal: Vec::new(),
            union: None,
            range: None,
            prefix: None,
            order: None,
            filter: None,
            take: 10_000,
            limit: None,
        }
    }

    /// The same question in one page, without a filter and a bound on what is read.
    pub fn unfiltered(self) -> Self {
        Question { filter: None, limit: None, take: 10_000, ..self }
    }

    /// Whether only records of one client can answer: the first value is that client's own.
    pub fn is_own(&self) -> bool {
        let own = ["owner", "second", "shelf", "queue", "arn", "uid"];
        self.equal.iter().any(|(path, _)| own.contains(&path.as_str()))
    }

    /// Every place that a record has in the answer.
    pub fn places(&self, shape: &Shape, record: &Value) -> Vec<Place> {
        if !self.filter.as_ref().is_none_or(|(path, test)| passes(record.get(path), test)) {
            return Vec::new();
        }
        let segments = self.segments(shape);
        let mut places = match &self.index {
            Some(name) => self.places_in(&segments, shape.index(name).entries(record), &self.equal),
            None => self.places_in(&segments, vec![shape.key_values(record)], &self.equal),
        };
        if let Some(second) = &self.union {
            let other = shape.index(&second.0);
            let more =
                self.places_in(&segments, other.entries(record), std::slice::from_ref(second));
            // Through both indexes a record has the same place, and is shown once.
            if places.is_empty() {
                places = more;
            }
        }
        places
    }

    fn places_in(
        &self,
        segments: &[Segment],
        entries: Vec<Vec<Value>>,
        equal: &[(String, Value)],
    ) -> Vec<Place> {
        let fixed = equal.len();
        let asked_for = |entry: &Vec<Value>| {
            let equal =
                equal.iter().zip(entry).all(|((_, value), held)| compare(value, held).is_eq());
            let next = entry.get(fixed);
            equal
                && self.range.as_ref().is_none_or(|(low, high)| within(next.unwrap(), low, high))
                && self.prefix.as_ref().is_none_or(|prefix| {
                    next.unwrap().as_str().unwrap().starts_with(prefix.as_str())
                })
        };
        let ordered = segments[fixed..].iter().take_while(|segment| segment.ordered).count();
        entries
            .into_iter()
            .filter(asked_for)
            .map(|entry| entry[fixed..fixed + ordered].to_vec())
            .collect()
    }

    /// Which of two places comes first. Those that agree up to a plain text may come in any order.
    pub fn order(&self, shape: &Shape, a: &Place, b: &Place) -> Ordering {
        let segments = self.segments(shape);
        let tail = &segments[self.equal.len()..];
        let forward = match (self.order, tail.first()) {
            (Some(order), Some(first)) => (order == Order::Descending) == first.desc,
            _ => true,
        };
        let by_segment = tail
            .iter()
            .zip(a.iter().zip(b))
            .map(|(segment, (a, b))| if segment.desc { compare(b, a) } else { compare(a, b) });
        let order = by_segment.fold(Ordering::Equal, Ordering::then);
        if forward { order } else { order.reverse() }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} named={} equal={:?}", self.index, self.named, self.equal)?;
        if let Some(union) = &self.union {
            write!(f, " or {union:?}")?;
        }
        if let Some(range) = &self.range {
            write!(f, " range={range:?}")?;
        }
        if let Some(prefix) = &self.prefix {
            write!(f, " prefix={prefix:?}")?;
        }
        write!(f, " order={:?} take={}", self.order, self.take)?;
        if let Some(filter) = &self.filter {
            write!(f, " filter={filter:?} limit={:?}", self.limit)?;
        }
        Ok(())
    }
}

fn within(value: &Value, low: &Bound<Value>, high: &Bound<Value>) -> bool {
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(bound) => compare(value, bound).is_ge(),
        Bound::Excluded(bound) => compare(value, bound).is_gt(),
    };
    let below = match high {
        Bound::Unbounded => true,
        Bound::Included(bound) => compare(value, bound).is_le(),
        Bound::Excluded(bound) => compare(value, bound).is_lt(),
    };
    above && below
}

/// Every record has the field `free`, and only some have others.
fn filter(random: &mut Random) -> (String, Test) {
    let free = random.below(4);
    match random.below(4) {
        0 => ("free".to_owned(), Test::Equals(free.into())),
        1 => ("free".to_owned(), Test::AtLeast(free.into())),
        2 => ("score".to_owned(), Test::Missing),
        _ => ("at".to_owned(), Test::Present),
    }
}

fn passes(value: Option<&Value>, test: &Test) -> bool {
    let value = value.filter(|value| !value.is_null());
    match test {
        Test::Equals(wanted) => value.is_some_and(|value| compare(value, wanted).is_eq()),
        Test::AtLeast(bound) => value.is_some_and(|value| compare(value, bound).is_ge()),
        Test::Missing => value.is_none(),
        _ => value.is_some(),
    }
}
