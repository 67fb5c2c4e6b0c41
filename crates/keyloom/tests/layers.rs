//! Layers look down only, drivers stay where they are wrapped, and none of their types gets out.
//!
//! The rules are read off the sources as text. Sources are formatted by rustfmt, so that a line's
//! indentation tells what it belongs to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod house;

use std::collections::{BTreeMap, BTreeSet};

use house::{File, files_below, report};

const SOURCE: &str = "crates/keyloom/src";

/// Each layer with its module, from the lowest. A layer sees those before it in this table, and
/// nothing else. Of two modules that fit, the inner one counts.
#[rustfmt::skip]
const LAYERS: &[(&str, &str)] = &[
    ("error",    "error"),
    // Text from outside, read strictly.
    ("json",     "json"),
    ("engine",   "engine"),
    ("key",      "key"),
    // Every key in Keyloom's own area.
    ("own",      "own"),
    // What is declared; it knows no store.
    ("schema",   "schema"),
    ("record",   "record"),
    // What the change log tells, and how long it is kept.
    ("log",      "log"),
    // A space as the bytes of one file.
    ("backup",   "backup"),
    // One open space: its schema, who is asking, and walks over all of it.
    ("space",    "space"),
    // What is kept beside records, a room for each kind.
    ("side",     "side"),
    ("write",    "write"),
    ("query",    "query"),
    ("index",    "index"),
    // What time brings about: sweeps and leases.
    ("due",      "due"),
    // Every kind of key of a schema, written down.
    ("keyspace", "keyspace"),
    ("store",    "store"),
    ("blocking", "blocking"),
    ("typed",    "typed"),
    // The README, for doc-tests only.
    ("readme",   "readme"),
];

/// The names that a layer may see of a higher one, and why there is no other way.
#[rustfmt::skip]
const UPWARD: &[(&str, &str, &str)] = &[
    // `collection::<T: Record>()` is generic over the trait, and the trait names the queries of
    // its type, which are asked of a collection.
    ("store",    "typed", "Record"),
    ("blocking", "typed", "Record"),
];

/// What a layer may see of another, where it may not see all of it.
#[rustfmt::skip]
const NARROW: &[(&str, &str, &[&str])] = &[
    // Keys are bytes to an engine and say nothing of cells and batches.
    ("key", "engine", &[
        "Area", "Cut", "Direction", "KEY_BYTES_MAX", "Part", "Range", "Recipe", "ShowKey",
        "after_prefix", "percent", "successor",
    ]),
    // Records know the limits of a cell and the width of a stamp, not how to reach a store.
    ("record", "engine", &["Cell", "Integers", "ShowKey", "Stamp", "VALUE_BYTES_MAX"]),
    // A reader checks that a record still has the entry that led to it; it never writes.
    ("query", "write", &["stored_keys_of"]),
];

/// Who may use which dependency. All others, tests apart, are refused.
#[rustfmt::skip]
const DRIVERS: &[(&str, &[&str])] = &[
    ("fjall",       &["engine/embedded/fjall/"]),
    ("lsm_tree",    &["engine/embedded/fjall/"]),
    ("quick_cache", &["engine/embedded/cache/large.rs"]),
    ("lz4_flex",    &["engine/embedded/cache/list_cache/list.rs"]),
    ("xxhash_rust", &["engine/embedded/fjall/"]),
    // What a process does without is told to whoever runs it.
    ("tracing",     &["engine/embedded/fjall/trust.rs"]),
    ("jsonschema",  &["schema/body.rs"]),
    // The loader calls the module of that name.
    ("toml",        &["schema/toml.rs", "schema/load.rs"]),
    ("base64",      &["query/cursor.rs"]),
    ("hmac",        &["query/cursor.rs"]),
    ("sha2",        &[
        "backup/reader.rs", "backup/writer.rs",
        "own/parts.rs", "query/cursor.rs", "write/idempotent/request.rs", "index/subject.rs",
    ]),
    ("getrandom",   &["record/random.rs"]),
    ("tokio",       &[
        "engine/", "space/turns.rs", "space/live.rs", "space/owner.rs", "space/pace.rs",
        "space/retry.rs", "space/task.rs", "index/estimate.rs", "write/transaction/patience.rs",
        "query/reader.rs", "due/maintainer.rs", "store/backup.rs", "store/restore.rs", "blocking",
    ]),
];

