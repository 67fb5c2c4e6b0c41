//! What the tests of the embedded engine share: short batches, and other processes to kill.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use bytes::Bytes;
use keyloom::engine::{Address, Area, Batch, Condition, Effect, Space, Stamp};

const FOLDER_VARIABLE: &str = "KEYLOOM_TEST_FOLDER";

/// What lines from another process begin with, to tell them from the test harness's own.
const MARK: &str = "@ ";

pub fn stamp(number: u64) -> Stamp {
    let mut bytes = [0; Stamp::BYTES];
    bytes[Stamp::BYTES - 8..].copy_from_slice(&number.to_be_bytes());
    Stamp(bytes)
}

pub fn address(key: &str) -> Address {
    Address::new(Area::default_area(), Bytes::copy_from_slice(key.as_bytes()))
}

pub fn put_effect(value: &str) -> Effect {
    Effect::Put { stamp: stamp(1), bytes: Bytes::copy_from_slice(value.as_bytes()) }
}

pub fn put(key: &str, value: &str) -> Batch {
    batch([(key, None, Some(put_effect(value)))])
}

pub fn batch<'k>(
    entries: impl IntoIterator<Item = (&'k str, Option<Condition>, Option<Effect>)>,
) -> Batch {
    let mut batch = Batch::new(Space::main());
    for (key, condition, effect) in entries {
        batch.push(address(key), condition, effect);
    }
    batch
}

/// The folder to work on, in a process that a test has started; `None` in the test run itself.
pub fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from)
}

/// Says a line to the test that has started this process.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test may have stopped to listen, which is no failure of this process.
    let _ = writeln!(out, "\n{MARK}{line}").and_then(|()| out.flush());
}

/// Another process, which runs one test function of this same binary. It is killed when the
/// handle is dropped.
pub struct Child {
    process: std::process::Child,
    lines: BufReader<ChildStdout>,
}

impl Child {
    pub fn start(function: &str, folder: &Path) -> Self {
        Child::start_under(&[], function, folder)
    }

    /// Starts the process by way of another command.
    pub fn start_under(wrapper: &[&str], function: &str, folder: &Path) -> Self {
        let binary = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(binary),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(binary);
                command
            }
        };
        let mut process = command
            .args([function, "--exact", "--nocapture", "--test-threads=1"])
            .env(FOLDER_VARIABLE, folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        Child { process, lines }
    }

    /// The next line that the process says; `None` when it has ended. A last line that the end
    /// of the process has cut off does not count.
    pub fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            let said = line.strip_suffix('\n')?;
            if let Some(said) = said.strip_prefix(MARK) {
                return Some(said.to_owned());
            }
        }
    }

    /// Waits until the process, and whatever it runs under, has ended by itself.
    pub fn wait(&mut self) {
        while self.line().is_some() {}
        self.process.wait().unwrap();
    }

    /// Kills the process with SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        // It fails only when the process is gone already.
        let _ = self.process.kill();
        self.process.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Random numbers from a seed that is printed, and that a variable can set to repeat a run.
pub struct Random(u64);

impl Random {
    pub fn seeded(variable: &str) -> Self {
        let seed = match std::env::var(variable) {
            Ok(text) => text.parse().expect("the seed is a number"),
            Err(_) => std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64,
        };
        println!("repeat with {variable}={seed}");
        Random::new(seed)
    }

    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A number below the limit (splitmix64).
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// Whether strace can inject faults here. Where it cannot, the test says so and is skipped,
/// except under CI, where it fails.
pub fn strace_works() -> bool {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=none", "true"])
        .stderr(Stdio::null())
        .status();
    let works = status.is_ok_and(|status| status.success());
    assert!(works || std::env::var_os("CI").is_none(), "strace is missing, or may not trace");
    if !works {
        println!("skipped: strace is missing, or may not trace");
    }
    works
}
