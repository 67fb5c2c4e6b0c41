//! Compiles and checks the declared fields of a collection.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::under;
use crate::key::{CodePattern, Kind, Path, Step};
use crate::schema::declaration::{FieldDeclaration, FieldType, Illegal, PointOf};
use crate::schema::model::{Field, FieldKind};
use crate::schema::problem::{Problems, Trail};
use crate::schema::table::did_you_mean;
use crate::schema::transitions::Transitions;

/// The fields that could be compiled, and those with problems.
pub(super) struct Fields {
    pub(super) compiled: BTreeMap<Path, Field>,
    /// Declared fields with problems that were reported already.
    pub(super) broken: BTreeSet<Path>,
}

impl Fields {
    /// Marks the fields of the record's key as required: no record can lack them.
    pub(super) fn require<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        for path in paths {
            if let Some(field) = self.compiled.get_mut(path) {
                field.required = true;
            }
        }
    }

    /// `; did you mean …?` for a path that is not declared.
    pub(super) fn hint(&self, path: &Path) -> String {
        let known: Vec<String> = self.compiled.keys().map(Path::to_string).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        did_you_mean(&path.to_string(), &known)
    }
}

/// Compiles all fields.
pub(super) fn compile(
    declarations: &BTreeMap<String, FieldDeclaration>,
    trail: &Trail,
    problems: &mut Problems,
) -> Fields {
    let mut fields = Fields { compiled: BTreeMap::new(), broken: broken(trail, problems) };
    for (text, declaration) in declarations {
        let trail = under(trail, text);
        let path = match Path::parse(text) {
            Ok(path) => path,
            Err(reason) => {
                problems.add_to_name(trail, reason);
                continue;
            }
        };
        match field(&path, declaration, &trail, problems) {
            Some(field) if !problems.touch(&trail) => {
                fields.compiled.insert(path, field);
            }
            _ => {
                fields.broken.insert(path);
            }
        }
    }
    for path in fields.compiled.keys() {
        check_surroundings(path, &fields, &under(trail, &path.to_string()), problems);
    }
    add_map_names(&mut fields);
    fields
}

/// The fields that could not be read.
fn broken(trail: &Trail, problems: &Problems) -> BTreeSet<Path> {
    problems.names_under(trail).filter_map(|text| Path::parse(text).ok()).collect()
}

fn field(
    path: &Path,
    declaration: &FieldDeclaration,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<Field> {
    let kind = kind(path, &declaration.field_type, trail, problems);
    check_flags(path, declaration, trail, problems);
    let transitions = transitions(&declaration.field_type, trail, problems);
    if transitions.is_some() && path.star().is_some() {
        problems.add(under(trail, "transitions"), "a path with `*` cannot have transitions");
    }
    Some(Field {
        path: path.clone(),
        kind: kind?,
        generate: declaration.generate == Some(true),
        required: declaration.required == Some(true),
        transitions,
    })
}

impl FieldType {
    /// Whether a value is of this type; the error is a sentence that says what is. For a type that
    /// no schema can have, every value is wrong.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let (trail, mut problems) = (Trail::default(), Problems::default());
        match kind(&Path(Vec::new()), self, &trail, &mut problems) {
            Some(FieldKind::Key(kind)) => kind.check(value),
            Some(FieldKind::Map) if value.is_object() => Ok(()),
            Some(FieldKind::Map) => Err("a map is an object".to_owned()),
            Some(FieldKind::RecordPoint { .. }) => {
                Err("this place is made of members of the record".to_owned())
            }
            None => Err("the type itself has a mistake".to_owned()),
        }
    }
}

