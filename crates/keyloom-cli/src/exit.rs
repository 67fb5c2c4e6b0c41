//! How a command ends: stable exit codes, and errors with a hint.

use std::io::{Write, stderr};
use std::process::ExitCode;

use keyloom::{ErrorKind, Fate};
use serde_json::Value;

use crate::output::visible;

/// It failed, or something was found.
pub(crate) const FAILED: u8 = 1;
/// The command line cannot be understood.
pub(crate) const USAGE: u8 = 2;
/// The input is wrong.
pub(crate) const WRONG_INPUT: u8 = 3;
/// Something is in the way.
pub(crate) const CONFLICT: u8 = 4;
/// The store or the server cannot be used now.
pub(crate) const UNREACHABLE: u8 = 5;
/// A write may have happened.
pub(crate) const UNKNOWN: u8 = 6;
/// The caller may not do this.
pub(crate) const FORBIDDEN: u8 = 7;
/// Ctrl-C came, or SIGTERM; as shells number it.
pub(crate) const INTERRUPTED: u8 = 130;
pub(crate) const TERMINATED: u8 = 143;

/// Every exit code, as `keyloom help exit-codes` tells it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes, which stay as they are:

  0  done
  1  it failed, or something was found: verify has findings, a record is not there
  2  the command line cannot be understood
  3  the input is wrong: a schema, a record, a query, lines of an import
  4  a conflict: taken, changed since, not allowed by a transition
  5  the store or the server cannot be reached, is locked, or is not ready
  6  a write may have happened: look before you repeat it
  7  the token is missing, wrong, or does not allow this

Ctrl-C ends with 130 and SIGTERM with 143, as shells number them; `keyloom serve` and `keyloom demo`
end with 0.";

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
    /// The type of the problem that the server told, if one did: `no-index`.
    kind: Option<String>,
}

impl Failure {
    /// A failure with one of the codes above.
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), hint: None, kind: None }
    }

    /// Nothing failed, and nothing is left to say: whoever read the output has gone.
    pub(crate) fn silent() -> Self {
        Failure::new(0, "")
    }

    /// Says what to do.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what else to do.
    pub(crate) fn with_further_hint(mut self, hint: &str) -> Self {
        self.hint = Some(match self.hint {
            Some(first) => format!("{first}; {hint}"),
            None => hint.to_owned(),
        });
        self
    }

    /// Says when it happened.
    pub(crate) fn after(mut self, when: &str) -> Self {
        self.message = format!("{when}: {}", self.message);
        self
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The type of the problem, if the server told one.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// What happened, in one line.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The failure that a problem of the server tells.
    pub(crate) fn of_problem(problem: &Value) -> Self {
        let kind = problem["type"].as_str().and_then(|kind| kind.rsplit('/').next());
        let is_question = matches!(kind, Some("no-index" | "invalid-query" | "invalid-cursor"));
        let code = match problem["status"].as_u64() {
            _ if problem["outcome"] == "may_have_happened" => UNKNOWN,
            // Nobody else is in the way: the question itself must change.
            _ if is_question => WRONG_INPUT,
            Some(409 | 412) => CONFLICT,
            Some(429 | 502 | 503) => UNREACHABLE,
            Some(400 | 413 | 415 | 422) => WRONG_INPUT,
            Some(401 | 403) => FORBIDDEN,
            _ => FAILED,
        };
        let detail = problem["detail"].as_str().or(problem["title"].as_str());
        let message = broken_up(detail.unwrap_or("the server gave no reason"));
        let mut failure = Failure::new(code, message);
        failure.kind = kind.map(str::to_owned);
        failure.hint = kind.and_then(|kind| hint_for(kind, problem));
        failure
    }

    /// Tells it on stderr, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let mut err = stderr().lock();
        // Nobody is left to hear that stderr is closed.
        if !self.message.is_empty() {
            let lines: Vec<String> = self.message.lines().map(visible).collect();
            let _ = writeln!(err, "keyloom: {}", lines.join("\n  "));
        }
        if let Some(hint) = self.hint {
            let _ = writeln!(err, "hint: {}", visible(&hint));
        }
        ExitCode::from(self.code)
    }
}