#[test]
fn layers_look_down_only() {
    let mut faults = Vec::new();
    let exports = exports();
    for source in sources() {
        let Some(from) = layer_of(source.inside()) else {
            faults.push(format!("{}: it belongs to no layer; give it one", source.file.path));
            continue;
        };
        for sight in source.sights() {
            let place = format!("{}:{}", source.file.path, sight.line);
            match target(&sight, &exports) {
                Target::Same => {}
                Target::Unknown => {
                    faults.push(format!("{place}: `{}` is of no layer", sight.path.join("::")));
                }
                Target::Layer(to) if rank(to) > rank(from) => {
                    let name = sight.path.get(1).map_or("", String::as_str);
                    if !UPWARD.contains(&(from, to, name)) {
                        faults.push(format!("{place}: {from} looks up to {to}"));
                    }
                }
                Target::Layer(to) => {
                    let name = sight.path.get(1).map_or("", String::as_str);
                    let narrow = NARROW.iter().find(|(a, b, _)| *a == from && *b == to);
                    if narrow.is_some_and(|(.., names)| !names.contains(&name)) {
                        faults.push(format!("{place}: {from} may not see {name} of {to}"));
                    }
                }
            }
        }
    }
    report("Layers look down only (see LAYERS, UPWARD and NARROW in this test):", faults);
}

#[test]
fn every_permission_is_used() {
    let mut seen: BTreeSet<(&str, &str, String)> = BTreeSet::new();
    let mut layers = BTreeSet::new();
    let exports = exports();
    for source in sources() {
        let Some(from) = layer_of(source.inside()) else { continue };
        layers.insert(from);
        for sight in source.sights() {
            if let (Target::Layer(to), Some(name)) = (target(&sight, &exports), sight.path.get(1)) {
                seen.insert((from, to, name.clone()));
            }
        }
    }
    let faults = NARROW
        .iter()
        .flat_map(|(from, to, names)| names.iter().map(move |name| (*from, *to, *name)))
        .chain(UPWARD.iter().copied())
        .filter(|(from, ..)| layers.contains(from))
        .filter(|(from, to, name)| !seen.contains(&(*from, *to, (*name).to_owned())))
        .map(|(from, to, name)| format!("{from} may see {name} of {to}, and does not"))
        .collect();
    report("These permissions are not needed any more; remove them:", faults);
}

#[test]
fn drivers_stay_where_they_are_wrapped() {
    let mut faults = Vec::new();
    for source in sources() {
        for (number, line) in source.code() {
            for (driver, places) in DRIVERS {
                let allowed = places.iter().any(|place| source.inside().starts_with(place));
                if !allowed && names_crate(line, driver) {
                    let places = places.join(", ");
                    faults.push(format!(
                        "{}:{number}: {driver} is for {places} only",
                        source.file.path
                    ));
                }
            }
        }
    }
    report("A dependency is used in one place, and wrapped there:", faults);
}

#[test]
fn no_type_of_a_driver_is_public() {
    let mut faults = Vec::new();
    for source in sources() {
        let imported: Vec<(&str, String)> = DRIVERS
            .iter()
            .flat_map(|(driver, _)| source.imports_of(driver).into_iter().map(|n| (*driver, n)))
            .collect();
        for (number, signature) in source.public_signatures() {
            let words: BTreeSet<&str> =
                signature.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            for (driver, name) in &imported {
                if words.contains(name.as_str()) {
                    faults.push(format!("{}:{number}: {name} of {driver}", source.file.path));
                }
            }
            for (driver, _) in DRIVERS.iter().filter(|(driver, _)| names_crate(&signature, driver))
            {
                faults.push(format!("{}:{number}: a type of {driver}", source.file.path));
            }
        }
    }
    report("No driver's type appears in a public signature:", faults);
}

#[test]
fn the_root_is_one_export_block() {
    let root = sources().into_iter().find(|source| source.inside() == "lib.rs").unwrap();
    let faults = root
        .code()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with([' ', '}', '#']))
        .filter(|(_, line)| {
            !["mod ", "pub mod ", "pub use ", "extern crate "].iter().any(|w| line.starts_with(w))
        })
        .map(|(number, line)| format!("lib.rs:{number}: {line}"))
        .collect();
    report("lib.rs holds private modules and one export block:", faults);
}

