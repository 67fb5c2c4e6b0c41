//! Compiles the counters of a collection, and checks them against its other declarations.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::indexes::Found;
use super::under;
use crate::engine::COUNTER_NAME_BYTES_MAX;
use crate::key::{Path, Step};
use crate::schema::counters::{Bounds, Counters, Meeting, meet};
use crate::schema::declaration::CounterDeclaration;
use crate::schema::model::{Field, FieldKind};
use crate::schema::problem::{Problems, Trail};

/// Compiles all counters.
pub(super) fn compile(
    declarations: &BTreeMap<String, CounterDeclaration>,
    trail: &Trail,
    fields: &Fields,
    indexes: &[Found],
    problems: &mut Problems,
) -> Counters {
    let mut counters = Counters::default();
    let mut sound: Vec<Path> = Vec::new();
    for (text, declaration) in declarations {
        let trail = under(trail, text);
        let path = match path(text) {
            Ok(path) => path,
            Err(reason) => {
                problems.add_to_name(trail, reason);
                continue;
            }
        };
        check_bounds(declaration, &trail, problems);
        let elsewhere = in_fields(&path, fields).or_else(|| in_conditions(&path, indexes));
        if let Some(reason) = elsewhere.or_else(|| among(&path, &sound)) {
            problems.add_to_name(trail, reason);
            continue;
        }
        let CounterDeclaration { min, max } = *declaration;
        counters.insert(&path, Bounds { min, max });
        sound.push(path);
    }
    counters
}

fn path(text: &str) -> Result<Path, String> {
    let path = Path::parse(text)?;
    let stars = path.0.iter().position(|step| !matches!(step, Step::Name(_)));
    match stars {
        Some(place) if path.0[place] == Step::EachKey => {
            Err("the names of a map are no counters".to_owned())
        }
        Some(place) if place + 1 < path.0.len() => {
            Err("a family of counters has its `*` at the end, as in `stats.*`".to_owned())
        }
        _ if text.len() > COUNTER_NAME_BYTES_MAX => {
            Err(format!("a counter's name has at most {COUNTER_NAME_BYTES_MAX} bytes"))
        }
        _ => Ok(path),
    }
}

fn check_bounds(declaration: &CounterDeclaration, trail: &Trail, problems: &mut Problems) {
    let CounterDeclaration { min, max } = *declaration;
    if min.is_some_and(|min| min > 0) {
        problems.add(under(trail, "min"), "a counter starts at zero, which is below this");
    }
    if max.is_some_and(|max| max < 0) {
        problems.add(under(trail, "max"), "a counter starts at zero, which is above this");
    }
}

/// Why a counter clashes with the declared fields.
fn in_fields(counter: &Path, fields: &Fields) -> Option<String> {
    fields.compiled.values().find_map(|field| {
        let members = members(field);
        let met = members.iter().find_map(|path| meet(&counter.0, &path.0))?;
        let path = &field.path;
        Some(match met {
            Meeting::Same => format!(
                "a counter cannot be a declared field, nor part of a key or an index, as `{path}` is"
            ),
            Meeting::Below => format!("leads into `{path}`, which is declared as a field"),
            Meeting::Above => format!("the field `{path}` would lead into a counter"),
        })
    })
}

/// The paths of the values of a field.
fn members(field: &Field) -> Vec<Path> {
    match &field.kind {
        FieldKind::RecordPoint { lat, lon } => {
            [lat, lon].map(|name| Path(vec![Step::Name(name.clone())])).to_vec()
        }
        FieldKind::Key(_) | FieldKind::Map => vec![field.path.clone()],
    }
}

/// Why a counter clashes with the condition of an index.
fn in_conditions(counter: &Path, indexes: &[Found]) -> Option<String> {
    indexes.iter().find_map(|found| {
        let condition = found.index.condition.as_ref()?;
        let (path, _) =
            condition.tests.iter().find(|(path, _)| meet(&counter.0, &path.0).is_some())?;
        let index = &found.index.name;
        Some(format!("the index `{index}` asks for `{path}`, and indexes do not see counters"))
    })
}

/// Why a counter clashes with the other counters.
fn among(counter: &Path, others: &[Path]) -> Option<String> {
    others.iter().find_map(|other| match meet(&counter.0, &other.0)? {
        // A counter with an exact name takes precedence over the family.
        Meeting::Same => None,
        Meeting::Below => Some(format!("leads into `{other}`, which is a counter itself")),
        Meeting::Above => Some(format!("the counter `{other}` would lead into this one")),
    })
}
