//! The conditions of partial indexes, checked against the types of their fields.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::Fields;
use super::under;
use crate::key::{Kind, Path};
use crate::schema::condition::{Condition, Test};
use crate::schema::declaration::{Comparison, TestDeclaration};
use crate::schema::model::{Field, FieldKind};
use crate::schema::problem::{Problems, Trail};

/// Compiles `where`. `None` when nothing is asked.
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
                for test in field_tests(field, declaration, &trail, problems) {
                    tests.push((path.clone(), test));
                }
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
    match fields.compiled.get(&path).map(|field| &field.kind) {
        Some(FieldKind::RecordPoint { lat, lon }) => {
            Err(format!("is made of members of the record; ask for `{lat}` or `{lon}`"))
        }
        _ => Ok(path),
    }
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
            let values: Vec<Value> =
                values.iter().filter_map(|value| checked(field, value, trail, problems)).collect();
            vec![Test::OneOf(values)]
        }
        TestDeclaration::Compare(comparison) => {
            if is_enum(field) && bounds(comparison).next().is_some() {
                problems.add(trail.clone(), "an enum is compared by listing its values");
                return Vec::new();
            }
            let bounds: Vec<Test> = bounds(comparison)
                .filter_map(|(name, test, value)| {
                    checked(field, value, &under(trail, name), problems).map(test)
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

/// Why the field can never have this value, if it is declared and cannot.
fn misfit(field: Option<&Field>, value: &Value) -> Option<String> {
    match &field?.kind {
        FieldKind::Map | FieldKind::Key(Kind::Point { .. }) | FieldKind::RecordPoint { .. } => {
            Some("it is an object; ask for { present = true } or false".to_owned())
        }
        FieldKind::Key(kind) => kind.check(value).err(),
    }
}
