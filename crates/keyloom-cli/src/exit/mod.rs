//! How a command ends: stable exit codes, and errors with a hint.

mod codes;
mod hints;

use std::io::{Write, stderr};

use keyloom::Fate;
use keyloom_server::problem_type;
use serde_json::{Map, Value, json};

pub(crate) use codes::{
    CONFLICT, EXIT_CODES, FAILED, INTERRUPTED, TERMINATED, UNKNOWN, UNREACHABLE, USAGE, WRONG_INPUT,
};
use codes::{code_of, title};
use hints::hint_for;

use crate::output::{visible, visible_json};

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
    /// The problem from the server (RFC 9457), if the failure is one.
    problem: Option<Box<Value>>,
}

impl Failure {
    /// A failure with one of the codes above.
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), hint: None, problem: None }
    }

    /// Ends the command silently and without failure: the reader of the output has gone.
    pub(crate) fn silent() -> Self {
        Failure::new(0, "")
    }

    /// Adds a hint at what to do.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another hint.
    pub(crate) fn with_further_hint(mut self, hint: &str) -> Self {
        self.hint = Some(match self.hint {
            Some(first) => format!("{first}; {hint}"),
            None => hint.to_owned(),
        });
        self
    }

    /// Adds when the failure happened.
    pub(crate) fn after(mut self, when: &str) -> Self {
        self.message = format!("{when}: {}", self.message);
        self
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// The type of the problem, if it is one: `no-index`.
    pub(crate) fn kind(&self) -> Option<&str> {
        kind_of(self.problem.as_deref()?)
    }

    /// The failure in one line.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The failure for a problem from the server.
    pub(crate) fn of_problem(problem: &Value) -> Self {
        let kind = kind_of(problem);
        let code = match &problem["outcome"] {
            Value::String(outcome) if outcome == "may_have_happened" => UNKNOWN,
            _ => kind.map_or(FAILED, code_of),
        };
        let detail = problem["detail"].as_str().or(problem["title"].as_str());
        let message = broken_up(detail.unwrap_or("the server gave no reason"));
        let hint = kind.and_then(|kind| hint_for(kind, problem));
        Failure { code, message, hint, problem: Some(Box::new(problem.clone())) }
    }

    /// Prints the failure to stderr, and gives the exit code. Programs that asked for JSON get one
    /// line.
    pub(crate) fn report(self, as_json: bool) -> u8 {
        let mut err = stderr().lock();
        // If stderr is closed, nobody could read about that either.
        if self.message.is_empty() {
        } else if as_json {
            let _ = writeln!(err, "{}", visible_json(&self.to_json().to_string()));
        } else {
            let lines: Vec<String> = self.message.lines().map(visible).collect();
            let _ = writeln!(err, "keyloom: {}", lines.join("\n  "));
            if let Some(hint) = &self.hint {
                let _ = writeln!(err, "hint: {}", visible(hint));
            }
        }
        self.code
    }

    /// The failure as a problem (RFC 9457), with its hint and its exit code.
    fn to_json(&self) -> Value {
        let mut members = match self.problem.as_deref() {
            Some(Value::Object(members)) => members.clone(),
            _ => Map::from_iter([
                ("type".to_owned(), "about:blank".into()),
                ("title".to_owned(), title(self.code).into()),
            ]),
        };
        // What the command adds to the problem is in its own message.
        let lines = self.message.lines().map(str::trim).filter(|line| !line.is_empty());
        let detail = lines.collect::<Vec<_>>().join("; ");
        members.insert("detail".to_owned(), detail.into());
        if let Some(hint) = &self.hint {
            members.insert("hint".to_owned(), hint.as_str().into());
        }
        members.insert("exit_code".to_owned(), self.code.into());
        members.into()
    }
}

/// The last part of a problem's type.
fn kind_of(problem: &Value) -> Option<&str> {
    problem["type"].as_str()?.rsplit('/').next()
}

/// A long message, with a line for each of the names and values after its sentence.
fn broken_up(message: &str) -> String {
    const ONE_LINE_MAX: usize = 120;
    if message.len() <= ONE_LINE_MAX {
        return message.to_owned();
    }
    let mut parts = message.split("; ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // The sentence itself may have a semicolon.
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

/// Turns an error of the library into the problem that a server would send. It tells more than a
/// server does: whoever has the store open may know its location.
impl From<keyloom::Error> for Failure {
    fn from(error: keyloom::Error) -> Self {
        let known = problem_type(error.kind());
        let is_unknown = error.fate() == Fate::MayHaveHappened;
        let (name, outcome) = match is_unknown {
            true => ("outcome-unknown", "may_have_happened"),
            false => (known.name, "did_not_happen"),
        };
        // Schemas and migrations may have several problems, and each gets a line of its own.
        let (mut message, mut context) = (error.message().to_owned(), Map::new());
        for (name, value) in error.context() {
            match name {
                "problem" | "change" => message.push_str(&format!("\n{value}")),
                _ => {
                    message.push_str(&format!("; {name}: {value}"));
                    context.insert(name.replace(' ', "_"), value.into());
                }
            }
        }
        let problem = json!({
            "type": format!("/problems/{name}"),
            "title": known.title,
            "status": known.status,
            "detail": message,
            "outcome": outcome,
            "retry": error.is_retryable(),
            "context": context,
        });
        let failure = Failure::of_problem(&problem);
        if message.contains('\n') { Failure { message, ..failure } } else { failure }
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

    #[test]
    fn a_failure_is_a_problem_for_programs() {
        let own = Failure::new(USAGE, "one\ntwo").with_hint("do it").to_json();
        assert_eq!(
            own,
            json!({ "type": "about:blank", "title": "The command line cannot be understood",
                "detail": "one; two", "hint": "do it", "exit_code": USAGE })
        );
        let error = keyloom::Error::new(keyloom::ErrorKind::Locked, "it is locked");
        let told = Failure::from(error.with("served at", "http://x")).to_json();
        assert_eq!((&told["type"], &told["exit_code"]), (&json!("/problems/locked"), &json!(5)));
        assert_eq!(told["hint"], "ask the server that holds it: --server http://x");
    }
}
