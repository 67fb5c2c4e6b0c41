//! How a command ends: stable exit codes, and errors with a hint.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | done |
//! | 1 | it failed, or something was found: verify has findings, a record is not there |
//! | 2 | the command line cannot be understood |
//! | 3 | the input is wrong: a schema, a record, a query |
//! | 4 | a conflict: taken, changed since, not allowed by a transition |
//! | 5 | the store or the server cannot be reached, or is locked |
//! | 6 | a write may have happened |

use std::process::ExitCode;

use serde_json::Value;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with one of the codes above.
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Failure { code, message: message.into(), hint: None }
    }

    /// Says what to do.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure that a problem of the server tells.
    pub(crate) fn of_problem(problem: &Value) -> Self {
        let code = match problem["status"].as_u64() {
            _ if problem["outcome"] == "may_have_happened" => 6,
            Some(409 | 412) => 4,
            Some(502 | 503) => 5,
            Some(400 | 413 | 415 | 422) => 3,
            _ => 1,
        };
        let detail = problem["detail"].as_str().or(problem["title"].as_str());
        Failure::new(code, detail.unwrap_or("the server gave no reason"))
    }

    /// Tells it on stderr, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        eprintln!("keyloom: {}", self.message);
        if let Some(hint) = self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}

impl From<keyloom::Error> for Failure {
    fn from(error: keyloom::Error) -> Self {
        use keyloom::{ErrorKind as Kind, Fate};
        let code = match error.kind() {
            _ if error.fate() == Fate::MayHaveHappened => 6,
            Kind::InvalidSchema | Kind::InvalidRecord | Kind::InvalidKey | Kind::InvalidQuery => 3,
            Kind::Locked | Kind::Unavailable | Kind::ReadOnly => 5,
            _ => 1,
        };
        let failure = Failure::new(code, error.to_string());
        match error.kind() {
            Kind::Locked => failure.with_hint(
                "a server may hold this folder; ask it with --server URL, or stop it first",
            ),
            _ => failure,
        }
    }
}
