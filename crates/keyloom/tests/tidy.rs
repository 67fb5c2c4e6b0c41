//! The house rules that a machine can hold. Each failure says what to do instead.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod house;

use std::collections::{BTreeMap, BTreeSet};

use house::{File, files_below, report, root};

const LINES_MAX: usize = 800;
const LINES_MEDIAN_MAX: usize = 300;

/// Where a call is banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum In {
    /// Every Rust file.
    Rust,
    /// What the library's users run: `src` of the crates, its test modules apart.
    Library,
    /// The library without its engines.
    AboveEngines,
    /// Test files and test modules.
    Tests,
    /// Every page of documentation.
    Docs,
    /// Every file.
    Everything,
}

struct Ban {
    text: &'static str,
    place: In,
    /// What to do instead.
    instead: &'static str,
    /// The files that may, each with its reason.
    except: &'static [(&'static str, &'static str)],
}

const fn ban(text: &'static str, place: In, instead: &'static str) -> Ban {
    Ban { text, place, instead, except: &[] }
}

#[rustfmt::skip]
const BANS: &[Ban] = &[
    ban("todo!(", In::Rust, "write it, or return an error that says that it does not exist yet"),
    ban("unimplemented!(", In::Rust, "write it, or return an error that says that it does not exist yet"),
    ban("dbg!(", In::Rust, "assert what you looked for"),
    ban("TODO", In::Everything, "do it, or open an issue"),
    ban("FIXME", In::Everything, "do it, or open an issue"),
    ban("#[ignore]", In::Rust, "every test runs; a longer one takes its count from KEYLOOM_LONG"),
    ban("println!(", In::Library, "return it; a library does not write to the terminal"),
    ban("process::exit", In::Library, "return an error"),
    Ban {
        text: "thread::sleep(",
        place: In::Library,
        instead: "wait for what must happen",
        except: &[(
            "crates/keyloom/src/engine/embedded/fjall/database.rs",
            "fjall gives no signal when it has flushed a memtable",
        )],
    },
    Ban {
        text: "sleep(",
        place: In::Tests,
        instead: "wait for the event itself: a channel, a barrier, the sync gate, a paused clock",
        except: &[(
            "crates/keyloom/tests/embedded_crash.rs",
            "the random moment at which a process is killed is what the test is about",
        )],
    },
    Ban {
        text: "SystemTime::now(",
        place: In::Library,
        instead: "`now_ms`, so that there is one clock",
        except: &[
            ("crates/keyloom/src/record/version.rs", "it is `now_ms`"),
            ("crates/keyloom/src/typed/values/timestamp.rs", "the user's clock: `Timestamp::now`"),
        ],
    },
    Ban {
        text: "engine.commit(",
        place: In::AboveEngines,
        instead: "`Live::commit`, so that the change log misses nothing",
        except: &[("crates/keyloom/src/space/live.rs", "it is `Live::commit`")],
    },
    Ban {
        text: "getrandom::",
        place: In::Library,
        instead: "`random_bytes`, which fetches blocks",
        except: &[
            ("crates/keyloom/src/record/random.rs", "it is `random_bytes`"),
            ("crates/keyloom-server/src/auth/token.rs", "tokens and sessions are secrets of the server"),
        ],
    },
    ban("/home/", In::Everything, "a path relative to the repository; this one is of one machine"),
    ban("/root/", In::Everything, "a path relative to the repository; this one is of one machine"),
    ban("/Users/", In::Everything, "a path relative to the repository; this one is of one machine"),
    ban("/work/", In::Everything, "a path relative to the repository; this one is of one machine"),
    ban("/tmp/", In::Everything, "`tempfile`, which also removes it"),
    ban("n't ", In::Docs, "the two words in full"),
    ban("it's ", In::Docs, "the two words in full"),
    ban("\t", In::Docs, "spaces"),
];

