//! The access file: tokens, and how JWTs of users are verified.
//!
//! All problems of a file are reported at once, each with its line. No message repeats a value from
//! the file that may be a secret.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyloom::{Error, ErrorKind};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Authority;
use super::grant::{Grant, Role, Verb};
use super::jwt::{Secret, Users};
use super::token::{Hash, PREFIX, Tokens, read_hex};

/// HS256 needs a key as long as its hash (RFC 7518).
const SECRET_BYTES_MIN: usize = 32;
const LEEWAY_SECONDS: u64 = 30;
const LEEWAY_SECONDS_MAX: i64 = 600;

impl Authority {
    /// Reads the text of an access file. Paths in it are relative to the working folder.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Reader::new(text, PathBuf::new()).authority()
    }

    /// Reads an access file. Paths in it are relative to its own folder.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|source| {
            Error::new(ErrorKind::InvalidArgument, "the access file cannot be read")
                .with("file", path.display())
                .with("reason", &source)
        })?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Reader::new(&text, folder).authority().map_err(|error| {
            let named = Error::new(error.kind(), error.message()).with("file", path.display());
            error.context().fold(named, |named, (name, value)| named.with(name, value))
        })
    }
}

/// A file that is being read, and its problems: the position in bytes, and the reason.
struct Reader<'t> {
    text: &'t str,
    folder: PathBuf,
    problems: Vec<(usize, String)>,
}

