#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn carried(stored: &Value, before: &Value, after: &Value) -> Value {
    carry_over(stored, before, after).value
}

/// As text, so that the order of members counts.
fn text(value: &Value) -> String {
    value.to_string()
}

#[test]
fn elements_that_did_not_change_keep_what_the_type_does_not_know() {
    let line = |sku: &str| json!({"sku": sku});
    let priced = |sku: &str| json!({"sku": sku, "price": 9, "by": sku});
    let stored = json!([priced("a"), priced("b"), priced("c")]);
    let before = json!([line("a"), line("b"), line("c")]);
    for (after, wanted) in [
        // One is removed, one added, one changed; they are turned round.
        (json!([line("a"), line("c")]), json!([priced("a"), priced("c")])),
        (
            json!([line("n"), line("a"), line("b"), line("c")]),
            json!([line("n"), priced("a"), priced("b"), priced("c")]),
        ),
        (
            json!([line("a"), line("x"), line("c")]),
            json!([priced("a"), {"sku": "x", "price": 9, "by": "b"}, priced("c")]),
        ),
        (json!([line("c"), line("b"), line("a")]), json!([priced("c"), priced("b"), priced("a")])),
        // Two for one between those that stayed: nobody can tell which it was, both are new.
        (
            json!([line("a"), line("x"), line("y"), line("c")]),
            json!([priced("a"), line("x"), line("y"), priced("c")]),
        ),
        (json!([]), json!([])),
    ] {
        assert_eq!(text(&carried(&stored, &before, &after)), text(&wanted), "{after}");
    }
}

#[test]
fn what_serde_adds_or_rounds_is_no_change() {
    let stored = json!({"ratio": 0.1, "name": "n", "far": 9007199254740993_u64});
    let before =
        json!({"name": "n", "ratio": 0.1_f32, "far": 9007199254740992.0, "note": null, "tags": []});
    let mut after = before.clone();
    assert_eq!(text(&carried(&stored, &before, &after)), text(&stored));
    after["name"] = json!("m");
    let wanted = json!({"ratio": 0.1, "name": "m", "far": 9007199254740993_u64});
    assert_eq!(text(&carried(&stored, &before, &after)), text(&wanted));
    after["tags"] = json!(["new"]);
    assert_eq!(carried(&stored, &before, &after)["tags"], json!(["new"]));
}

/// A set shows its elements in another order, and each once.
#[test]
fn elements_of_sets_are_known_by_value() {
    let stored = json!(["c", "a", "b", "a"]);
    let before = json!(["a", "b", "c"]);
    assert_eq!(carried(&stored, &before, &json!(["a", "c"])), json!(["a", "c"]));
    let stored = json!([{"k": 2, "x": "two"}, {"k": 1, "x": "one"}]);
    let before = json!([{"k": 1}, {"k": 2}]);
    let wanted = json!([{"k": 2, "x": "two"}]);
    assert_eq!(carried(&stored, &before, &json!([{"k": 2}])), wanted);
}

/// A type may respell what is stored: elements are still told apart by their places.
#[test]
fn elements_that_the_type_respells_keep_their_other_members() {
    let stored = json!([{"at": "2020Z", "x": 1}, {"at": "2021Z", "x": 2}]);
    let before = json!([{"at": "2020.0Z"}, {"at": "2021.0Z"}]);
    let after = json!([{"at": "2021.0Z"}]);
    assert_eq!(carried(&stored, &before, &after), json!([{"at": "2021Z", "x": 2}]));
}

#[test]
fn members_that_may_be_another_name_of_a_changed_one_are_told() {
    let stored = json!({"list": [{"old~/": 1, "y": 1}], "z": 0});
    let before = json!({"list": [{"new": 1}]});
    let after = json!({"list": [{"new": 2}]});
    let doubtful = carry_over(&stored, &before, &after).doubtful;
    assert_eq!(doubtful, ["/list/0/old~0~1", "/list/0/y"]);
    let value = carried(&stored, &before, &after);
    assert!(doubtful.iter().all(|pointer| value.pointer(pointer).is_some()), "{value}");
    assert!(carry_over(&stored, &before, &before).doubtful.is_empty());
}

