//! What a process merely leaves out of its declaration stays as it is in the store.

use serde_json::Value;

use super::{SYSTEMS, compiled};
use crate::schema::evolution::evolve;
use crate::schema::{Class, Schema};

/// One of everything that may be left out.
const RICH: &str = r#"
[log]
entries = 9
[idempotency]
keep = "2 days"

[collection.task]
key        = "task:{owner}:{id}"
access     = "hybrid"
owner      = "owner"
expires_at = "ends"
history    = { versions = 3 }
body       = { type = "object" }
[collection.task.fields]
owner = "text"
id    = { type = "uuid", version = 4, generate = true }
ends  = "timestamp"
state = { type = "enum", values = ["new", "old", "gone"], transitions = { new = ["old", "gone"], gone = ["new"] } }
note  = { type = "text", required = true }
"tags.*" = "text"
[collection.task.counters]
runs     = { min = 0, max = 9 }
"hits.*" = { min = -1 }
[collection.task.index.tag]
key = "by-tag:{tags.*}:{owner}:{id}"
max = 3
[collection.task.index.note]
key    = "by-note:{note}:{owner}:{id}"
sparse = false
[collection.task.index.ends]
key    = "by-end:{ends}"
claims = true
[collection.task.count.all]
group = []
"#;

/// Every place in a JSON text, as the names and numbers that lead there.
fn places(value: &Value, at: &[String], found: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, v)| (name.clone(), v)).collect(),
        Value::Array(elements) => {
            elements.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        let place = [at, &[step]].concat();
        places(child, &place, found);
        found.push(place);
    }
}

fn without(value: &Value, place: &[String]) -> Value {
    let mut left = value.clone();
    let (last, way) = place.split_last().unwrap();
    let parent = way.iter().fold(&mut left, |at, step| match at {
        Value::Array(elements) => &mut elements[step.parse::<usize>().unwrap()],
        object => &mut object[step.as_str()],
    });
    match parent {
        Value::Object(members) => drop(members.remove(last)),
        Value::Array(elements) => drop(elements.remove(last.parse().unwrap())),
        _ => panic!("{place:?} leads nowhere"),
    }
    left
}

/// Whether leaving this out says something: the allowed changes of a value, with `illegal`, are
/// said as a whole, and so are a body and how much of a log or a history is kept. An integer
/// without `digits` has 19.
fn is_part_of_a_statement(place: &[String]) -> bool {
    place
        .iter()
        .rev()
        .skip(1)
        .any(|step| ["transitions", "log", "history", "body"].contains(&step.as_str()))
        || place.last().is_some_and(|step| step == "illegal" || step == "digits")
}

#[test]
fn what_is_left_out_stays() {
    let mut tried = 0;
    for text in SYSTEMS.iter().chain([&RICH]) {
        let stored = compiled(text);
        let json = serde_json::to_value(stored.declaration()).unwrap();
        let mut found = Vec::new();
        places(&json, &[], &mut found);
        for place in found.iter().filter(|place| !is_part_of_a_statement(place)) {
            // What makes no schema cannot be declared.
            let Ok(declared) = Schema::from_json(&without(&json, place).to_string()) else {
                continue;
            };
            let evolution = evolve(&stored, &declared);
            if evolution.changes.iter().any(|change| change.class == Class::Incompatible) {
                continue;
            }
            tried += 1;
            assert_eq!(evolution.merged, stored.declaration(), "without {place:?}");
        }
    }
    assert!(tried > 60, "only {tried} places could be left out");
}

