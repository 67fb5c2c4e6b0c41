//! Golden scripts: commands and what they print. Those in `scripts` run on a folder and against a
//! server, and print the same. Those in `damaged` run on a folder only, since they also write past
//! Keyloom.
//!
//! | line | meaning |
//! | --- | --- |
//! | `# …` | a remark |
//! | `> args` | runs `keyloom args`; `$KEY` and `$VERSION` are those that were printed last |
//! | `* delete KEY` | another program deletes the key from the store; only in `damaged` |
//! | `* put KEY VALUE` | another program puts this value at the key; only in `damaged` |
//! | `! …` | a line on stderr |
//! | `= n` | the exit code, if it is not 0 |
//! | anything else | a line on stdout |
//!
//! Versions, generated ids and codes, and moments of the run are told as `<version>`, `<id>`,
//! `<code>` and `<time>`. `KEYLOOM_BLESS=1` writes what came out into the scripts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::damage::write_raw;
use super::support::{Ran, SCHEMA, Sandbox, words};

#[test]
fn scripts_print_the_same_on_a_folder_and_against_a_server() {
    let scripts = scripts("scripts");
    assert!(scripts.len() > 5, "the scripts are lost");
    let no_damage = |_: &[String]| panic!("only scripts in `damaged` write past Keyloom");
    for path in scripts {
        let script = std::fs::read_to_string(&path).unwrap();
        let folder = Sandbox::with_store();
        let on_folder = play(&script, |args| folder.run(args), no_damage);
        let sandbox = Sandbox::empty();
        sandbox.write("keyloom.toml", SCHEMA);
        let server = sandbox.serve(&["--store", "memory:"]);
        let on_server = |args: &[&str]| sandbox.run(&[args, &["--server", &server.url]].concat());
        let against_server = play(&script, on_server, no_damage);
        assert_eq!(on_folder, against_server, "{}: folder and server differ", path.display());
        compare(&path, &script, &on_folder);
    }
}

#[test]
fn scripts_show_what_is_found_in_damaged_stores() {
    let scripts = scripts("damaged");
    assert!(!scripts.is_empty(), "the scripts are lost");
    for path in scripts {
        let script = std::fs::read_to_string(&path).unwrap();
        let sandbox = Sandbox::with_store();
        let played = play(&script, |args| sandbox.run(args), |words| damage(&sandbox, words));
        compare(&path, &script, &played);
    }
}

/// Fails if a script printed something else than it says, or takes over what it printed.
fn compare(path: &Path, script: &str, played: &str) {
    if std::env::var_os("KEYLOOM_BLESS").is_some() {
        std::fs::write(path, played).unwrap();
        return;
    }
    assert_eq!(script, played, "{}: KEYLOOM_BLESS=1 takes it over", path.display());
}

/// Does to a store what a line with `*` says.
fn damage(sandbox: &Sandbox, words: &[String]) {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["delete", key] => write_raw(sandbox, &[(key, None)]),
        ["put", key, value] => write_raw(sandbox, &[(key, Some(value))]),
        _ => panic!("a line with * is `delete KEY` or `put KEY VALUE`: {words:?}"),
    }
}

fn scripts(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli").join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs the commands of a script, and gives the script with what came out.
fn play(script: &str, run: impl Fn(&[&str]) -> Ran, damage: impl Fn(&[String])) -> String {
    let mut played = String::new();
    let (mut key, mut version) = (String::new(), String::new());
    for line in script.lines() {
        if line.starts_with('#') {
            writeln!(played, "{line}").unwrap();
        }
        if let Some(write) = line.strip_prefix("* ") {
            damage(&words(write));
            writeln!(played, "{line}").unwrap();
        }
        let Some(command) = line.strip_prefix("> ") else { continue };
        let command_line = command.replace("$KEY", &key).replace("$VERSION", &version);
        let args = words(&command_line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = run(&args);
        writeln!(played, "{line}").unwrap();
        ran.out.lines().for_each(|line| writeln!(played, "{}", normal(line)).unwrap());
        ran.err.lines().for_each(|line| writeln!(played, "! {}", normal(line)).unwrap());
        if ran.code != 0 {
            writeln!(played, "= {}", ran.code).unwrap();
        }
        for token in tokens(&ran.out) {
            match kind(token) {
                Some("<version>") => token.clone_into(&mut version),
                Some("<id>") => token.clone_into(&mut key),
                _ => {}
            }
        }
    }
    played
}

/// A line without what differs from run to run.
fn normal(line: &str) -> String {
    let line = &without_moments(line);
    let mut shown = String::new();
    let mut rest = line.as_str();
    for token in tokens(line) {
        let at = rest.find(token).unwrap();
        shown.push_str(&rest[..at]);
        shown.push_str(kind(token).unwrap_or(token));
        rest = &rest[at + token.len()..];
    }
    shown + rest
}

/// A line whose ISO-8601 moments of this millennium are told as `<time>`.
fn without_moments(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let is_moment = word.len() == 24 && word.starts_with("20") && word.ends_with('Z');
        if is_moment { "<time>" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn tokens(line: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    line.split(|letter| !is_part(letter)).filter(|token| !token.is_empty()).collect()
}

/// What a word is, if it differs from run to run.
fn kind(token: &str) -> Option<&'static str> {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_version = token
        .split_once('-')
        .is_some_and(|(birth, number)| birth.len() == 32 && is_hex(birth) && is_hex(number));
    let is_id = token.len() == 26 && token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // Moments of scripts lie before 2026.
    let is_digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let is_time =
        token.len() == 13 && is_digits && token > "1767225600000" && token < "3000000000000";
    let is_code = token.len() == 8 && token.starts_with("A-");
    // What scripts chose themselves is shown.
    let is_chosen = token.starts_with("000000")
        || token.bytes().skip(3).all(|byte| Some(&byte) == token.as_bytes().get(2));
    match () {
        () if is_chosen => None,
        () if is_version => Some("<version>"),
        () if is_id => Some("<id>"),
        () if token.len() >= 16 && is_hex(token) => Some("<hex>"),
        () if is_time => Some("<time>"),
        () if is_code => Some("<code>"),
        () => None,
    }
}
