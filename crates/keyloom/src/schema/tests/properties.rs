//! What holds for every schema.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::{SYSTEMS, compiled, problems};
use crate::error::ErrorKind;
use crate::schema::evolution::evolve;
use crate::schema::{
    Access, AggregateDeclaration, Class, CollectionDeclaration, Comparison, CounterDeclaration,
    FieldDeclaration, FieldType, HistoryDeclaration, IdempotencyDeclaration, Illegal,
    IndexDeclaration, LogDeclaration, PointOf, Schema, SchemaDeclaration, TestDeclaration,
};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z]{1,4}", 1 => any::<String>()]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|quarters| json!(f64::from(quarters) / 4.0)),
        name().prop_map(Value::from),
    ]
}

fn field_type() -> impl Strategy<Value = FieldType> {
    let lists = btree_map(name(), vec(name(), 0..3), 0..3);
    prop_oneof![
        Just(FieldType::Text),
        any::<u8>().prop_map(|digits| FieldType::Integer { digits }),
        Just(FieldType::Float),
        Just(FieldType::Boolean),
        (vec(name(), 0..3), option::of(lists), select(vec![Illegal::Error, Illegal::Ignore]))
            .prop_map(|(values, transitions, illegal)| FieldType::Enum {
                values,
                transitions,
                illegal
            }),
        Just(FieldType::Timestamp),
        Just(FieldType::Datetime),
        option::of(any::<u8>()).prop_map(|version| FieldType::Uuid { version }),
        Just(FieldType::Id),
        name().prop_map(|pattern| FieldType::Code { pattern }),
        (name(), name(), select(vec![PointOf::Field, PointOf::Record]))
            .prop_map(|(lat, lon, of)| FieldType::Point { lat, lon, of }),
        Just(FieldType::Map),
    ]
}

fn field() -> impl Strategy<Value = FieldDeclaration> {
    (field_type(), option::of(any::<bool>()), option::of(any::<bool>())).prop_map(
        |(field_type, generate, required)| FieldDeclaration { field_type, generate, required },
    )
}

fn test() -> impl Strategy<Value = TestDeclaration> {
    let bound = || option::of(scalar());
    let comparison = (option::of(any::<bool>()), bound(), bound(), bound(), bound())
        .prop_map(|(present, gt, gte, lt, lte)| Comparison { present, gt, gte, lt, lte })
        .prop_filter("asks for something", |comparison| *comparison != Comparison::default());
    prop_oneof![
        scalar().prop_map(TestDeclaration::Equals),
        vec(scalar(), 1..3).prop_map(TestDeclaration::OneOf),
        comparison.prop_map(Box::new).prop_map(TestDeclaration::Compare),
    ]
}

fn index() -> impl Strategy<Value = IndexDeclaration> {
    (
        name(),
        option::of(name()),
        option::of(name()),
        btree_map(name(), test(), 0..3),
        option::of(any::<u32>().prop_map(|max| max as usize)),
        option::of(any::<bool>()),
        option::of(any::<bool>()),
    )
        .prop_map(|(key, area, holds, condition, max, claims, sparse)| IndexDeclaration {
            key,
            area,
            holds,
            condition,
            max,
            claims,
            sparse,
        })
}

fn aggregates(is_sum: bool) -> impl Strategy<Value = BTreeMap<String, AggregateDeclaration>> {
    let field = if is_sum { name().prop_map(Some).boxed() } else { Just(None).boxed() };
    let aggregate = (field, vec(name(), 0..3), btree_map(name(), test(), 0..3))
        .prop_map(|(field, group, condition)| AggregateDeclaration { field, group, condition });
    btree_map(name(), aggregate, 0..3)
}

fn collection() -> impl Strategy<Value = CollectionDeclaration> {
    let indexes = || btree_map(name(), index(), 0..3);
    let bound = || option::of(any::<i64>());
    let counter = (bound(), bound()).prop_map(|(min, max)| CounterDeclaration { min, max });
    let counters = btree_map(name(), counter, 0..3);
    let body = btree_map(name(), scalar(), 0..3)
        .prop_map(|members| Value::Object(members.into_iter().collect()));
    (
        name(),
        prop_oneof![Just(String::new()), name()],
        (option::of(access()), option::of(name()), option::of(name())),
        btree_map(name(), field(), 0..4),
        indexes(),
        indexes(),
        indexes(),
        (aggregates(false), aggregates(true)),
        counters,
        option::of(body),
        option::of(history()),
    )
        .prop_map(
            |(
                key,
                area,
                (access, owner, expires_at),
                fields,
                index,
                unique,
                geo,
                (count, sum),
                counters,
                body,
                history,
            )| {
                CollectionDeclaration {
                    key,
                    area,
                    access,
                    owner,
                    expires_at,
                    fields,
                    index,
                    unique,
                    geo,
                    count,
                    sum,
                    counters,
                    body,
                    history,
                }
            },
        )
}

fn access() -> impl Strategy<Value = Access> {
    use Access::{Hybrid, Owned, ReadOnly, Shared};
    prop_oneof![Just(Shared), Just(ReadOnly), Just(Owned), Just(Hybrid)]
}

fn history() -> impl Strategy<Value = HistoryDeclaration> {
    let bound = || option::of(any::<u16>().prop_map(usize::from));
    (bound(), bound()).prop_map(|(versions, days)| HistoryDeclaration { versions, days })
}

