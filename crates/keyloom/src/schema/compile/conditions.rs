//! Compiles the conditions of partial indexes and aggregates. Checks them against the types of
//! their fields, and against themselves: a condition that no record can pass is a mistake.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::Fields;
use super::under;
use crate::json::compare_values;
use crate::key::{Kind, Path, whole_of};
use crate::schema::condition::{Condition, Test};
use crate::schema::declaration::{Comparison, TestDeclaration};
use crate::schema::model::{Field, FieldKind};
use crate::schema::problem::{Problems, Trail};
use crate::schema::table::type_name;

/// Compiles `where`; `None` if it has no tests.
pub(super) fn compile(
    declared: &BTreeMap<String, TestDeclaration>,
    trail: &Trail,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<Condition> {
    let mut tests = Vec::new();
    for (text, declaration) in declared {
        let trail = under(trail, text);
        match path(text, fields) {
            Ok(path) if fields.broken.contains(&path) => {}
            Ok(path) => {
                let field = fields.compiled.get(&path);
                let of_field = field_tests(field, declaration, &trail, problems);
                // Problems with single values are reported already.
                if !problems.touch(&trail)
                    && let Some(reason) = emptiness(field, &of_field)
                {
                    problems.add(trail, format!("{reason}; no record would ever pass"));
                }
                tests.extend(of_field.into_iter().map(|test| (path.clone(), test)));
            }
            Err(reason) => problems.add_to_name(trail, reason),
        }
    }
    (!tests.is_empty()).then_some(Condition { tests })
}

fn path(text: &str, fields: &Fields) -> Result<Path, String> {
    let path = Path::parse(text)?;
    if path.star().is_some() {
        return Err("a condition asks for one value; the path has a `*`".to_owned());
    }
    if let Some(above) = single_value_above(&path, fields) {
        return Err(format!("leads into `{above}`, which is declared as a single value"));
    }
    match fields.compiled.get(&path).map(|field| &field.kind) {
        Some(FieldKind::RecordPoint { lat, lon }) => {
            Err(format!("is made of members of the record; ask for `{lat}` or `{lon}`"))
        }
        _ => Ok(path),
    }
}

/// The declared field above a path, if that field cannot have members.
fn single_value_above(path: &Path, fields: &Fields) -> Option<Path> {
    let above = (1..path.0.len()).map(|length| Path(path.0[..length].to_vec()));
    above.into_iter().find(|above| match fields.compiled.get(above).map(|field| &field.kind) {
        Some(FieldKind::Key(Kind::Point { .. }) | FieldKind::Map) | None => false,
        Some(FieldKind::Key(_) | FieldKind::RecordPoint { .. }) => true,
    })
}

fn field_tests(
    field: Option<&Field>,
    declaration: &TestDeclaration,
    trail: &Trail,
    problems: &mut Problems,
) -> Vec<Test> {
    match declaration {
        TestDeclaration::Equals(value) => {
            checked(field, value, trail, problems).map(Test::Equals).into_iter().collect()
        }
        TestDeclaration::OneOf(values) => {
            if values.is_empty() {
                problems.add(trail.clone(), "must list one or more strings, numbers or booleans");
            }
            let values: Vec<Value> =
                values.iter().filter_map(|value| checked(field, value, trail, problems)).collect();
            vec![Test::OneOf(values)]
        }
        TestDeclaration::Compare(comparison) => {
            let is_enum = is_enum(field) && bounds(comparison).next().is_some();
            if is_enum {
                problems.add(trail.clone(), "an enum is compared by listing its values");
            }
            let bounds: Vec<Test> = bounds(comparison)
                .filter(|_| !is_enum)
                .filter_map(|(name, test, value)| {
                    let trail = under(trail, name);
                    if !is_ordered(value) {
                        problems.add(trail, "must be a string, a number or a boolean");
                        return None;
                    }
                    checked(field, value, &trail, problems).map(test)
                })
                .collect();
            if comparison.present == Some(false) && !bounds.is_empty() {
                problems.add(trail.clone(), "a missing field is neither greater nor less");
            }
            let presence = comparison.present.map(|present| match present {
                true => Test::Present,
                false => Test::Missing,
            });
            presence.into_iter().chain(bounds).collect()
        }
    }
}

/// The value, if the field can have it.
fn checked(
    field: Option<&Field>,
    value: &Value,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<Value> {
    if value.is_null() {
        let reason = "cannot be compared with null; use { present = false }";
        problems.add(trail.clone(), reason);
        return None;
    }
    match misfit(field, value) {
        None => Some(value.clone()),
        Some(reason) => {
            problems.add(trail.clone(), format!("{value} cannot be the field's value: {reason}"));
            None
        }
    }
}

fn is_enum(field: Option<&Field>) -> bool {
    matches!(field, Some(Field { kind: FieldKind::Key(Kind::Enum { .. }), .. }))
}

type MakeTest = fn(Value) -> Test;

/// The bounds that are set, each with its name and its test.
fn bounds(comparison: &Comparison) -> impl Iterator<Item = (&'static str, MakeTest, &Value)> {
    let all: [(&'static str, MakeTest, &Option<Value>); 4] = [
        ("gt", Test::Greater, &comparison.gt),
        ("gte", Test::AtLeast, &comparison.gte),
        ("lt", Test::Less, &comparison.lt),
        ("lte", Test::AtMost, &comparison.lte),
    ];
    all.into_iter().filter_map(|(name, test, value)| Some((name, test, value.as_ref()?)))
}

/// Why the field can never have this value; `None` if it can, or if it is not declared.
fn misfit(field: Option<&Field>, value: &Value) -> Option<String> {
    match &field?.kind {
        FieldKind::Map | FieldKind::Key(Kind::Point { .. }) | FieldKind::RecordPoint { .. } => {
            Some("it is an object; ask for { present = true } or false".to_owned())
        }
        FieldKind::Key(kind) => kind.check(value).err(),
    }
}

fn is_ordered(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

/// Why no record can pass all tests of a field together, although each test alone can be passed.
fn emptiness(field: Option<&Field>, tests: &[Test]) -> Option<String> {
    if tests.contains(&Test::Missing) && field.is_some_and(|field| field.required) {
        return Some("the field is required, so it is never missing".to_owned());
    }
    let lower = outermost(tests, Side::Lower);
    let upper = outermost(tests, Side::Upper);
    let all: Vec<&Edge<'_>> = lower.iter().chain(&upper).collect();
    let types: BTreeSet<&str> = all.iter().map(|edge| type_name(edge.value)).collect();
    if types.len() > 1 {
        let types: Vec<&str> = types.into_iter().collect();
        return Some(format!("a value is never both {} and {}", types[0], types[1]));
    }
    let (lower, upper) = (tightest(&lower, Ordering::Greater), tightest(&upper, Ordering::Less));
    let is_empty = match type_name(all.first()?.value) {
        "a boolean" => [false, true].iter().all(|value| {
            let value = Value::Bool(*value);
            tests.iter().any(|test| !test.holds(Some(&value)))
        }),
        _ => crosses(field, lower, upper),
    };
    let told = || {
        let words = [lower, upper].into_iter().flatten().map(|edge| edge.test.to_string());
        words.collect::<Vec<_>>().join(" and ")
    };
    is_empty.then(|| format!("nothing is {}", told()))
}

/// Which end of a range a bound is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

/// One bound.
#[derive(Clone, Copy)]
struct Edge<'t> {
    test: &'t Test,
    value: &'t Value,
    is_inclusive: bool,
}

/// The bounds on one side.
fn outermost<'t>(tests: &'t [Test], side: Side) -> Vec<Edge<'t>> {
    let edge = |test: &'t Test| -> Option<Edge<'t>> {
        let (of, value, is_inclusive) = match test {
            Test::Greater(value) => (Side::Lower, value, false),
            Test::AtLeast(value) => (Side::Lower, value, true),
            Test::Less(value) => (Side::Upper, value, false),
            Test::AtMost(value) => (Side::Upper, value, true),
            _ => return None,
        };
        (of == side).then_some(Edge { test, value, is_inclusive })
    };
    tests.iter().filter_map(edge).collect()
}

/// The bound that implies all others on its side; `order` is how it compares with them.
fn tightest<'t>(edges: &[Edge<'t>], order: Ordering) -> Option<Edge<'t>> {
    edges.iter().copied().reduce(|one, other| match compare_values(other.value, one.value) {
        Some(found) if found == order => other,
        Some(Ordering::Equal) if !other.is_inclusive => other,
        _ => one,
    })
}