/// A process that does not know a value cannot mean to forbid its changes.
#[test]
fn changes_of_values_that_a_process_does_not_know_stay() {
    let schema = |values: &str, transitions: &str| {
        compiled(&format!(
            "[collection.x]\nkey = \"x:{{id}}\"\n[collection.x.fields]\nid = \"text\"\n\
             s = {{ type = \"enum\", values = {values}, transitions = {transitions} }}"
        ))
    };
    let newer = schema(r#"["a", "b", "c"]"#, r#"{ a = ["c", "b"], c = ["a"] }"#);
    let older = schema(r#"["a", "b"]"#, r#"{ a = ["b"] }"#);
    assert_eq!(evolve(&newer, &older).merged, newer.declaration());
    // What it does know, it may change.
    let other = schema(r#"["a", "b"]"#, r#"{ b = ["a"] }"#);
    let merged = schema(r#"["a", "b", "c"]"#, r#"{ a = ["c"], b = ["a"], c = ["a"] }"#);
    assert_eq!(evolve(&newer, &other).merged, merged.declaration());
}

/// Other values that a member of a schema could have: for a number its neighbours, for a text those
/// of the same schema and some more, for a flag the other one.
fn others(value: &Value, texts: &[String]) -> Vec<Value> {
    match value {
        Value::Bool(flag) => vec![(!flag).into()],
        Value::Number(number) => {
            let number = number.as_i64().unwrap();
            [number - 1, number + 1, number + 7].map(Value::from).to_vec()
        }
        Value::String(text) => {
            let changed = [format!("{text}x"), format!("x{text}"), format!("{text}:x")];
            texts
                .iter()
                .cloned()
                .chain(changed)
                .filter(|other| other != text)
                .map(Value::from)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn at<'v>(value: &'v Value, place: &[String]) -> Option<&'v Value> {
    place.iter().try_fold(value, |at, step| match at {
        Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
        object => object.get(step),
    })
}

fn with(value: &Value, place: &[String], other: &Value) -> Value {
    let mut changed = value.clone();
    *place.iter().fold(&mut changed, |at, step| match at {
        Value::Array(elements) => &mut elements[step.parse::<usize>().unwrap()],
        object => &mut object[step.as_str()],
    }) = other.clone();
    changed
}

/// Whether the value of a list, or what a table is for, is there: lists may have more than that.
fn has(merged: &Value, place: &[String], other: &Value) -> bool {
    let (_, above) = place.split_last().unwrap();
    match at(merged, above) {
        Some(Value::Array(elements)) => elements.contains(other),
        _ => at(merged, place) == Some(other),
    }
}

/// Whatever a process says otherwise than the store either takes effect or is refused.
#[test]
fn what_is_said_otherwise_takes_effect_or_is_refused() {
    let (mut effective, mut refused) = (0, 0);
    for text in SYSTEMS.iter().chain([&RICH, &VARIED]) {
        let stored = compiled(text);
        let json = serde_json::to_value(stored.declaration()).unwrap();
        let mut found = Vec::new();
        places(&json, &[], &mut found);
        let texts: Vec<String> = TYPES
            .iter()
            .map(|name| (*name).to_owned())
            .chain(found.iter().filter_map(|place| at(&json, place)?.as_str().map(str::to_owned)))
            .collect();
        for place in &found {
            for other in others(at(&json, place).unwrap(), &texts) {
                let declared = with(&json, place, &other);
                let Ok(declared) = Schema::from_json(&declared.to_string()) else { continue };
                let evolution = evolve(&stored, &declared);
                if evolution.changes.iter().any(|change| change.class == Class::Incompatible) {
                    refused += 1;
                    continue;
                }
                effective += 1;
                let merged = serde_json::to_value(&evolution.merged).unwrap();
                assert!(has(&merged, place, &other), "{place:?} = {other} is ignored");
                assert!(!evolution.changes.is_empty(), "{place:?} = {other} is not told");
            }
        }
    }
    assert!(effective > 100 && refused > 100, "{effective} took effect, {refused} were refused");
}

const TYPES: [&str; 9] =
    ["text", "float", "boolean", "timestamp", "datetime", "id", "map", "ignore", "record"];

/// What the other schemas have not got.
const VARIED: &str = r#"
[collection.thing]
key = "thing:{id}"
[collection.thing.fields]
id    = "text"
code  = { type = "code", pattern = "A-***" }
free  = { type = "integer", digits = 5 }
keyed = { type = "integer", digits = 5 }
level = { type = "integer", digits = 2 }
uuid  = { type = "uuid", version = 7 }
place = { type = "point", lat = "lat", lon = "lng" }
here  = { type = "point", lat = "y", lon = "x", of = "record" }
state = { type = "enum", values = ["a", "b"], transitions = { a = ["b"] }, illegal = "ignore" }
"marks.*" = "text"
[collection.thing.index.keyed]
key   = "by-keyed:{keyed}:{id}"
holds = "{id, free}"
where = { free = { gte = 3, lt = 90 }, code = { present = true }, state = ["a", "b"] }
[collection.thing.index.mark]
key    = "by-mark:{marks.*}:{id}"
max    = 4
sparse = true
[collection.thing.geo.near]
key  = "near:{place geohash 5}:{id}"
area = "places"
[collection.thing.count.by_level]
group = ["level"]
where = { state = "a" }
[collection.thing.sum.free]
field = "free"
group = []
"#;