#[test]
fn nothing_banned_is_used() {
    let mut faults = Vec::new();
    for file in ours() {
        let tests_from = tests_from(&file);
        for (number, line) in file.lines() {
            let is_test = tests_from.is_some_and(|from| number >= from);
            for ban in BANS.iter().filter(|ban| ban.place.covers(&file, is_test)) {
                let excepted = ban.except.iter().any(|(path, _)| *path == file.path);
                if !excepted && line.contains(ban.text) {
                    let Ban { text, instead, .. } = ban;
                    faults.push(format!("{}:{number}: {text:?}; instead: {instead}", file.path));
                }
            }
        }
    }
    report("These are banned, with what to do instead:", faults);
}

#[test]
fn every_exception_is_needed() {
    let files: BTreeMap<String, String> =
        ours().into_iter().map(|file| (file.path, file.text)).collect();
    let faults = BANS
        .iter()
        .flat_map(|ban| ban.except.iter().map(move |(path, _)| (ban.text, *path)))
        .filter(|(text, path)| !files.get(*path).is_some_and(|content| content.contains(text)))
        .map(|(text, path)| format!("{path} may use {text:?}, and does not"))
        .collect();
    report("An exception without a use hides the next mistake; remove it:", faults);
}

impl In {
    fn covers(self, file: &File, is_test: bool) -> bool {
        match self {
            In::Everything => true,
            In::Docs => is_page(file),
            In::Rust => file.is_rust(),
            In::Tests => file.is_rust() && is_test,
            In::Library => file.is_rust() && is_library(&file.path) && !is_test,
            In::AboveEngines => {
                In::Library.covers(file, is_test) && !file.path.contains("/src/engine/")
            }
        }
    }
}

/// Every file but this one, which names what is banned, and those that tools write.
fn ours() -> Vec<File> {
    let mut files = files_below("");
    files
        .retain(|file| !file.path.ends_with("Cargo.lock") && !file.path.ends_with("tests/tidy.rs"));
    assert!(files.len() > 100, "the walk over the repository lost its way");
    files
}

/// Whether it is a page of documentation.
fn is_page(file: &File) -> bool {
    file.path.ends_with(".md")
}

fn is_library(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("main.rs")
}

/// The first line that is a test: all of a test file, and the test module at a file's end.
fn tests_from(file: &File) -> Option<usize> {
    if file.path.contains("/tests/") {
        return Some(1);
    }
    file.lines().find(|(_, line)| line.trim() == "#[cfg(test)]").map(|(number, _)| number)
}

#[test]
fn every_allowed_lint_has_a_reason() {
    let mut faults = Vec::new();
    // The attributes of generated code are read by nobody.
    let is_read = |file: &&File| file.is_rust() && !file.path.starts_with("crates/keyloom-derive/");
    for file in ours().iter().filter(is_read) {
        for (place, _) in file.text.match_indices("[allow(") {
            let attribute = &file.text[place..];
            let attribute = &attribute[..attribute.find(")]").unwrap_or(attribute.len())];
            if !attribute.contains("reason =") {
                let number = file.text[..place].lines().count();
                faults.push(format!("{}:{number}", file.path));
            }
        }
    }
    report("A lint is allowed with `reason = \"…\"` only:", faults);
}

#[test]
fn files_have_one_subject() {
    let lengths: Vec<(String, usize)> = ours()
        .into_iter()
        .filter(File::is_rust)
        .map(|file| (file.path, file.text.lines().count()))
        .collect();
    let faults = lengths
        .iter()
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path} has {lines} lines"))
        .collect();
    report("A file over 800 lines has several subjects; split it by them:", faults);
    let mut sources: Vec<usize> =
        lengths.iter().filter(|(path, _)| is_library(path)).map(|(_, lines)| *lines).collect();
    sources.sort_unstable();
    let median = sources[sources.len() / 2];
    assert!(median < LINES_MEDIAN_MAX, "half of all source files have over {median} lines");
}

