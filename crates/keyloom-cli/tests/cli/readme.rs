//! The README, pasted whole: its shell block starts a server, and its snippets talk to it.

use std::net::TcpListener;
use std::process::Command;

use super::support::{Sandbox, repository};

/// The README's blocks of one language, in order.
fn blocks(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(repository("README.md")).unwrap();
    let opening = format!("```{language}\n");
    let bodies = page.split(opening.as_str()).skip(1);
    bodies.map(|body| body.split("```").next().unwrap().to_owned()).collect()
}

/// The block after `From any language` runs from its first line to its last without a pause, as
/// it does when somebody pastes it; then come the snippets in other languages. Only the port
/// differs, and the command is built already.
#[test]
fn from_any_language_works_when_it_is_pasted_whole() {
    let sandbox = Sandbox::empty();
    let shell = blocks("sh").into_iter().find(|block| block.contains("keyloom serve &"));
    let shell = shell.expect("the README has lost its shell block");
    let installed: Vec<&str> =
        shell.lines().filter(|line| !line.starts_with("cargo install ")).collect();
    assert_eq!(installed.len() + 1, shell.lines().count(), "it installs the command");
    let [python] = &blocks("python")[..] else { panic!("one snippet in Python") };
    let [javascript] = &blocks("js")[..] else { panic!("one snippet in JavaScript") };
    sandbox.write("approvals.py", python);
    sandbox.write("approvals.mjs", javascript);
    // Job control is on in a shell that is pasted into.
    let script = format!(
        "set -em\ntrap 'kill %1' EXIT\n{}\necho; python3 approvals.py; node approvals.mjs\n",
        installed.join("\n"),
    );
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let here = format!("127.0.0.1:{port}");
    let script = script
        .replace("keyloom serve &", &format!("keyloom serve --listen {here} &"))
        .replace("127.0.0.1:7117", &here);
    for file in ["approvals.py", "approvals.mjs"] {
        sandbox.write(file, sandbox.read(file).replace("127.0.0.1:7117", &here));
    }
    let binaries = std::path::Path::new(env!("CARGO_BIN_EXE_keyloom")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("bash")
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .env("PATH", path)
        .env_remove("KEYLOOM_STORE")
        .env_remove("KEYLOOM_SERVER")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    let told = format!("{out}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}");
    // The insert, the page, and the table of the command.
    assert_eq!(out.matches("ana").count(), 3, "{told}");
    // Each snippet prints the id that it was given, then the status and the version.
    let versions = out.lines().filter(|line| line.starts_with("pending ") && line.ends_with("-1"));
    assert_eq!(versions.count(), 2, "{told}");
}
