//! The promises about keys, as properties of arbitrary input.
//!
//! Each function makes templates and values from the given bytes, and panics if a promise is
//! broken. The property tests call these functions with random bytes, and the fuzz targets with
//! bytes that a fuzzer chose, so both check the same properties.

#![allow(clippy::panic, clippy::expect_used, reason = "a broken promise is reported by panicking")]

mod dice;
mod order;

use std::cmp::Ordering;
use std::ops::Bound;

use serde_json::Value;

use self::dice::Dice;
use super::span::KeyRange;
use super::{Codec, Segment, Span, Template, common_key, recipe};
use crate::engine::{Area, Direction, KEY_BYTES_MAX, ShowKey};

/// Decoding never panics, and it accepts exactly what encoding gives. The automaton accepts the
/// same keys.
pub fn decode_any(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some(template) = dice.template() else { return };
    let values = dice.values(&template);
    let mut keys = vec![dice.rest_of(40)];
    if let Ok(key) = encode(&template, &values) {
        keys.extend((0..4).map(|_| dice.damaged(&key)));
    }
    for key in keys {
        let decoded = template.decode(&key);
        if let Some(values) = &decoded {
            assert_eq!(encode(&template, values).as_ref(), Ok(&key), "{}", show(&template, &key));
        }
        let fits = (1..=KEY_BYTES_MAX).contains(&key.len());
        assert_eq!(
            template.automaton.accepts(&key) && fits,
            decoded.is_some(),
            "{}",
            show(&template, &key)
        );
    }
}

/// A key decodes to the values that made it.
pub fn round_trip(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some(template) = dice.template() else { return };
    let values = dice.values(&template);
    let Ok(key) = encode(&template, &values) else { return };
    let decoded = template.decode(&key).expect("a key must be decodable");
    assert_eq!(decoded.len(), values.len());
    for ((segment, value), decoded) in template.segments().zip(&values).zip(&decoded) {
        assert_eq!(
            segment.codec.compare(value, decoded),
            Ordering::Equal,
            "{value} became {decoded} in {}",
            show(&template, &key)
        );
    }
    assert_eq!(encode(&template, &decoded).as_ref(), Ok(&key));
    assert!(template.automaton.accepts(&key), "{}", show(&template, &key));
}

/// The order of keys is that of their values, segment by segment.
pub fn order(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some(template) = dice.template() else { return };
    if !template.segments().all(|segment| segment.codec.is_ordered()) {
        return;
    }
    let a = dice.values(&template);
    let b = dice.values_like(&template, &a);
    let (Ok(key_a), Ok(key_b)) = (encode(&template, &a), encode(&template, &b)) else { return };
    let expected = template
        .segments()
        .zip(a.iter().zip(&b))
        .map(|(segment, (a, b))| compare(segment, a, b))
        .fold(Ordering::Equal, Ordering::then);
    assert_eq!(key_a.cmp(&key_b), expected, "{} and {}", show(&template, &key_a), ShowKey(&key_b));
}

/// A range has exactly the keys with the values that it asks for, and the ranges of two owners
/// share no key.
pub fn ranges(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some(template) = dice.template() else { return };
    let values = dice.values(&template);
    let fixed = dice.below(values.len() + 1);
    let equal: Vec<&Value> = values[..fixed].iter().collect();
    let next = template.segments().nth(fixed);
    let span = next.and_then(|segment| dice.span(segment));
    let range = match template.range(&equal, span.as_ref()) {
        Ok(range) => range,
        Err(_) => return,
    };
    if let (Some(segment), Some(Span::Between(..))) = (next, &span) {
        assert!(segment.codec.is_ordered(), "a range over text must be refused");
    }
    for _ in 0..6 {
        let others = dice.values_like(&template, &values);
        let Ok(key) = encode(&template, &others) else { continue };
        let same_owner = template
            .segments()
            .zip(values.iter().zip(&others))
            .take(fixed)
            .all(|(segment, (a, b))| compare(segment, a, b).is_eq());
        let within = next
            .zip(span.as_ref())
            .is_none_or(|(segment, span)| is_within(segment, &others[fixed], span));
        assert_eq!(
            contains(&range, &key),
            same_owner && within,
            "{} in {range:?} of {span:?}",
            show(&template, &key)
        );
        let other_equal: Vec<&Value> = others[..fixed].iter().collect();
        let other = template.range(&other_equal, None).expect("a key of this owner exists");
        let own = template.range(&equal, None).expect("a range of this owner exists");
        assert!(
            same_owner && own == other || !same_owner && are_disjoint(&own, &other),
            "{own:?} and {other:?} of {}",
            template.source
        );
    }
}