#[test]
fn every_rust_file_is_part_of_a_target() {
    let files: BTreeMap<String, String> = files_below("")
        .into_iter()
        .filter(|file| file.is_rust() || file.path.ends_with("Cargo.toml"))
        .map(|file| (file.path, file.text))
        .collect();
    let packages: Vec<&str> =
        files.keys().filter_map(|path| path.strip_suffix("Cargo.toml")).collect();
    let mut reached = BTreeSet::new();
    for path in files.keys().filter(|path| is_target_root(path, &packages, &files)) {
        reach(path, &packages, &files, &mut reached);
    }
    let faults = files
        .keys()
        .filter(|path| path.ends_with(".rs") && !reached.contains(*path))
        .cloned()
        .collect();
    report("No target reaches these files; declare them with `mod`, or remove them:", faults);
}

/// Whether cargo compiles the file by itself: by its place, or because Cargo.toml names it.
fn is_target_root(path: &str, packages: &[&str], files: &BTreeMap<String, String>) -> bool {
    let package = package_of(path, packages);
    let inside = &path[package.len()..];
    let by_place = matches!(inside, "src/lib.rs" | "src/main.rs" | "build.rs")
        || ["src/bin/", "tests/", "examples/", "benches/"]
            .iter()
            .filter_map(|folder| inside.strip_prefix(folder))
            .any(|name| !name.contains('/') || name.split('/').skip(1).eq(["main.rs"]));
    let manifest = &files[&format!("{package}Cargo.toml")];
    inside.ends_with(".rs") && (by_place || manifest.contains(&format!("path = \"{inside}\"")))
}

/// The innermost package that the file lies in.
fn package_of<'p>(path: &str, packages: &[&'p str]) -> &'p str {
    packages.iter().filter(|package| path.starts_with(**package)).max_by_key(|p| p.len()).unwrap()
}

/// Follows `mod x;` and quoted paths such as those of compile-fail tests.
fn reach(
    path: &str,
    packages: &[&str],
    files: &BTreeMap<String, String>,
    reached: &mut BTreeSet<String>,
) {
    let Some(text) = files.get(path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let (folder, name) = path.rsplit_once('/').unwrap();
    let package = package_of(path, packages);
    let is_root = name == "mod.rs" || is_target_root(path, packages, files);
    let below = if is_root { folder.to_owned() } else { path.trim_end_matches(".rs").to_owned() };
    // Modules with their bodies here, each with its indentation.
    let mut inline: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        if line.trim() == "}" {
            inline.retain(|(opened, _)| *opened < indentation);
        }
        if let Some(module) = module_named(line, " {") {
            inline.push((indentation, module));
        }
        if let Some(module) = module_named(line, ";") {
            let inside: String = inline.iter().map(|(_, name)| format!("{name}/")).collect();
            reach(&format!("{below}/{inside}{module}.rs"), packages, files, reached);
            reach(&format!("{below}/{inside}{module}/mod.rs"), packages, files, reached);
        }
        let quoted = line.split('"').skip(1).step_by(2);
        for quoted in quoted.filter(|text| text.ends_with(".rs") && text.contains('/')) {
            match quoted.strip_suffix("*.rs") {
                Some(prefix) => {
                    let prefix = format!("{package}{prefix}");
                    let matching = files.keys().filter(|file| file.starts_with(&prefix));
                    matching.for_each(|file| reach(file, packages, files, reached));
                }
                None => {
                    reach(&format!("{package}{quoted}"), packages, files, reached);
                    reach(&format!("{folder}/{quoted}"), packages, files, reached);
                }
            }
        }
    }
}

