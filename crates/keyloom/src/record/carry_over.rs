//! Applies a change of a record's typed form to the stored record. A function saw the record as a
//! Rust type shows it. Everything that it did not change stays as stored, value for value.
//!
//! | stored | seen before | seen after | becomes |
//! | --- | --- | --- | --- |
//! | `{"n": 1, "x": 9}` | `{"n": 1}` | `{"n": 2}` | `{"n": 2, "x": 9}`: the type does not know `x` |
//! | `{"n": 1}` | `{"n": 1, "m": null}` | `{"n": 2, "m": null}` | `{"n": 2}`: serde added `m`, not the function |
//! | `{"n": 0.1, "m": 1}` | `{"n": 0.10000000149011612, "m": 1}` | the same with `"m": 2` | `{"n": 0.1, "m": 2}`: the type rounds |
//! | `[{"s": "a", "x": 9}]` | `[{"s": "a"}]` | `[{"s": "b"}, {"s": "a"}]` | `[{"s": "b"}, {"s": "a", "x": 9}]`: the element moved |

use std::collections::HashMap;

use serde_json::{Map, Value};

/// How many pairs of equal elements the search for the longest common subsequence of two arrays may
/// compare. Beyond that, any common subsequence is accepted.
const EQUAL_PAIRS_MAX: usize = 1 << 20;

/// How many pairs of a stored and a seen element are compared to find out which belong together, if
/// their positions do not tell.
const COMPARISONS_MAX: usize = 1 << 20;

/// A record after a typed change.
#[derive(Debug, PartialEq)]
pub(crate) struct Carried {
    pub(crate) value: Value,
    /// Members that the type did not show under their own names, as JSON pointers, in objects where
    /// it showed a member that is not stored. The type may read one of them under that other name
    /// (serde's `alias`). Then the record must not have both.
    pub(crate) doubtful: Vec<String>,
}

/// The new stored value, after a program changed its view of the value from `before` to `after`.
pub(crate) fn carry_over(stored: &Value, before: &Value, after: &Value) -> Carried {
    let mut carrier = Carrier::default();
    let value = carrier.value(stored, before, after);
    Carried { value, doubtful: carrier.doubtful }
}

#[derive(Default)]
struct Carrier {
    /// The path of the value that is being built.
    pointer: String,
    doubtful: Vec<String>,
}

impl Carrier {
    fn value(&mut self, stored: &Value, before: &Value, after: &Value) -> Value {
        if before == after {
            return stored.clone();
        }
        match (stored, before, after) {
            (Value::Object(stored), Value::Object(before), Value::Object(after)) => {
                self.object(stored, before, after)
            }
            (Value::Array(stored), Value::Array(before), Value::Array(after)) => {
                self.array(stored, before, after)
            }
            _ => after.clone(),
        }
    }

    fn object(
        &mut self,
        stored: &Map<String, Value>,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) -> Value {
        let mut members = Map::new();
        for (name, kept) in stored {
            let value = match (before.get(name), after.get(name)) {
                (None, None) => kept.clone(),
                (Some(_), None) => continue,
                (None, Some(new)) => new.clone(),
                (Some(before), Some(after)) => {
                    self.within(name, |carrier| carrier.value(kept, before, after))
                }
            };
            members.insert(name.clone(), value);
        }
        let is_stored = |name: &String| stored.contains_key(name);
        for (name, new) in after.iter().filter(|(name, _)| !is_stored(name)) {
            if before.get(name) != Some(new) {
                members.insert(name.clone(), new.clone());
            }
        }
        let comes_from_elsewhere =
            |(name, seen): (&String, &Value)| !is_stored(name) && after.get(name) != Some(seen);
        if before.iter().any(comes_from_elsewhere) {
            let is_unknown = |name: &&String| !before.contains_key(*name);
            for name in stored.keys().filter(is_unknown) {
                self.within(name, |carrier| carrier.doubtful.push(carrier.pointer.clone()));
            }
        }
        Value::Object(members)
    }

    fn array(&mut self, stored: &[Value], before: &[Value], after: &[Value]) -> Value {
        let stored = stored_forms(stored, before);
        let elements = origins(before, after).into_iter().zip(after).enumerate();
        let carried = elements.map(|(at, (origin, after))| {
            let known = origin.and_then(|origin| Some((stored[origin]?, &before[origin])));
            match known {
                Some((stored, before)) => {
                    self.within(&at.to_string(), |carrier| carrier.value(stored, before, after))
                }
                None => after.clone(),
            }
        });
        Value::Array(carried.collect())
    }

