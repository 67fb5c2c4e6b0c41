//! Compiles and checks the counts and sums of a collection.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fields::Fields;
use super::{INDEXES_RESERVED, check_name, conditions, under};
use crate::key::{Kind, Path, Pattern, Template};
use crate::schema::aggregate::Aggregate;
use crate::schema::counters::{Counters, Meeting};
use crate::schema::declaration::{AggregateDeclaration, CollectionDeclaration};
use crate::schema::model::{Field, FieldKind};
use crate::schema::problem::{Problems, ShowTrail, Trail};

/// Compiles the aggregates of both kinds. Their states are stored beside those of indexes, so they
/// share one set of names with indexes.
pub(super) fn compile(
    collection: &str,
    declaration: &CollectionDeclaration,
    trail: &Trail,
    fields: &Fields,
    counters: &Counters,
    problems: &mut Problems,
) -> BTreeMap<String, Arc<Aggregate>> {
    let mut first_of: BTreeMap<&str, Trail> = BTreeMap::new();
    for (section, names) in
        [("index", &declaration.index), ("unique", &declaration.unique), ("geo", &declaration.geo)]
    {
        for name in names.keys() {
            first_of.insert(name, under(&under(trail, section), name));
        }
    }
    let mut compiled = BTreeMap::new();
    for (section, declarations) in [("count", &declaration.count), ("sum", &declaration.sum)] {
        for (name, declaration) in declarations {
            let trail = under(&under(trail, section), name);
            check_name("an aggregate", name, &INDEXES_RESERVED, &trail, problems);
            if let Some(first) = first_of.get(name.as_str()) {
                let first = ShowTrail(first);
                problems.add_to_name(trail.clone(), format!("has the same name as {first}"));
            } else {
                first_of.insert(name, trail.clone());
            }
            check_section(section, declaration, &trail, problems);
            if asks_for_counters(declaration, &trail, counters, problems) {
                continue;
            }
            if let Some(found) = aggregate(collection, name, declaration, &trail, fields, problems)
            {
                compiled.insert(name.clone(), Arc::new(found));
            }
        }
    }
    compiled
}

/// Checks that a declaration fits its section. Only a program can get this wrong; a file cannot.
fn check_section(
    section: &str,
    declaration: &AggregateDeclaration,
    trail: &Trail,
    problems: &mut Problems,
) {
    match (section, &declaration.field) {
        ("count", Some(_)) => problems.add_to_name(
            trail.clone(),
            "a count has no `field`; declare this under `sum` instead of `count`",
        ),
        ("sum", None) if !problems.touch_exactly(trail) => {
            problems.add_to_name(trail.clone(), "lacks `field`");
        }
        _ => {}
    }
}

/// Whether an aggregate uses counters. Counters lie beside the record, so no write of the record
/// could keep the aggregate up to date.
fn asks_for_counters(
    declaration: &AggregateDeclaration,
    trail: &Trail,
    counters: &Counters,
    problems: &mut Problems,
) -> bool {
    let tests = under(trail, "where");
    let group = declaration.group.iter().map(|text| (text, under(trail, "group")));
    let field = declaration.field.iter().map(|text| (text, under(trail, "field")));
    let tested = declaration.condition.keys().map(|text| (text, under(&tests, text)));
    let mut asks = false;
    for (text, trail) in group.chain(field).chain(tested) {
        let met = Path::parse(text).ok().and_then(|path| counters.meeting(&path));
        let how = match met {
            None => continue,
            Some(Meeting::Same) => "is a counter",
            Some(Meeting::Below) => "leads into a counter",
            Some(Meeting::Above) => "holds counters",
        };
        problems.add(trail, format!("`{text}` {how}, and counts and sums do not see counters"));
        asks = true;
    }
    asks
}