fn declaration() -> impl Strategy<Value = SchemaDeclaration> {
    let log = (option::of(1usize..100), option::of(1usize..100))
        .prop_map(|(days, entries)| LogDeclaration { days, entries });
    let keep = option::of(any::<u16>().prop_map(|n| format!("{n} hours")));
    (btree_map(name(), collection(), 0..3), option::of(log), keep).prop_map(
        |(collections, log, keep)| {
            let idempotency = keep.map(|keep| IdempotencyDeclaration { keep });
            SchemaDeclaration { collections, log, idempotency }
        },
    )
}

/// A schema of one of the systems with some indexes left out and some rules turned around: all
/// that a process may declare differently without contradicting the others.
fn variant_of(system: SchemaDeclaration) -> impl Strategy<Value = Schema> {
    vec(any::<Index>(), 0..6).prop_map(move |choices| {
        let mut declaration = system.clone();
        for choice in choices {
            vary(&mut declaration, choice.index(usize::MAX));
        }
        Schema::from_declaration(declaration).unwrap()
    })
}

fn vary(declaration: &mut SchemaDeclaration, choice: usize) {
    let (what, choice) = (choice % 5, choice / 5);
    let names: Vec<String> = declaration.collections.keys().cloned().collect();
    let Some(name) = names.get(choice % names.len().max(1)) else { return };
    let choice = choice / names.len();
    let collection = declaration.collections.get_mut(name).unwrap();
    match what {
        0 => {
            declaration.collections.remove(name);
        }
        1 => drop_one(&mut collection.index, choice),
        2 => drop_one(&mut collection.unique, choice),
        3 => {
            let count = collection.fields.len();
            let field = collection.fields.values_mut().nth(choice % count.max(1));
            let field_type = field.map(|field| &mut field.field_type);
            if let Some(FieldType::Enum { values, transitions, illegal }) = field_type {
                let extra = format!("extra{}", choice % 3);
                if !values.contains(&extra) {
                    values.push(extra);
                }
                (*transitions, *illegal) = (None, Illegal::Error);
            }
        }
        _ => {
            for index in collection.index.values_mut() {
                index.sparse = Some(!index.sparse.unwrap_or(true));
                index.max = index.max.map(|max| max + choice % 3);
            }
        }
    }
}

fn drop_one(indexes: &mut BTreeMap<String, IndexDeclaration>, choice: usize) {
    if let Some(name) = indexes.keys().nth(choice % indexes.len().max(1)).cloned() {
        indexes.remove(&name);
    }
}

/// A schema text with pieces of it cut out, doubled, or put elsewhere.
fn damaged() -> impl Strategy<Value = String> {
    let edit = (any::<Index>(), any::<Index>(), any::<Index>(), 0..4_u8);
    (select(SYSTEMS.to_vec()), vec(edit, 1..5)).prop_map(|(text, edits)| {
        let mut characters: Vec<char> = text.chars().collect();
        for (start, length, target, kind) in edits {
            if characters.is_empty() {
                break;
            }
            let start = start.index(characters.len());
            let end = (start + 1 + length.index(24)).min(characters.len());
            let piece: Vec<char> = match kind {
                0 => characters.drain(start..end).collect(),
                _ => characters[start..end].to_vec(),
            };
            if kind > 0 {
                let target = target.index(characters.len() + 1);
                characters.splice(target..target, piece);
            }
        }
        characters.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn a_declaration_is_read_as_it_was_written(declaration in declaration()) {
        let json = serde_json::to_string(&declaration).unwrap();
        let again: SchemaDeclaration = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&again, &declaration);
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), json);
    }

    #[test]
    fn any_declaration_compiles_or_is_told_why_not(declaration in declaration()) {
        if let Err(error) = Schema::from_declaration(declaration) {
            prop_assert_eq!(error.kind(), ErrorKind::InvalidSchema);
            prop_assert!(!problems(&error).is_empty());
        }
    }

    #[test]
    fn a_damaged_text_compiles_or_is_told_why_not_and_where(text in damaged()) {
        if let Err(error) = Schema::from_toml(&text) {
            prop_assert_eq!(error.kind(), ErrorKind::InvalidSchema);
            let problems = problems(&error);
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| problem.starts_with("line ")));
        }
    }

    #[test]
    fn evolution_reaches_its_end_in_one_step(
        (stored, declared) in select(SYSTEMS.map(|system| compiled(system).declaration()).to_vec())
            .prop_flat_map(|system| (variant_of(system.clone()), variant_of(system)))
    ) {
        let evolution = evolve(&stored, &declared);
        prop_assert!(evolution.changes.iter().all(|change| change.class != Class::Incompatible));
        let merged = Schema::from_declaration(evolution.merged.clone()).unwrap();
        let is_new = |class| matches!(class, Class::Safe | Class::NeedsBuild);
        let rest = evolve(&merged, &declared);
        prop_assert!(!rest.changes.iter().any(|change| is_new(change.class)));
        prop_assert_eq!(rest.merged, merged.declaration());
        let has_news = evolution.changes.iter().any(|change| is_new(change.class));
        prop_assert_eq!(has_news, merged != stored);
        for (name, collection) in &stored.collections {
            for index in collection.indexes.keys() {
                prop_assert!(merged.collections[name].indexes.contains_key(index));
            }
        }
        prop_assert!(evolve(&merged, &merged).changes.is_empty());
    }
}
