//! Stable exit codes: one for each kind of failure, whether a store or a server reported it.

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
/// Ctrl-C or SIGTERM, with the numbers that shells use.
pub(crate) const INTERRUPTED: u8 = 130;
pub(crate) const TERMINATED: u8 = 143;

/// Every exit code, as `keyloom help exit-codes` prints it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes, which stay as they are:

  0  done
  1  it failed, or something was found: verify has findings, a record does not exist
  2  the command line cannot be understood
  3  the input is wrong: a schema, a record, a query, lines of an import
  4  a conflict: taken, changed since, not allowed by a transition
  5  the store or the server cannot be reached, is locked, or is not ready
  6  a write may have happened: look before you repeat it
  7  the token is missing, wrong, or does not allow this

Ctrl-C ends with 130 and SIGTERM with 143, as shells number them; `keyloom serve` and `keyloom demo`
end with 0.";

/// The exit code of each type of problem.
#[rustfmt::skip] // A table.
const OF_PROBLEMS: &[(u8, &[&str])] = &[
    (FAILED, &[
        "not-found", "not-kept", "log-trimmed", "method-not-allowed", "not-acceptable", "corrupt",
        "internal", "unknown-format", "unsupported",
    ]),
    (WRONG_INPUT, &[
        "invalid-request", "invalid-key", "invalid-argument", "invalid-query", "invalid-cursor",
        "invalid-record", "invalid-schema", "no-index", "limit-exceeded", "too-large-headers",
        "unsupported-media-type", "idempotency-conflict",
    ]),
    (CONFLICT, &[
        "already-exists", "already-running", "unknown-batch", "belongs-to-index",
        "unique-conflict", "illegal-transition", "out-of-bounds", "lease-lost",
        "incompatible-schema", "aborted", "version-conflict", "precondition-failed",
    ]),
    (UNREACHABLE, &[
        "locked", "read-only", "closed", "unavailable", "overloaded", "contention",
        "stale-schema", "index-not-ready", "request-timeout", "misdirected",
    ]),
    (UNKNOWN, &["outcome-unknown"]),
    (FORBIDDEN, &["unauthenticated", "forbidden"]),
];

/// The exit code of a type of problem, such as `no-index`. Unknown types give `FAILED`.
pub(super) fn code_of(problem: &str) -> u8 {
    let found = OF_PROBLEMS.iter().find(|(_, problems)| problems.contains(&problem));
    found.map_or(FAILED, |(code, _)| *code)
}

/// The title of each code, for programs that read failures as JSON.
pub(super) fn title(code: u8) -> &'static str {
    match code {
        USAGE => "The command line cannot be understood",
        WRONG_INPUT => "The input is wrong",
        CONFLICT => "Something is in the way",
        UNREACHABLE => "The store or the server cannot be used now",
        UNKNOWN => "The write may have happened",
        FORBIDDEN => "The caller may not do this",
        INTERRUPTED | TERMINATED => "It was interrupted",
        _ => "It failed",
    }
}

#[cfg(test)]
mod tests {
    use keyloom_server::problem_types;

    use super::*;

    #[test]
    fn every_problem_has_one_exit_code() {
        for problem in problem_types() {
            let codes = OF_PROBLEMS.iter().filter(|(_, names)| names.contains(&problem.name));
            assert_eq!(codes.count(), 1, "{}", problem.name);
        }
        let listed = OF_PROBLEMS.iter().flat_map(|(_, names)| *names);
        for name in listed {
            assert!(problem_types().any(|problem| problem.name == *name), "{name} is not told");
        }
    }

    #[test]
    fn the_guide_has_the_table() {
        let page = include_str!("../../../../docs/guide/command.md");
        for (code, names) in OF_PROBLEMS {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let row = format!("| {code} | {} |", names.join(", "));
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn the_help_has_every_code() {
        for (code, _) in OF_PROBLEMS {
            assert!(EXIT_CODES.contains(&format!("\n  {code}  ")), "{code}");
        }
    }
}