/// Very many elements that are alike are not compared each with each.
#[test]
fn large_arrays_take_a_bounded_time() {
    let before: Vec<Value> = (0..60_000).map(|at| json!(at % 2)).collect();
    let mut after = before.clone();
    after.remove(7);
    after.insert(0, json!(1));
    after.push(json!(0));
    let list = common_subsequence(&before, &after);
    assert!(list.len() > before.len() - 10, "{}", list.len());
    assert!(list.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    assert!(
        list.iter().all(|(place_before, place_after)| before[*place_before] == after[*place_after])
    );
}

/// A Rust type, as far as it matters here: what it shows of a stored value.
#[derive(Clone, Debug)]
enum Type {
    Text,
    Whole,
    /// A double in a member of 32 bits.
    Rounded,
    Optional(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Struct(Vec<Member>),
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    is: Type,
    /// Whether serde fills it in where it is missing.
    has_default: bool,
}

impl Type {
    fn default(&self) -> Value {
        match self {
            Type::Text => json!(""),
            Type::Whole => json!(0),
            Type::Rounded => json!(0.0),
            Type::Optional(_) => Value::Null,
            Type::List(_) => json!([]),
            Type::Map(_) => json!({}),
            Type::Struct(members) => members
                .iter()
                .map(|member| (member.name.clone(), member.is.default()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }

    /// What the type shows of a stored value.
    fn shows(&self, stored: &Value) -> Value {
        match (self, stored) {
            (Type::Rounded, Value::Number(number)) => json!(number.as_f64().unwrap() as f32),
            (Type::Optional(_), Value::Null) => Value::Null,
            (Type::Optional(inner), stored) => inner.shows(stored),
            (Type::List(inner), Value::Array(elements)) => {
                elements.iter().map(|element| inner.shows(element)).collect()
            }
            (Type::Map(inner), Value::Object(members)) => members
                .iter()
                .map(|(name, value)| (name.clone(), inner.shows(value)))
                .collect::<Map<_, _>>()
                .into(),
            (Type::Struct(known), Value::Object(members)) => known
                .iter()
                .map(|member| {
                    let shown = members.get(&member.name).map(|value| member.is.shows(value));
                    (member.name.clone(), shown.unwrap_or_else(|| member.is.default()))
                })
                .collect::<Map<_, _>>()
                .into(),
            (_, stored) => stored.clone(),
        }
    }
}

fn any_type() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![Just(Type::Text), Just(Type::Whole), Just(Type::Rounded)];
    let nested = leaf.prop_recursive(4, 24, 4, |inner| {
        let member = (inner.clone(), any::<bool>());
        prop_oneof![
            inner.clone().prop_map(|is| Type::Optional(Box::new(is))),
            inner.clone().prop_map(|is| Type::List(Box::new(is))),
            inner.prop_map(|is| Type::Map(Box::new(is))),
            members(member),
        ]
    });
    prop::collection::vec((nested, any::<bool>()), 1..4).prop_map(a_struct)
}

fn members(member: impl Strategy<Value = (Type, bool)>) -> impl Strategy<Value = Type> {
    prop::collection::vec(member, 1..4).prop_map(a_struct)
}

/// Names without a default come first, so that the order of a type is not that of what is stored.
fn a_struct(members: Vec<(Type, bool)>) -> Type {
    let named = members.into_iter().enumerate();
    let mut members: Vec<Member> = named
        .map(|(at, (is, has_default))| Member { name: format!("m{at}"), is, has_default })
        .collect();
    members.sort_by_key(|member| member.has_default);
    Type::Struct(members)
}

/// Chances, one after the other: what a seed gives.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

/// A stored value that the type can read: with members that it does not know, without some that
/// have defaults, in any order, with numbers that it rounds. No two scalars are alike, so that
/// elements can be told apart.
fn stored(is: &Type, dice: &mut Dice, next: &mut u32) -> Value {
    *next += 1;
    match is {
        Type::Text => json!(format!("t{next}")),
        Type::Whole => json!(*next),
        Type::Rounded => json!(f64::from(*next) * 10.0 + 0.123456789012),
        Type::Optional(inner) => match dice.roll(4) {
            0 => Value::Null,
            _ => stored(inner, dice, next),
        },
        Type::List(inner) => (0..dice.roll(5)).map(|_| stored(inner, dice, next)).collect(),
        Type::Map(inner) => (0..dice.roll(4))
            .map(|at| (format!("k.{at}"), stored(inner, dice, next)))
            .collect::<Map<_, _>>()
            .into(),
        Type::Struct(known) => {
            let mut members: Vec<(String, Value)> = known
                .iter()
                .filter_map(|member| {
                    let is_missing = member.has_default && dice.roll(3) == 0;
                    (!is_missing).then(|| (member.name.clone(), stored(&member.is, dice, next)))
                })
                .collect();
            for at in 0..dice.roll(3) {
                *next += 1;
                let unknown = json!({"of": [*next, null, {"deep": 0.1}]});
                members.insert(dice.roll(members.len() + 1), (format!("u{at}"), unknown));
            }
            members.into_iter().collect::<Map<_, _>>().into()
        }
    }
}

/// Changes one thing in what the program sees, and the same thing in what is stored. `false`
/// where there was nothing to change.
fn edit(is: &Type, seen: &mut Value, kept: &mut Value, dice: &mut Dice, next: &mut u32) -> bool {
    *next += 1;
    match (is, seen, kept) {
        (Type::Text | Type::Whole | Type::Rounded, seen, kept) => {
            let new = match is {
                Type::Text => json!(format!("new{next}")),
                Type::Whole => json!(*next),
                _ => json!(f64::from(*next)),
            };
            (*seen, *kept) = (new.clone(), new);
            true
        }
        (Type::Optional(inner), seen, kept) if seen.is_null() => {
            let new = inner.shows(&stored(inner, dice, next));
            (*seen, *kept) = (new.clone(), new);
            !seen.is_null()
        }
        (Type::Optional(_), seen, kept) if dice.roll(3) == 0 => {
            (*seen, *kept) = (Value::Null, Value::Null);
            true
        }
        (Type::Optional(inner), seen, kept) => edit(inner, seen, kept, dice, next),
        (Type::List(inner), Value::Array(seen), Value::Array(kept)) => {
            let at = dice.roll(seen.len() + 1);
            match dice.roll(4) {
                0 if at < seen.len() => {
                    seen.remove(at);
                    kept.remove(at);
                    true
                }
                1 => {
                    let new = inner.shows(&stored(inner, dice, next));
                    seen.insert(at, new.clone());
                    kept.insert(at, new);
                    true
                }
                2 if seen.len() > 1 => {
                    seen.reverse();
                    kept.reverse();
                    true
                }
                _ if at < seen.len() => edit(inner, &mut seen[at], &mut kept[at], dice, next),
                _ => false,
            }
        }
        (Type::Map(inner), Value::Object(seen), Value::Object(kept)) => {
            let names: Vec<String> = seen.keys().cloned().collect();
            let Some(name) = names.get(dice.roll(names.len() + 1)) else {
                let new = inner.shows(&stored(inner, dice, next));
                seen.insert(format!("k{next}"), new.clone());
                kept.insert(format!("k{next}"), new);
                return true;
            };
            if dice.roll(2) == 0 {
                seen.shift_remove(name);
                kept.shift_remove(name);
                return true;
            }
            edit(inner, &mut seen[name], &mut kept[name], dice, next)
        }
        (Type::Struct(known), Value::Object(seen), Value::Object(kept)) => {
            let member = &known[dice.roll(known.len())];
            let shown = &mut seen[&member.name];
            match kept.get_mut(&member.name) {
                Some(kept) => edit(&member.is, shown, kept, dice, next),
                // What serde had filled in is stored as a whole once the function changes it.
                None => {
                    let mut new = shown.clone();
                    let is_changed = edit(&member.is, shown, &mut new, dice, next);
                    if is_changed {
                        kept.insert(member.name.clone(), new);
                    }
                    is_changed
                }
            }
        }
        (is, seen, kept) => unreachable!("{is:?} does not show {kept} as {seen}"),
    }
}

/// Elements without anything to tell them by (empty lists, nulls) may be taken for each other.
fn has_equal_elements(value: &Value) -> bool {
    match value {
        Value::Array(elements) => {
            let distinct: std::collections::HashSet<&Value> = elements.iter().collect();
            distinct.len() < elements.len() || elements.iter().any(has_equal_elements)
        }
        Value::Object(members) => members.values().any(has_equal_elements),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_a_function_leaves_alone_stays(is in any_type(), seed in any::<u64>()) {
        let stored = stored(&is, &mut Dice(seed), &mut 0);
        let seen = is.shows(&stored);
        let carried = carry_over(&stored, &seen, &seen);
        prop_assert_eq!(text(&carried.value), text(&stored));
    }

    #[test]
    fn a_change_of_the_typed_form_is_the_same_change_of_the_record(
        is in any_type(),
        seed in any::<u64>(),
        edits in 1..4_usize,
    ) {
        let (mut dice, mut next) = (Dice(seed), 0);
        let stored = stored(&is, &mut dice, &mut next);
        let before = is.shows(&stored);
        let (mut after, mut wanted) = (before.clone(), stored.clone());
        let mut edited = 0;
        for _ in 0..edits {
            edited += usize::from(edit(&is, &mut after, &mut wanted, &mut dice, &mut next));
        }
        let carried = carried(&stored, &before, &after);
        // Whatever the edits were, the program reads what it wrote.
        prop_assert_eq!(is.shows(&carried), after.clone());
        // With one edit nothing about it is a matter of opinion.
        if edited == 1 && !has_equal_elements(&before) && !has_equal_elements(&after) {
            prop_assert_eq!(text(&carried), text(&wanted), "from {} by {}", stored, after);
        }
    }
}