/// The name in `mod name;` or `mod name {`, by what follows it.
fn module_named<'l>(line: &'l str, end: &str) -> Option<&'l str> {
    let declaration = line.trim().strip_suffix(end)?;
    let (visibility, module) = declaration.rsplit_once("mod ")?;
    let is_plain = visibility.is_empty() || visibility.starts_with("pub");
    (is_plain && module.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some(module)
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut faults = Vec::new();
    for page in ours().iter().filter(|file| is_page(file)) {
        for (number, target) in links(page) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = match file {
                "" => root().join(&page.path),
                file => root().join(folder).join(file),
            };
            let is_there = match heading {
                "" => path.exists(),
                heading => std::fs::read_to_string(&path)
                    .is_ok_and(|text| headings(&text).any(|found| found == heading)),
            };
            if !is_there {
                faults.push(format!("{}:{number}: {target}", page.path));
            }
        }
    }
    report("These links lead nowhere:", faults);
}

/// Every link of a page with its line, code apart.
fn links(page: &File) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for rest in prose.split("](").skip(1) {
            let target = rest.split([')', ' ']).next().unwrap();
            links.push((number, target.to_owned()));
        }
    }
    links
}

/// The headings of a page as links name them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Pages that lead people through the code.
const GUIDES_TO_THE_CODE: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Where a path in a sentence may begin: at the repository's root, in a crate, or in its `src`.
const PATHS_BEGIN: &[&str] = &[
    "",
    "crates/keyloom/",
    "crates/keyloom/src/",
    "crates/keyloom-server/",
    "crates/keyloom-server/src/",
    "crates/keyloom-cli/",
    "crates/keyloom-cli/src/",
];

#[test]
fn paths_that_lead_through_the_code_exist() {
    let exists = |path: &str| root().join(path).exists();
    let faults = GUIDES_TO_THE_CODE
        .iter()
        .flat_map(|page| {
            let text = std::fs::read_to_string(root().join(page)).unwrap();
            assert!(text.contains(".rs"), "{page} names no file of the code any more");
            paths_missing(&text, &exists).into_iter().map(move |fault| format!("{page}:{fault}"))
        })
        .collect();
    report("These pages name files and folders that do not exist:", faults);
}

#[test]
fn a_path_that_does_not_exist_is_told() {
    let there = ["crates/a/", "crates/a/src/", "crates/a/src/one.rs", "crates/a/src/two/"];
    let also = ["crates/a/src/two/in.rs", "crates/a/src/two/out.rs", "crates/keyloom/src/key/"];
    let exists = |path: &str| there.contains(&path) || also.contains(&path);
    let page = "\
`key/` and `crates/a/src/two/{in,out}.rs` are there, `key/gone.rs`, `crates/a/src/two/{in,off}.rs`
and `no/module` are not. `GET /v1/keys`, `a::b` and `…/two.rs` are no paths.

```text
crates/a/      a crate
  src/one.rs three.rs
               two files
  src/two/     a folder with in.rs, and away.rs
    in.rs out.rs
    lost/      of which
      lost.rs  nothing is there
```
";
    let lost = ["1: key/gone.rs", "1: crates/a/src/two/off.rs", "2: no/module"];
    let lost_in_map = [
        "6: crates/a/src/three.rs",
        "8: away.rs",
        "10: crates/a/src/two/lost/",
        "11: crates/a/src/two/lost/lost.rs",
    ];
    assert_eq!(paths_missing(page, &exists), [&lost[..], &lost_in_map[..]].concat());
}

/// The paths that a page names and that do not exist, each after its line.
fn paths_missing(page: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut map: Option<Map> = None;
    for (number, line) in page.lines().enumerate().map(|(place, line)| (place + 1, line)) {
        if line.starts_with("```") {
            map = (map.is_none() && line == "```text").then(Map::default);
            continue;
        }
        let missing = match &mut map {
            Some(map) => map.missing(line, exists),
            None => missing_in_prose(line, exists),
        };
        faults.extend(missing.into_iter().map(|path| format!("{number}: {path}")));
    }
    faults
}