    fn within<R>(&mut self, name: &str, act: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let result = act(self);
        self.pointer.truncate(length);
        result
    }
}

/// The stored form of each element that the program saw. Usually the positions tell. If the type is
/// a set, which sorts and drops duplicates, the values are compared instead, as far as possible.
fn stored_forms<'v>(stored: &'v [Value], seen: &[Value]) -> Vec<Option<&'v Value>> {
    let fits_by_position = stored.len() == seen.len()
        && stored.iter().zip(seen).all(|(stored, seen)| may_be_seen_as(stored, seen));
    if fits_by_position {
        return stored.iter().map(Some).collect();
    }
    let mut forms = vec![None; seen.len()];
    let mut is_free = vec![true; stored.len()];
    let mut exact = places(stored, |_| true);
    for (form, seen) in forms.iter_mut().zip(seen) {
        if let Some(place) = exact.get_mut(seen).and_then(Vec::pop) {
            *form = Some(&stored[place]);
            is_free[place] = false;
        }
    }
    let mut comparisons = 0;
    for (at, seen) in seen.iter().enumerate().filter(|(_, seen)| is_container(seen)) {
        if forms[at].is_some() {
            continue;
        }
        // A sequence keeps the positions of its elements, so the search begins at the same
        // position.
        let start = at.min(stored.len());
        let around = (start..stored.len()).chain(0..start).filter(|place| is_free[*place]);
        let found = around.take(COMPARISONS_MAX - comparisons).find(|place| {
            comparisons += 1;
            may_be_seen_as(&stored[*place], seen)
        });
        if let Some(place) = found {
            forms[at] = Some(&stored[place]);
            is_free[place] = false;
        }
    }
    pair_the_rest(stored, seen, &is_free, &mut forms);
    forms
}

/// Pairs the remaining containers in order, if there are as many stored as seen: the type probably
/// writes something in them differently, such as a date. A single value without a match is taken as
/// the program saw it, since a guess could bring back another value.
fn pair_the_rest<'v>(
    stored: &'v [Value],
    seen: &[Value],
    is_free: &[bool],
    forms: &mut [Option<&'v Value>],
) {
    let left: Vec<&Value> = stored
        .iter()
        .zip(is_free)
        .filter(|(stored, is_free)| **is_free && is_container(stored))
        .map(|(stored, _)| stored)
        .collect();
    let without: Vec<usize> =
        (0..seen.len()).filter(|at| forms[*at].is_none() && is_container(&seen[*at])).collect();
    if left.len() == without.len() {
        for (at, stored) in without.into_iter().zip(left) {
            forms[at] = Some(stored);
        }
    }
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

/// Whether a type could show the stored value like this: it may omit members, add others, and round
/// numbers.
fn may_be_seen_as(stored: &Value, seen: &Value) -> bool {
    match (stored, seen) {
        (Value::Object(stored), Value::Object(seen)) => seen
            .iter()
            .all(|(name, seen)| stored.get(name).is_none_or(|stored| may_be_seen_as(stored, seen))),
        (Value::Array(_), Value::Array(_)) => true,
        (Value::Number(stored), Value::Number(seen)) => {
            match (stored.as_f64(), seen.as_f64()) {
                // A 32-bit number keeps seven digits.
                (Some(stored), Some(seen)) => {
                    (stored - seen).abs() <= 1e-6 * stored.abs().max(seen.abs())
                }
                _ => stored == seen,
            }
        }
        _ => stored == seen,
    }
}

/// The origin of each element of an array. Unchanged elements come from their equals: those of the
/// longest common subsequence, or others if they moved. Between the elements of the subsequence,
/// the rest are paired in order if there are equally many on both sides: these were changed. All
/// others are new.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let kept = common_subsequence(before, after);
    let mut origins: Vec<Option<usize>> = vec![None; after.len()];
    let mut is_left = vec![true; before.len()];
    for &(place_before, place_after) in &kept {
        origins[place_after] = Some(place_before);
        is_left[place_before] = false;
    }
    let mut left = places(before, |place| is_left[place]);
    for (origin, after) in origins.iter_mut().zip(after).filter(|(origin, _)| origin.is_none()) {
        *origin = left.get_mut(after).and_then(Vec::pop);
        if let Some(place) = *origin {
            is_left[place] = false;
        }
    }
    let (mut next_before, mut next_after) = (0, 0);
    for (end_before, end_after) in kept.into_iter().chain([(before.len(), after.len())]) {
        if end_before - next_before == end_after - next_after {
            let changed = (next_before..end_before).zip(next_after..end_after);
            for (place_before, place_after) in changed {
                if is_left[place_before] && origins[place_after].is_none() {
                    origins[place_after] = Some(place_before);
                }
            }
        }
        (next_before, next_after) = (end_before + 1, end_after + 1);
    }
    origins
}