/// A long message with a line for each of the names and values behind its sentence.
fn broken_up(message: &str) -> String {
    const ONE_LINE_MAX: usize = 120;
    if message.len() <= ONE_LINE_MAX {
        return message.to_owned();
    }
    let mut parts = message.split("; ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A sentence may have a semicolon of its own.
        told.push_str(if is_named(part) { "\n" } else { "; " });
        told.push_str(part);
    }
    told
}

/// Whether a part of a message is a name and a value: `field: id`.
fn is_named(part: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || matches!(letter, '_' | ' ');
    part.split_once(": ").is_some_and(|(name, _)| name.chars().all(is_letter))
}

/// What helps against a problem of the server.
fn hint_for(kind: &str, problem: &Value) -> Option<String> {
    let holder = problem["holder"].as_str();
    let hint = match kind {
        "no-index" if problem["context"]["or"].as_str().is_some_and(|or| or.contains("scan")) => {
            "`keyloom schema` lists the indexes; --scan reads the whole collection if it must be"
        }
        "no-index" => "`keyloom schema` lists the indexes",
        "already-exists" => "to replace it, name its key: keyloom put COLLECTION KEY RECORD",
        "unique-conflict" => {
            return holder
                .map(|key| format!("the record {key} has it: keyloom get COLLECTION {key}"));
        }
        "version-conflict" => {
            "somebody changed it since: read it again, and repeat with its new version"
        }
        "unauthenticated" => "give a token in KEYLOOM_TOKEN, or with --token",
        "forbidden" => "another token may: KEYLOOM_TOKEN or --token",
        "index-not-ready" => "keyloom build COLLECTION INDEX makes it ready",
        "invalid-cursor" => "a cursor goes with the query that gave it: repeat it unchanged",
        "locked" => LOCKED,
        "outcome-unknown" => "look at what is stored before you repeat it",
        "log-trimmed" => "keyloom watch without --from begins now",
        "overloaded" => "the server is busy: try again in a moment",
        _ => return None,
    };
    Some(hint.to_owned())
}

const LOCKED: &str = "a server may hold this folder; ask it with --server URL, or stop it first";

impl From<keyloom::Error> for Failure {
    fn from(error: keyloom::Error) -> Self {
        use ErrorKind as Kind;
        let code = match error.kind() {
            _ if error.fate() == Fate::MayHaveHappened => UNKNOWN,
            Kind::InvalidSchema
            | Kind::InvalidRecord
            | Kind::InvalidKey
            | Kind::InvalidQuery
            | Kind::InvalidArgument
            | Kind::InvalidCursor
            | Kind::NoIndex
            | Kind::LimitExceeded => WRONG_INPUT,
            Kind::IncompatibleSchema | Kind::UniqueConflict | Kind::AlreadyExists => CONFLICT,
            Kind::Locked | Kind::Unavailable | Kind::ReadOnly | Kind::Closed => UNREACHABLE,
            _ => FAILED,
        };
        // Schemas and migrations have several problems, each of which deserves its own line.
        let mut message = error.message().to_owned();
        for (name, value) in error.context() {
            match name {
                "problem" | "change" => message.push_str(&format!("\n{value}")),
                _ => message.push_str(&format!("; {name}: {value}")),
            }
        }
        let failure = Failure::new(code, message);
        match error.kind() {
            Kind::Locked => failure.with_hint(LOCKED),
            Kind::IncompatibleSchema => failure.with_hint(
                "nothing was changed; `keyloom check --store ADDRESS` shows every difference",
            ),
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_lines_of_their_own_and_sentences_stay_whole() {
        let message = "the name gives no key of the collection; collection: approval; template: \
                       approval:record:{id}; name: x; reason: an id is 26 letters; 'x' is none";
        let lines = "the name gives no key of the collection\ncollection: approval\ntemplate: \
                     approval:record:{id}\nname: x\nreason: an id is 26 letters; 'x' is none";
        assert_eq!(broken_up(message), lines);
        assert_eq!(broken_up("short; name: x"), "short; name: x");
    }
}