/// A skip passes the foreign key, but no key of the template.
pub fn skip(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some(template) = dice.template() else { return };
    let values = dice.values(&template);
    let Ok(own) = encode(&template, &values) else { return };
    let foreign = dice.damaged(&own);
    let fixed = dice.below(values.len() + 1);
    let equal: Vec<&Value> = values[..fixed].iter().collect();
    let Ok(range) = template.range(&equal, None) else { return };
    let range = range.in_area(Area::default_area());
    if template.decode(&foreign).is_some() || !range.contains(&foreign) {
        return;
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let left = template.skip(&range, &foreign, direction);
        assert!(!left.contains(&foreign), "{} in {left:?}", show(&template, &foreign));
        assert!(left.start >= range.start && (left.end <= range.end || range.end.is_none()));
        for _ in 0..4 {
            let others = dice.values_like(&template, &values);
            let Ok(key) = encode(&template, &others) else { continue };
            let is_ahead = match direction {
                Direction::Forward => key > foreign,
                Direction::Backward => key < foreign,
            };
            assert_eq!(
                left.contains(&key),
                range.contains(&key) && is_ahead,
                "{} after {} going {direction:?}: {left:?}",
                show(&template, &key),
                ShowKey(&foreign)
            );
        }
    }
}

/// A common key belongs to both templates. If the search finds none, no key does.
pub fn overlap(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some(a) = dice.template() else { return };
    // Half of the time, the other template is read from nearly the same bytes, so that it resembles
    // `a`.
    let resembling = dice.below(2) == 0;
    let b = if resembling { Dice::new(&dice.damaged(data)).template() } else { dice.template() };
    let Some(b) = b else { return };
    let common = common_key(&a, &b);
    assert_eq!(common.is_some(), common_key(&b, &a).is_some());
    if let Some(key) = common {
        assert!(a.decode(&key).is_some(), "{} and {}", show(&a, &key), b.source);
        assert!(b.decode(&key).is_some(), "{} and {}", show(&b, &key), a.source);
        return;
    }
    for (own, foreign) in [(&a, &b), (&b, &a)] {
        for _ in 0..4 {
            let values = dice.values(own);
            let Ok(key) = encode(own, &values) else { continue };
            let damaged = dice.damaged(&key);
            assert_eq!(foreign.decode(&key), None, "{} and {}", show(own, &key), foreign.source);
            assert!(own.decode(&damaged).is_none() || foreign.decode(&damaged).is_none());
        }
    }
}

/// A recipe turns the key of an entry into the key of the record with the same values.
pub fn recipes(data: &[u8]) {
    let mut dice = Dice::new(data);
    let Some((index, record)) = dice.index_and_record() else { return };
    let Some(recipe) = recipe(&index, &record, Area::default_area()) else { return };
    let values = dice.values(&index);
    let Ok(entry) = encode(&index, &values) else { return };
    let wanted: Vec<Value> = record
        .segments()
        .map(|target| {
            let place = index.segments().position(|source| source.path == target.path);
            values[place.expect("a recipe needs every field")].clone()
        })
        .collect();
    let target = recipe.target(&entry, b"").expect("the recipe fits its own entries");
    match encode(&record, &wanted) {
        Ok(key) => assert_eq!(target.key, key, "{} to {}", show(&index, &entry), record.source),
        // A key that is too long in the record's form is refused in that form, too.
        Err(()) => assert!(target.check().is_err(), "{} to {}", index.source, record.source),
    }
}

fn encode(template: &Template, values: &[Value]) -> Result<Vec<u8>, ()> {
    let values: Vec<&Value> = values.iter().collect();
    template.encode(&values).map(|key| key.to_vec()).map_err(|_| ())
}

fn compare(segment: &Segment, a: &Value, b: &Value) -> Ordering {
    let order = segment.codec.compare(a, b);
    if segment.desc { order.reverse() } else { order }
}

fn is_within(segment: &Segment, value: &Value, span: &Span) -> bool {
    let codec = &segment.codec;
    match span {
        Span::Prefix(prefix) => text_of(codec, value).starts_with(prefix),
        Span::Between(low, high) => {
            let above = match low {
                Bound::Unbounded => true,
                Bound::Included(low) => codec.compare(value, low).is_ge(),
                Bound::Excluded(low) => codec.compare(value, low).is_gt(),
            };
            let below = match high {
                Bound::Unbounded => true,
                Bound::Included(high) => codec.compare(value, high).is_le(),
                Bound::Excluded(high) => codec.compare(value, high).is_lt(),
            };
            above && below
        }
    }
}

fn text_of(codec: &Codec, value: &Value) -> String {
    match (codec, value) {
        (_, Value::String(text)) => text.clone(),
        (Codec::Geohash { chars, lat, lon }, place) => {
            let degrees = |name: &str| place[name].as_f64().unwrap_or_default();
            super::geohash_encode(degrees(lat), degrees(lon), *chars)
        }
        _ => panic!("only texts are asked for by their beginning"),
    }
}

fn contains(range: &KeyRange, key: &[u8]) -> bool {
    key >= &range.start[..] && range.end.as_ref().is_none_or(|end| key < &end[..])
}

fn are_disjoint(a: &KeyRange, b: &KeyRange) -> bool {
    let ends_before =
        |a: &KeyRange, b: &KeyRange| a.end.as_ref().is_some_and(|end| end <= &b.start);
    ends_before(a, b) || ends_before(b, a)
}

fn show(template: &Template, key: &[u8]) -> String {
    format!("`{}` of {} {:?}", ShowKey(key), template.source, template.parts)
}
