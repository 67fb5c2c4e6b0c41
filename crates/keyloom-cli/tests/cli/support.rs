//! An empty folder, and the command in it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Approvals, which have every kind of index, a history and a count; flows, which count; and
/// users who own notes.
pub const SCHEMA: &str = r#"
[log]
days = 30

[collection.approval]
key     = "approval:record:{id}"
history = { versions = 50 }
[collection.approval.fields]
id           = { type = "id", generate = true }
requester_id = "text"
approver_id  = "text"
created_at   = "timestamp"
code         = { type = "code", pattern = "A-******", generate = true }
status       = { type = "enum", values = ["pending", "approved", "denied"], transitions = { pending = ["approved", "denied"] } }
[collection.approval.index.requester]
key = "approval:index:requester:{requester_id}:{created_at desc}:{id}"
[collection.approval.index.approver]
key = "approval:index:approver:{approver_id}:{created_at desc}:{id}"
[collection.approval.unique.code]
key = "approval:code:{code}"
[collection.approval.count.by_status]
group = ["status"]

[collection.flow]
key = "flow:stats:{flow}"
[collection.flow.fields]
flow = "text"
[collection.flow.counters]
"stats.*" = { min = 0 }

[collection.issue]
key = "issue:{project}:{number}"
[collection.issue.fields]
project  = "text"
number   = { type = "integer", digits = 6 }
opened   = "timestamp"
uid      = "uuid"
"tags.*" = "text"
[collection.issue.unique.uid]
key = "issue-uid:{uid}"

[collection.note]
key    = "user:{userId}:notes:{noteId}"
access = "owned"
owner  = "userId"
[collection.note.fields]
userId = "text"
noteId = "text"

[collection.place]
key = "place:{id}"
[collection.place.fields]
id       = "text"
position = { type = "point", lat = "lat", lon = "lon" }
[collection.place.geo.nearby]
key = "geo:{position geohash 6}:{id}"
"#;

/// A folder of its own for one test.
pub struct Sandbox {
    folder: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Sandbox {
    /// An empty folder.
    pub fn empty() -> Self {
        Sandbox { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with the schema in `keyloom.toml`, and a store that has it.
    pub fn with_store() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.write("keyloom.toml", SCHEMA);
        sandbox.run(&["schema", "--apply", "keyloom.toml", "--json"]).expect(0);
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The command in this folder, with nothing of the tester's environment that it looks at.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_keyloom"));
        command.args(args).current_dir(self.folder.path());
        for name in
            ["KEYLOOM_STORE", "KEYLOOM_SERVER", "KEYLOOM_TOKEN", "COLUMNS", "NO_COLOR", "RUST_LOG"]
        {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[], "")
    }

    /// Runs the command with variables and an input.
    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)], input: &str) -> Ran {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.as_bytes().to_vec();
        // A command that does not read its input may end before it is written.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A server in this folder, on a free port.
    pub fn serve(&self, args: &[&str]) -> Served {
        let args = [&["serve", "--listen", "127.0.0.1:0", "--json"], args].concat();
        self.start(&args)
    }

    /// A command that serves, and says where.
    pub fn start(&self, args: &[&str]) -> Served {
        started(self.command(args))
    }
}

/// A command that serves, once it says where.
pub fn started(mut command: Command) -> Served {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    {
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut err = String::new();
            child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
            panic!("{:?} did not start: {err}", child.wait());
        }
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap().to_owned();
        Served { child, url, told }
    }
}

impl Ran {
    /// The same, if it ended with that code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }

    /// The output as JSON lines.
    pub fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The first line of the output as JSON.
    pub fn value(&self) -> Value {
        self.lines().into_iter().next().unwrap_or_default()
    }
}

/// A server that is killed at the end of the test, if it did not end before.
pub struct Served {
    child: Child,
    pub url: String,
    pub told: Value,
}

impl Served {
    /// Tells it to stop, and gives its exit code and what it said on stderr.
    pub fn stop(mut self) -> (i32, String) {
        self.signal("TERM");
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), err)
    }

    /// Ends it without a chance to tidy up.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Reads what it says on stderr up to a line with this text, and gives it.
    pub fn hear(&mut self, text: &str) -> String {
        let mut heard = String::new();
        // Byte by byte: what comes after the line is for whoever reads next.
        let mut one = [0];
        let stderr = self.child.stderr.as_mut().unwrap();
        while !(heard.contains(text) && heard.ends_with('\n')) {
            assert_eq!(stderr.read(&mut one).unwrap(), 1, "it ended, and said only {heard}");
            heard.push(char::from(one[0]));
        }
        heard
    }

    /// Waits for it to end by itself, and gives its exit code and what it said on stderr.
    pub fn ended(mut self) -> (i32, String) {
        // Only a test that fails waits so long.
        const LONG: Duration = Duration::from_secs(60);
        let mut stderr = self.child.stderr.take().unwrap();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let mut err = String::new();
            stderr.read_to_string(&mut err).unwrap();
            // Nobody listens to a test that has given up.
            drop(tell.send(err));
        });
        let err = told.recv_timeout(LONG).expect("it does not end");
        (self.child.wait().unwrap().code().unwrap_or(-1), err)
    }

    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }
}

/// Sends a signal to a process.
pub fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap();
    assert!(sent.success());
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Splits a command line as a shell does: at spaces, but for what is in single quotes.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    assert!(!is_quoted, "a quote is not closed: {line}");
    words.extend(word);
    words
}