struct Source {
    file: File,
}

/// A path that begins at the root of the crate, such as `schema`, `Live`.
#[derive(Debug)]
struct Sight {
    line: usize,
    path: Vec<String>,
}

enum Target {
    Same,
    Layer(&'static str),
    Unknown,
}

fn sources() -> Vec<Source> {
    let sources: Vec<Source> = files_below(SOURCE)
        .into_iter()
        .filter(|file| file.is_rust())
        .map(|file| Source { file })
        .collect();
    assert!(sources.len() > 50, "the walk over the sources lost its way");
    sources
}

impl Source {
    /// The path within `src`.
    fn inside(&self) -> &str {
        &self.file.path[SOURCE.len() + 1..]
    }

    /// The names of the modules from the root to this file.
    fn module(&self) -> Vec<&str> {
        let path = self.inside().trim_end_matches(".rs");
        let path = path.trim_end_matches("/mod");
        path.split('/').filter(|name| *name != "lib").collect()
    }

    /// The lines that are neither comments nor part of a test module, with their numbers.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test_file = self.inside().split('/').any(|part| part.starts_with("tests"));
        let tests_from = self
            .file
            .lines()
            .find(|(_, line)| *line == "#[cfg(test)]")
            .filter(|(number, _)| {
                // `#[cfg(test)] mod tests;` stands among other declarations.
                self.file.lines().nth(*number).is_some_and(|(_, next)| next.ends_with('{'))
            })
            .map_or(usize::MAX, |(number, _)| number);
        self.file
            .lines()
            .filter(move |(number, _)| !is_test_file && *number < tests_from)
            .map(|(number, line)| (number, line.split("//").next().unwrap_or_default()))
    }

    /// Everything that this file names from the root of the crate.
    fn sights(&self) -> Vec<Sight> {
        let mut sights = Vec::new();
        for (line, statement) in self.statements() {
            for (place, _) in statement.match_indices("crate::") {
                if statement[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    continue;
                }
                let rest = &statement[place + "crate::".len()..];
                sights.extend(expand(rest).into_iter().map(|path| Sight { line, path }));
            }
            for (place, _) in statement.match_indices("super::") {
                if statement[..place].ends_with("::") {
                    continue;
                }
                let rest = statement[place..].trim_start_matches("super::");
                let ups = (statement[place..].len() - rest.len()) / "super::".len();
                let module = self.module();
                let above = &module[..module.len().saturating_sub(ups)];
                sights.extend(expand(rest).into_iter().map(|path| Sight {
                    line,
                    path: above.iter().map(|name| (*name).to_owned()).chain(path).collect(),
                }));
            }
        }
        // What stays within a folder is its own affair.
        let own = self.module().first().copied();
        sights.retain(|sight| sight.path.first().map(String::as_str) != own);
        sights
    }

    /// Lines, with those of one `use` joined.
    fn statements(&self) -> Vec<(usize, String)> {
        let mut statements: Vec<(usize, String)> = Vec::new();
        let mut is_open = false;
        for (number, line) in self.code() {
            match statements.last_mut().filter(|_| is_open) {
                Some((_, statement)) => statement.push_str(line.trim()),
                None => {
                    let begins = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
                    is_open = begins.iter().any(|begin| line.trim_start().starts_with(begin));
                    statements.push((number, line.trim().to_owned()));
                }
            }
            is_open &= !line.contains(';');
        }
        statements
    }

    /// The names that `use` brings in from another crate.
    fn imports_of(&self, driver: &str) -> Vec<String> {
        let begin = format!("use {driver}::");
        self.statements()
            .into_iter()
            .filter_map(|(_, statement)| Some(by_alias(statement.strip_prefix(&begin)?)))
            .flat_map(|rest| expand(&rest))
            .filter_map(|path| path.last().cloned())
            .collect()
    }