fn kind(
    path: &Path,
    field_type: &FieldType,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<FieldKind> {
    let kind = match field_type {
        FieldType::Text => Kind::Text,
        FieldType::Integer { digits } => {
            if !(1..=19).contains(digits) {
                problems.add(under(trail, "digits"), "an integer has 1 to 19 digits");
                return None;
            }
            Kind::Integer { digits: *digits }
        }
        FieldType::Float => Kind::Float,
        FieldType::Boolean => Kind::Boolean,
        FieldType::Enum { values, .. } => {
            check_values(values, &under(trail, "values"), problems)?;
            Kind::Enum { values: values.clone() }
        }
        FieldType::Timestamp => Kind::Timestamp,
        FieldType::Datetime => Kind::DateTime,
        FieldType::Uuid { version } => {
            if version.is_some_and(|version| !(1..=8).contains(&version)) {
                problems.add(under(trail, "version"), "the version of a UUID is 1 to 8");
                return None;
            }
            Kind::Uuid { version: *version }
        }
        FieldType::Id => Kind::Id,
        FieldType::Code { pattern } => Kind::Code(code(pattern, trail, problems)?),
        FieldType::Point { lat, lon, of } => {
            return point(path, lat, lon, *of, trail, problems);
        }
        FieldType::Map => return Some(FieldKind::Map),
    };
    Some(FieldKind::Key(kind))
}

fn check_values(values: &[String], trail: &Trail, problems: &mut Problems) -> Option<()> {
    let mut is_sound = true;
    let mut refuse = |message: String| {
        problems.add(trail.clone(), message);
        is_sound = false;
    };
    if values.is_empty() {
        refuse("an enum has at least one value".to_owned());
    }
    if values.iter().any(String::is_empty) {
        refuse("a value of an enum has at least one character".to_owned());
    }
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&String> = values.iter().filter(|value| !seen.insert(*value)).collect();
    for value in twice.into_iter().filter(|value| !value.is_empty()) {
        refuse(format!("the value `{value}` stands twice"));
    }
    is_sound.then_some(())
}

fn code(pattern: &str, trail: &Trail, problems: &mut Problems) -> Option<CodePattern> {
    if !pattern.contains('*') {
        problems.add(
            under(trail, "pattern"),
            "the pattern of a code has at least one `*`, which stands for one character",
        );
        return None;
    }
    Some(CodePattern(pattern.into()))
}

fn point(
    path: &Path,
    lat: &str,
    lon: &str,
    of: PointOf,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<FieldKind> {
    if lat == lon || lat.is_empty() || lon.is_empty() {
        problems.add(trail.clone(), "`lat` and `lon` name two different members");
        return None;
    }
    let (lat, lon) = (lat.to_owned(), lon.to_owned());
    match of {
        PointOf::Field => Some(FieldKind::Key(Kind::Point { lat, lon })),
        PointOf::Record if path.0.len() == 1 => Some(FieldKind::RecordPoint { lat, lon }),
        PointOf::Record => {
            problems.add(
                under(trail, "of"),
                "a point of the record itself has a plain name, without dots and `*`",
            );
            None
        }
    }
}

fn check_flags(
    path: &Path,
    declaration: &FieldDeclaration,
    trail: &Trail,
    problems: &mut Problems,
) {
    let has_star = path.star().is_some();
    if declaration.required == Some(true) && has_star {
        problems.add(under(trail, "required"), "a path with `*` cannot be required");
    }
    if declaration.generate != Some(true) {
        return;
    }
    let trail = under(trail, "generate");
    match declaration.field_type {
        _ if has_star => problems.add(trail, "a path with `*` cannot be generated"),
        FieldType::Uuid { version: Some(version) } if version != 4 => {
            problems.add(trail, "only UUIDs of version 4 can be generated");
        }
        FieldType::Id | FieldType::Uuid { .. } | FieldType::Code { .. } | FieldType::Timestamp => {}
        _ => problems.add(
            trail,
            "only a field of type id, uuid, code or timestamp (the present time) can be generated",
        ),
    }
}

fn transitions(
    field_type: &FieldType,
    trail: &Trail,
    problems: &mut Problems,
) -> Option<Transitions> {
    let FieldType::Enum { values, transitions, illegal } = field_type else { return None };
    let Some(allowed) = transitions else {
        if *illegal == Illegal::Ignore {
            problems.add(
                under(trail, "illegal"),
                "says what becomes of other transitions, but there are no `transitions`",
            );
        }
        return None;
    };
    let trail = under(trail, "transitions");
    let known: Vec<&str> = values.iter().map(String::as_str).collect();
    for (from, targets) in allowed {
        let undeclared = |value: &String| {
            let hint = did_you_mean(value, &known);
            format!("`{value}` is not one of the declared values{hint}")
        };
        if !values.contains(from) {
            problems.add_to_name(under(&trail, from), undeclared(from));
        }
        for target in targets.iter().filter(|target| !values.contains(target)) {
            problems.add(under(&trail, from), undeclared(target));
        }
    }
    Some(Transitions { allowed: allowed.clone(), ignore: *illegal == Illegal::Ignore })
}

/// Checks that a path leads only through objects, arrays and maps. The names in a map are data.
fn check_surroundings(path: &Path, fields: &Fields, trail: &Trail, problems: &mut Problems) {
    for length in 1..path.0.len() {
        let above = Path(path.0[..length].to_vec());
        let Some(field) = fields.compiled.get(&above) else { continue };
        match (&field.kind, &path.0[length]) {
            (FieldKind::Map, Step::Each | Step::EachKey) => {}
            (FieldKind::Map, Step::Name(_)) => problems.add_to_name(
                trail.clone(),
                format!("the names of the map `{above}` are data; declare `{above}.*`"),
            ),
            _ => problems.add_to_name(
                trail.clone(),
                format!("leads into `{above}`, which is declared as a single value"),
            ),
        }
    }
    let (Some(Step::EachKey), Some(map)) = (path.0.last(), path.star()) else { return };
    if fields.broken.contains(&map) {
        return;
    }
    if !matches!(fields.compiled.get(&map), Some(Field { kind: FieldKind::Map, .. })) {
        problems.add_to_name(
            trail.clone(),
            format!("`{map}` must be declared with type map, so that its names are data"),
        );
    }
    let is_string = matches!(
        fields.compiled.get(path).map(|field| &field.kind),
        Some(FieldKind::Key(
            Kind::Text
                | Kind::Enum { .. }
                | Kind::DateTime
                | Kind::Uuid { .. }
                | Kind::Id
                | Kind::Code(_)
        ))
    );
    if !is_string {
        problems.add(under(trail, "type"), "the names of a map are strings");
    }
}

/// Declares the names of maps as text, unless declared otherwise.
fn add_map_names(fields: &mut Fields) {
    let maps: Vec<Path> = fields
        .compiled
        .values()
        .filter(|field| field.kind == FieldKind::Map && field.path.star().is_none())
        .map(|field| field.path.clone())
        .collect();
    for map in maps {
        let mut path = map;
        path.0.push(Step::EachKey);
        if !fields.broken.contains(&path) {
            fields.compiled.entry(path.clone()).or_insert(Field {
                path,
                kind: FieldKind::Key(Kind::Text),
                generate: false,
                required: false,
                transitions: None,
            });
        }
    }
}