/// One table of a file: its position, its name in messages, and its members.
struct Table<'v, 't> {
    start: usize,
    name: &'static str,
    members: &'v DeTable<'t>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, folder: PathBuf) -> Self {
        Reader { text, folder, problems: Vec::new() }
    }

    fn authority(mut self) -> Result<Authority, Error> {
        let (file, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            self.problem(error.span().map_or(0, |span| span.start), error.message());
        }
        let file = Table { start: 0, name: "the file", members: file.get_ref() };
        self.known(&file, &["token", "jwt"]);
        let tokens = self.tokens(&file);
        let users = file.members.get("jwt").and_then(|value| self.users(value));
        if tokens.is_empty() && users.is_none() && self.problems.is_empty() {
            self.problem(0, "nobody could enter: declare a [[token]] or [jwt]");
        }
        if self.problems.is_empty() {
            return Ok(Authority::new(Tokens::new(tokens), users));
        }
        Err(self.error())
    }

    fn tokens(&mut self, file: &Table<'_, 't>) -> Vec<(Hash, Grant)> {
        let Some(value) = file.members.get("token") else { return Vec::new() };
        let Some(tables) = value.get_ref().as_array() else {
            self.problem(value.span().start, "write [[token]], with two brackets on each side");
            return Vec::new();
        };
        let mut tokens: Vec<(Hash, Grant)> = Vec::new();
        for value in tables.iter() {
            let Some((hash, grant)) = self.token(value) else { continue };
            let at = value.span().start;
            if tokens.iter().any(|(_, other)| other.name == grant.name) {
                self.problem(at, format!("another token has the name {:?} already", grant.name));
            }
            if tokens.iter().any(|(other, _)| *other == hash) {
                self.problem(at, "another token has the same sha256: each is its own");
            }
            tokens.push((hash, grant));
        }
        tokens
    }

    fn token(&mut self, value: &Spanned<DeValue<'t>>) -> Option<(Hash, Grant)> {
        let table = self.table(value, "a token")?;
        let name = self.required_text(&table, "name");
        let role = self.required_text(&table, "role");
        let hash = self.required_text(&table, "sha256");
        let name = name.and_then(|(at, name)| self.token_name(at, name));
        let hash = hash.and_then(|(at, text)| self.hash(at, text));
        let grant = match role {
            Some((_, "admin")) => {
                self.known(&table, &["name", "role", "sha256"]);
                Some(Grant::admin())
            }
            Some((_, "service")) => self.service(&table),
            Some((at, other)) => {
                self.problem(at, format!("the role is \"admin\" or \"service\", not {other:?}"));
                None
            }
            None => None,
        };
        Some((hash?, Grant { name: name?, ..grant? }))
    }

    fn service(&mut self, table: &Table<'_, 't>) -> Option<Grant> {
        let known = ["name", "role", "sha256", "collections", "verbs", "spaces", "act_as"];
        self.known(table, &known);
        let collections = self.texts(table, "collections");
        let verbs = self.texts(table, "verbs");
        for (member, given) in [("collections", &collections), ("verbs", &verbs)] {
            if given.is_none() && !table.members.contains_key(member) {
                self.problem(table.start, format!("a service needs {member}"));
            }
        }
        let verbs = verbs.map(|verbs| self.verbs(&verbs));
        let spaces = self.spaces(table);
        let may_act_as = self.flag(table, "act_as");
        let collections = collections?.into_iter().map(|(_, name)| name.to_owned()).collect();
        let (role, verbs) = (Role::Service, verbs?);
        Some(Grant { role, collections, verbs, spaces, may_act_as, ..Grant::admin() })
    }

    fn users(&mut self, value: &Spanned<DeValue<'t>>) -> Option<Users> {
        let table = self.table(value, "[jwt]")?;
        let sources = ["secret_file", "secret_env", "secret_base64"];
        let others = ["issuer", "audience", "spaces", "leeway"];
        self.known(&table, &[&sources[..], &others[..]].concat());
        let issuer = self.text(&table, "issuer").map(|(_, text)| text.to_owned());
        let audience = self.text(&table, "audience").map(|(_, text)| text.to_owned());
        let spaces = self.spaces(&table);
        let leeway = self.leeway(&table);
        let secret = self.secret(&table, &sources)?;
        Some(Users { secret, issuer, audience, spaces, leeway })
    }

    fn secret(&mut self, table: &Table<'_, 't>, sources: &[&'static str]) -> Option<Secret> {
        let given: Vec<_> =
            sources.iter().filter(|name| table.members.contains_key(**name)).collect();
        let [source] = given[..] else {
            self.problem(table.start, format!("[jwt] needs one of {}", sources.join(", ")));
            return None;
        };
        let (at, text) = self.text(table, source)?;
        let read = match *source {
            "secret_file" => fs::read(self.folder.join(text))
                .map(without_line_end)
                .map_err(|error| format!("the file cannot be read: {error}")),
            "secret_env" => std::env::var(text)
                .map(String::into_bytes)
                .map_err(|_| format!("the environment has no variable {text} in UTF-8")),
            _ => STANDARD.decode(text).map_err(|_| "this is not base64".to_owned()),
        };
        match read {
            Ok(secret) if secret.len() >= SECRET_BYTES_MIN => Some(Secret(secret)),
            Ok(_) => {
                self.problem(at, format!("the secret has fewer than {SECRET_BYTES_MIN} bytes"));
                None
            }
            Err(reason) => {
                self.problem(at, reason);
                None
            }
        }
    }

    fn token_name(&mut self, at: usize, name: &str) -> Option<String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=64).contains(&name.len()) && name.bytes().all(is_plain) {
            return Some(name.to_owned());
        }
        self.problem(at, "a name has 1 to 64 letters, digits, hyphens, underscores and dots");
        None
    }

    fn hash(&mut self, at: usize, text: &str) -> Option<Hash> {
        let hash = read_hex(text);
        if text.starts_with(PREFIX) {
            self.problem(at, "this is the token itself: put its SHA-256 here, and make a new one");
        } else if hash.is_none() {
            self.problem(at, "a sha256 has 64 hexadecimal digits");
        }
        hash
    }

    fn verbs(&mut self, names: &[(usize, &str)]) -> Vec<Verb> {
        let mut verbs = Vec::new();
        for (at, name) in names {
            match Verb::named(name) {
                Some(verb) => verbs.push(verb),
                None => {
                    self.problem(*at, format!("the verbs are read, write, delete, not {name:?}"));
                }
            }
        }
        verbs
    }

    fn spaces(&mut self, table: &Table<'_, 't>) -> Vec<String> {
        match self.texts(table, "spaces") {
            Some(spaces) => spaces.into_iter().map(|(_, name)| name.to_owned()).collect(),
            None => vec!["main".to_owned()],
        }
    }

    fn leeway(&mut self, table: &Table<'_, 't>) -> u64 {
        let Some(value) = table.members.get("leeway") else { return LEEWAY_SECONDS };
        let seconds = value.get_ref().as_integer();
        let seconds =
            seconds.and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok());
        match seconds {
            Some(seconds @ 0..=LEEWAY_SECONDS_MAX) => seconds.unsigned_abs(),
            _ => {
                let reason = format!("leeway is a number of seconds, 0 to {LEEWAY_SECONDS_MAX}");
                self.problem(value.span().start, reason);
                LEEWAY_SECONDS
            }
        }
    }

    fn table<'v>(
        &mut self,
        value: &'v Spanned<DeValue<'t>>,
        name: &'static str,
    ) -> Option<Table<'v, 't>> {
        let start = value.span().start;
        match value.get_ref().as_table() {
            Some(members) => Some(Table { start, name, members }),
            None => {
                self.problem(start, format!("{name} is a table"));
                None
            }
        }
    }

    fn required_text<'v>(&mut self, table: &Table<'v, 't>, name: &str) -> Option<(usize, &'v str)> {
        if !table.members.contains_key(name) {
            self.problem(table.start, format!("{} needs {name}", table.name));
        }
        self.text(table, name)
    }

    fn text<'v>(&mut self, table: &Table<'v, 't>, name: &str) -> Option<(usize, &'v str)> {
        let value = table.members.get(name)?;
        let at = value.span().start;
        let text = value.get_ref().as_str().filter(|text| !text.is_empty());
        if text.is_none() {
            self.problem(at, format!("{name} is a text that is not empty"));
        }
        Some((at, text?))
    }

    fn texts<'v>(&mut self, table: &Table<'v, 't>, name: &str) -> Option<Vec<(usize, &'v str)>> {
        let value = table.members.get(name)?;
        let texts = value.get_ref().as_array().map(|array| {
            let text =
                |one: &'v Spanned<DeValue<'t>>| Some((one.span().start, one.get_ref().as_str()?));
            array.iter().map(text).collect::<Option<Vec<_>>>()
        });
        match texts.flatten() {
            Some(texts) if texts.iter().all(|(_, text)| !text.is_empty()) => Some(texts),
            _ => {
                let reason =
                    format!("{name} is an array of texts, as in {name} = [\"one\", \"two\"]");
                self.problem(value.span().start, reason);
                None
            }
        }
    }

    fn flag(&mut self, table: &Table<'_, 't>, name: &str) -> bool {
        let Some(value) = table.members.get(name) else { return false };
        value.get_ref().as_bool().unwrap_or_else(|| {
            self.problem(value.span().start, format!("{name} is true or false"));
            false
        })
    }

    /// Refuses members that the server does not know.
    fn known(&mut self, table: &Table<'_, 't>, known: &[&str]) {
        for (name, _) in table.members.iter() {
            if !known.contains(&name.get_ref().as_ref()) {
                let (name, at) = (name.get_ref(), name.span().start);
                let reason =
                    format!("{} has no {name} here; it has {}", table.name, known.join(", "));
                self.problem(at, reason);
            }
        }
    }

    fn problem(&mut self, at: usize, reason: impl Into<String>) {
        self.problems.push((at, reason.into()));
    }

    fn error(mut self) -> Error {
        self.problems.sort();
        let start = Error::new(ErrorKind::InvalidArgument, "the access file cannot be used");
        self.problems.iter().fold(start, |error, (at, reason)| {
            let before = self.text.get(..*at).unwrap_or(self.text);
            let line = before.matches('\n').count() + 1;
            error.with("problem", format_args!("line {line}: {reason}"))
        })
    }
}

/// Editors end files with a line break that is not meant to be part of a secret.
fn without_line_end(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.ends_with(b"\n") {
        bytes.pop();
    }
    if bytes.ends_with(b"\r") {
        bytes.pop();
    }
    bytes
}