/// The paths in the code of a sentence that exist from none of the places where paths begin.
fn missing_in_prose(line: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let code = line.split('`').skip(1).step_by(2);
    code.filter(|text| is_path(text) || is_module_path(text))
        .flat_map(alternatives)
        .filter(|path| {
            !PATHS_BEGIN.iter().any(|begin| {
                let whole = format!("{begin}{path}");
                exists(&whole) || (is_module_path(path) && exists(&format!("{whole}.rs")))
            })
        })
        .collect()
}

/// A tree of folders in a block of text, in which indentation says what lies in what.
#[derive(Default)]
struct Map {
    /// The folders around the next line, with their indentation.
    folders: Vec<(usize, String)>,
}

impl Map {
    fn missing(&mut self, line: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
        let indentation = line.len() - line.trim_start().len();
        let mut words = line.split_whitespace().peekable();
        let mut names = Vec::new();
        while let Some(name) = words.next_if(|word| is_path(word) || is_module_path(word)) {
            names.extend(alternatives(name));
        }
        if !names.is_empty() {
            self.folders.retain(|(outer, _)| *outer < indentation);
        }
        let around = self.folders.last().map_or("", |(_, folder)| folder).to_owned();
        // Names after the first one lie in the same folder: `src/serve.rs serve/`.
        let first = names.first().map_or("", |name| name.trim_end_matches('/'));
        let beside = first.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut missing: Vec<String> = Vec::new();
        for (place, name) in names.iter().enumerate() {
            let folder = if place == 0 || beside.is_empty() { "" } else { &format!("{beside}/") };
            let path = format!("{around}{folder}{name}");
            if !exists(&path) {
                missing.push(path);
            }
        }
        // What a description names lies in the folder that it describes, or beside the file.
        let described = words.map(|word| word.trim_matches(['`', ',', ';', ':', '.', '(', ')']));
        for name in described.filter(|word| is_path(word)).flat_map(alternatives) {
            let inside = names.first().cloned().unwrap_or_default();
            let places = [
                "".to_owned(),
                around.clone(),
                format!("{around}{beside}/"),
                around.clone() + &inside,
            ];
            if !places.iter().any(|place| exists(&format!("{place}{name}"))) {
                missing.push(name);
            }
        }
        if let [folder] = &names[..]
            && folder.ends_with('/')
        {
            self.folders.push((indentation, format!("{around}{folder}")));
        }
        missing
    }
}

/// Whether it is written as a file or folder of the repository: `key/`, `write/{entries,retry}.rs`.
fn is_path(text: &str) -> bool {
    let is_named = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{,}".contains(c));
    let has_end = text.ends_with('/') || [".rs", ".toml", ".md"].iter().any(|e| text.ends_with(e));
    is_named && !text.starts_with(['/', '.']) && text.len() > 1 && has_end
}

/// Whether it is written as a module within others, or as a script: `schema/live`.
fn is_module_path(text: &str) -> bool {
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    text.contains('/') && text.split('/').all(is_name)
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let parts =
        path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match parts {
        Some((before, (names, after))) => {
            names.split(',').map(|name| format!("{before}{name}{after}")).collect()
        }
        None => vec![path.to_owned()],
    }
}

#[test]
fn the_version_is_told_where_people_look() {
    let version = env!("CARGO_PKG_VERSION");
    let faults = ["README.md", "CHANGELOG.md"]
        .into_iter()
        .filter(|page| !std::fs::read_to_string(root().join(page)).unwrap().contains(version))
        .map(|page| format!("{page} does not mention {version}"))
        .collect();
    report("A release changes these pages too:", faults);
}

#[cfg(unix)]
#[test]
fn scripts_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let faults = files_below("scripts")
        .into_iter()
        .chain(files_below(".ci"))
        .filter(|file| {
            let mode = root().join(&file.path).metadata().unwrap().permissions().mode();
            !file.text.starts_with("#!") || mode & 0o111 != 0o111
        })
        .map(|file| file.path)
        .collect();
    report("Scripts begin with `#!` and are executable:", faults);
}