fn aggregate(
    collection: &str,
    name: &str,
    declaration: &AggregateDeclaration,
    trail: &Trail,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<Aggregate> {
    let condition =
        conditions::compile(&declaration.condition, &under(trail, "where"), fields, problems);
    // Everything is checked before a problem ends the function.
    let sum_of = declaration.field.as_ref();
    let summed = sum_of.map(|text| summed(text, &under(trail, "field"), fields, problems));
    let group_trail = under(trail, "group");
    let group: Vec<Option<Path>> = declaration
        .group
        .iter()
        .map(|text| grouped(text, &group_trail, fields, problems))
        .collect();
    let group = group.into_iter().collect::<Option<Vec<Path>>>()?;
    let summed = match summed {
        Some(summed) => Some(summed?),
        None => None,
    };
    if let Some(path) = repeated(&group) {
        problems.add(group_trail, format!("the field `{path}` stands twice"));
        return None;
    }
    let template = template(&group, &group_trail, fields, problems)?;
    let (collection, name) = (collection.to_owned(), name.to_owned());
    Some(Aggregate { collection, name, summed, group, template, condition })
}

fn repeated(group: &[Path]) -> Option<&Path> {
    group
        .iter()
        .enumerate()
        .find(|(place, path)| group[..*place].contains(path))
        .map(|(_, path)| path)
}

/// A declared field with a single value.
fn field<'f>(
    text: &str,
    trail: &Trail,
    fields: &'f Fields,
    problems: &mut Problems,
) -> Option<(Path, &'f Field)> {
    let path = match Path::parse(text) {
        Ok(path) => path,
        Err(reason) => {
            problems.add(trail.clone(), reason);
            return None;
        }
    };
    if path.star().is_some() {
        let message = format!("`{path}` has many values, but a record is in one group");
        problems.add(trail.clone(), message);
        return None;
    }
    let found = fields.compiled.get(&path);
    if found.is_none() && !fields.broken.contains(&path) {
        let hint = fields.hint(&path);
        problems.add(trail.clone(), format!("`{path}` is not a declared field{hint}"));
    }
    found.map(|field| (path, field))
}

fn summed(text: &str, trail: &Trail, fields: &Fields, problems: &mut Problems) -> Option<Path> {
    let (path, field) = field(text, trail, fields, problems)?;
    if !matches!(field.kind, FieldKind::Key(Kind::Integer { .. })) {
        let message = format!("only integers are summed; declare `{path}` with type integer");
        problems.add(trail.clone(), message);
        return None;
    }
    Some(path)
}

fn grouped(text: &str, trail: &Trail, fields: &Fields, problems: &mut Problems) -> Option<Path> {
    let (path, field) = field(text, trail, fields, problems)?;
    match &field.kind {
        FieldKind::Map => {
            problems.add(trail.clone(), format!("`{path}` is a map, which has many values"));
            None
        }
        FieldKind::RecordPoint { .. } | FieldKind::Key(Kind::Point { .. }) => {
            let message = format!("`{path}` is a place; no two records would share a group");
            problems.add(trail.clone(), message);
            None
        }
        FieldKind::Key(_) => Some(path),
    }
}

/// The template of a group's bytes. Enums are written as texts with any value, since their values
/// are checked with the record.
fn template(
    group: &[Path],
    trail: &Trail,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<Template> {
    let kind = |path: &Path| match fields.compiled.get(path).and_then(Field::key_kind) {
        Some(Kind::Enum { .. }) => Some(Kind::Text),
        kind => kind,
    };
    let segment = |path: &Path| match kind(path) {
        Some(Kind::Text) => format!("{{{path} sorted}}:"),
        _ => format!("{{{path}}}:"),
    };
    let source = format!(":{}", group.iter().map(segment).collect::<String>());
    let typed = Pattern::parse(&source)
        .map_err(|reason| vec![reason])
        .and_then(|pattern| Template::new(&pattern, kind));
    match typed {
        Ok(template) => Some(template),
        Err(reasons) => {
            for reason in reasons {
                problems.add(trail.clone(), reason);
            }
            None
        }
    }
}
