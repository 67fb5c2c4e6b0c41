//! Hints at how to solve a problem, for the person at the command line.

use serde_json::Value;

/// The hint for a problem of this type, with the names from the problem.
pub(super) fn hint_for(kind: &str, problem: &Value) -> Option<String> {
    let told = |name: &str| problem["context"][name].as_str();
    // If the problem does not name it, the caller knows it from the command that they typed.
    let collection = told("collection").unwrap_or("COLLECTION");
    Some(match kind {
        "no-index" if told("or").is_some_and(|or| or.contains("scan")) => {
            "`keyloom schema` lists the indexes; --scan reads the whole collection if it must be"
                .to_owned()
        }
        "no-index" => "`keyloom schema` lists the indexes".to_owned(),
        "limit-exceeded" if problem["context"].get("at_least").is_some() => {
            "--limit N counts further; a declared count answers at once".to_owned()
        }
        "already-exists" => {
            format!("to replace it, name its key: keyloom put {collection} KEY RECORD")
        }
        "unique-conflict" => {
            let key = problem["holder"].as_str()?;
            format!("the record {key} has it: keyloom get {collection} {key}")
        }
        "version-conflict" => {
            "somebody changed it since: read it again, and repeat with its new version".to_owned()
        }
        "unauthenticated" => "give a token in KEYLOOM_TOKEN, or with --token".to_owned(),
        "forbidden" => "another token may: KEYLOOM_TOKEN or --token".to_owned(),
        "index-not-ready" => match told("index").or_else(|| told("aggregate")) {
            Some(index) => format!("make it ready: keyloom build {collection} {index}"),
            None => "`keyloom schema` tells the state of every index".to_owned(),
        },
        "invalid-cursor" => {
            "a cursor goes with the query that gave it: repeat it unchanged".to_owned()
        }
        "locked" => match (told("served_at"), told("held_by_process")) {
            (Some(url), _) => format!("ask the server that holds it: --server {url}"),
            (None, Some(pid)) => format!("process {pid} has it open; wait for it, or stop it"),
            (None, None) => {
                "a server may hold it; ask that one with --server URL, or stop it first".to_owned()
            }
        },
        "incompatible-schema" => {
            "nothing was changed; `keyloom check --store ADDRESS` shows every difference".to_owned()
        }
        "outcome-unknown" => "look at what is stored before you repeat it".to_owned(),
        "log-trimmed" => "keyloom watch without --from begins now".to_owned(),
        "overloaded" => "the server is busy: try again in a moment".to_owned(),
        _ => return None,
    })
}