/// Whether no value lies between two bounds of the same type.
fn crosses(field: Option<&Field>, lower: Option<Edge<'_>>, upper: Option<Edge<'_>>) -> bool {
    let kind = match field.map(|field| &field.kind) {
        Some(FieldKind::Key(kind @ (Kind::Integer { .. } | Kind::Timestamp))) => Some(kind),
        _ => None,
    };
    if let Some(kind) = kind {
        // There may be no whole number between two others, and there is none beyond the limits.
        let first =
            lower.and_then(|edge| whole_of(edge.value)?.checked_add(i64::from(!edge.is_inclusive)));
        let last =
            upper.and_then(|edge| whole_of(edge.value)?.checked_sub(i64::from(!edge.is_inclusive)));
        let is_outside = |edge: Option<Edge<'_>>, end: Option<i64>| {
            edge.is_some() && end.is_none_or(|end| kind.check(&end.into()).is_err())
        };
        return is_outside(lower, first)
            || is_outside(upper, last)
            || matches!((first, last), (Some(first), Some(last)) if first > last);
    }
    let is_below_all =
        |edge: Edge<'_>| !edge.is_inclusive && edge.value.as_str().is_some_and(str::is_empty);
    if upper.is_some_and(is_below_all) {
        return true;
    }
    let (Some(lower), Some(upper)) = (lower, upper) else { return false };
    match compare_values(lower.value, upper.value) {
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => !(lower.is_inclusive && upper.is_inclusive),
        _ => false,
    }
}