/// The positions of each value in falling order, so that `pop` gives the first.
fn places(values: &[Value], counts: impl Fn(usize) -> bool) -> HashMap<&Value, Vec<usize>> {
    let mut places: HashMap<&Value, Vec<usize>> = HashMap::new();
    for (place, value) in values.iter().enumerate().rev().filter(|(place, _)| counts(*place)) {
        places.entry(value).or_default().push(place);
    }
    places
}

/// Positions of equal elements in both arrays, rising in both: the longest such list, or, if very
/// many elements are equal, a long one.
fn common_subsequence(before: &[Value], after: &[Value]) -> Vec<(usize, usize)> {
    let head = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    let (rest_before, rest_after) = (&before[head..], &after[head..]);
    let tail = rest_before
        .iter()
        .rev()
        .zip(rest_after.iter().rev())
        .take_while(|(before, after)| before == after)
        .count();
    let middle_before = &rest_before[..rest_before.len() - tail];
    let middle_after = &rest_after[..rest_after.len() - tail];
    let middle = common_in_middle(middle_before, middle_after);
    let ends = (0..tail).rev().map(|back| (before.len() - 1 - back, after.len() - 1 - back));
    (0..head)
        .map(|at| (at, at))
        .chain(middle.into_iter().map(|(before, after)| (head + before, head + after)))
        .chain(ends)
        .collect()
}

fn common_in_middle(before: &[Value], after: &[Value]) -> Vec<(usize, usize)> {
    let places = places(before, |_| true);
    let equals: Vec<&[usize]> =
        after.iter().map(|value| places.get(value).map_or(&[][..], Vec::as_slice)).collect();
    let pairs: usize = equals.iter().map(|places| places.len()).sum();
    if pairs <= EQUAL_PAIRS_MAX { longest(&equals) } else { first_come(&equals) }
}

/// The longest common subsequence by the method of Hunt and Szymanski. For each element of `after`,
/// `equals` has the positions of its equals in `before`, in falling order.
fn longest(equals: &[&[usize]]) -> Vec<(usize, usize)> {
    struct Link {
        pair: (usize, usize),
        previous: Option<usize>,
    }
    let mut links: Vec<Link> = Vec::new();
    // For each length, the link that ends such a list at the lowest position in `before`.
    let mut ends: Vec<usize> = Vec::new();
    for (place_after, places) in equals.iter().enumerate() {
        // In falling order, so that no element of `after` is in a list twice.
        for &place in *places {
            let length = ends.partition_point(|end| links[*end].pair.0 < place);
            let previous = length.checked_sub(1).map(|shorter| ends[shorter]);
            links.push(Link { pair: (place, place_after), previous });
            let link = links.len() - 1;
            match ends.get_mut(length) {
                Some(end) => *end = link,
                None => ends.push(link),
            }
        }
    }
    let mut list: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |link| links[*link].previous)
            .map(|link| links[link].pair)
            .collect();
    list.reverse();
    list
}

/// A common subsequence that always takes the next equal element.
fn first_come(equals: &[&[usize]]) -> Vec<(usize, usize)> {
    let mut next = 0;
    let mut list = Vec::new();
    for (place_after, places) in equals.iter().enumerate() {
        let not_yet_passed = places.partition_point(|place| *place >= next);
        if let Some(place) = not_yet_passed.checked_sub(1).map(|first| places[first]) {
            list.push((place, place_after));
            next = place + 1;
        }
    }
    list
}

#[cfg(test)]
mod tests;