    /// What stands between an unrestricted `pub` and the body or the end of its item.
    fn public_signatures(&self) -> Vec<(usize, String)> {
        let mut signatures: Vec<(usize, String)> = Vec::new();
        let mut is_open = false;
        for (number, line) in self.code() {
            if is_open {
                signatures.last_mut().unwrap().1.push_str(line);
            } else if line.trim_start().starts_with("pub ") && !line.contains("pub mod") {
                signatures.push((number, line.to_owned()));
                is_open = true;
            }
            is_open &= !line.trim_end().ends_with(['{', '}', ';', ',']) || line.contains("pub fn");
            is_open &= !line.trim_end().ends_with(['{', ';']);
        }
        for (_, signature) in &mut signatures {
            *signature = without_private_fields(signature);
        }
        signatures
    }
}

/// `pub struct Runtime(Tokio, pub u8);` without what only its own module can reach.
fn without_private_fields(signature: &str) -> String {
    match signature.split_once('(') {
        Some((head, fields)) if head.trim_start().starts_with("pub struct ") => fields
            .split(',')
            .filter(|field| field.trim_start().starts_with("pub "))
            .fold(head.to_owned(), |shown, field| shown + " " + field),
        _ => signature.to_owned(),
    }
}

/// The paths that `a::{b, c::D}` stands for. Stops where the path does.
fn expand(text: &str) -> Vec<Vec<String>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        let Some(group) = rest.strip_prefix('{') else { return vec![Vec::new()] };
        return members(group).into_iter().flat_map(expand).collect();
    }
    let tails = rest.strip_prefix("::").map_or_else(|| vec![Vec::new()], expand);
    tails.into_iter().map(|tail| [vec![name.to_owned()], tail].concat()).collect()
}

/// `Runtime as Tokio` becomes `Tokio`: the name by which the file knows it.
fn by_alias(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(place) = text.find(" as ") {
        let start = text[..place].rfind(|c: char| !c.is_alphanumeric() && c != '_');
        text.replace_range(start.map_or(0, |start| start + 1)..place + " as ".len(), "");
    }
    text
}

/// The members of a group in braces whose opening brace is gone already.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (place, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' | ',' if depth == 0 => {
                members.push(group[start..place].trim());
                start = place + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

fn layer_of(inside: &str) -> Option<&'static str> {
    if inside == "lib.rs" {
        return Some("root");
    }
    LAYERS
        .iter()
        .filter(|(_, module)| {
            inside.strip_prefix(module).is_some_and(|rest| rest.starts_with(['.', '/']))
        })
        .max_by_key(|(_, module)| module.len())
        .map(|(layer, _)| *layer)
}

fn rank(layer: &str) -> usize {
    LAYERS.iter().position(|(found, _)| *found == layer).unwrap_or(LAYERS.len())
}

/// The layer that a path from the root leads to.
fn target(sight: &Sight, exports: &BTreeMap<String, String>) -> Target {
    let Some(first) = sight.path.first() else { return Target::Same };
    // `crate::Error` is `crate::error::Error`.
    if let Some(module) = exports.get(first) {
        let path = std::iter::once(module).chain(&sight.path).cloned().collect();
        return target(&Sight { path, ..*sight }, exports);
    }
    LAYERS
        .iter()
        .find(|(_, module)| module == first)
        .map_or(Target::Unknown, |(layer, _)| Target::Layer(layer))
}

/// The names that the root exports, each with its module.
fn exports() -> BTreeMap<String, String> {
    let root = sources().into_iter().find(|source| source.inside() == "lib.rs").unwrap();
    root.statements()
        .into_iter()
        .filter_map(|(_, statement)| Some(expand(statement.strip_prefix("pub use ")?)))
        .flatten()
        // The derive macros have the names of their traits.
        .filter(|path| path.len() == 2 && path[0] != "keyloom_derive")
        .map(|path| (path[1].clone(), path[0].clone()))
        .collect()
}

/// Whether the line names the crate: `toml::`, or `use toml;`.
fn names_crate(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        let is_start = before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | ':' | '"'));
        let is_crate = line[place + name.len()..].starts_with("::");
        is_start && is_crate
    })
}

#[test]
fn groups_are_expanded() {
    let paths = |text| -> Vec<String> { expand(text).iter().map(|path| path.join("::")).collect() };
    assert_eq!(paths("engine::percent;"), ["engine::percent"]);
    assert_eq!(
        paths("schema::{Live, model::{A, B}, evolve};"),
        ["schema::Live", "schema::model::A", "schema::model::B", "schema::evolve"]
    );
    assert_eq!(paths("write::entry_keys_of(x)"), ["write::entry_keys_of"]);
}
