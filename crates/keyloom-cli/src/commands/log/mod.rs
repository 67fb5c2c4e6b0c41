//! The server's log, on stderr. It never contains the content of records.

mod json;
mod level;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook};

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use self::json::JsonLines;
use self::level::Level;
use crate::exit::Failure;

/// What is logged, and how.
#[derive(Clone, Debug, Args)]
pub(super) struct LogOptions {
    /// Log this level and worse on stderr. `info` has a line for each request, `warn` for each
    /// that lacked a right or failed [default: RUST_LOG, or warn]
    #[arg(long, value_name = "LEVEL", value_enum)]
    log: Option<Level>,
    /// Log lines as text, or as JSON objects
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A log that was not started yet.
pub(super) struct Log {
    filter: Targets,
    format: Format,
}

impl LogOptions {
    /// Reads the options and the environment.
    pub(super) fn prepare(&self) -> Result<Log, Failure> {
        let variable = std::env::var_os("RUST_LOG");
        let filter = level::filter(self.log, variable.as_deref())?;
        Ok(Log { filter, format: self.log_format })
    }
}

impl Log {
    /// Starts the log of this process.
    pub(super) fn begin(self, is_colored: bool) {
        let lines = fmt::layer().with_writer(std::io::stderr);
        let lines = match self.format {
            Format::Text => lines.with_ansi(is_colored).boxed(),
            Format::Json => lines.with_ansi(false).event_format(JsonLines).boxed(),
        };
        tracing_subscriber::registry().with(lines.with_filter(self.filter)).init();
        set_hook(Box::new(tell));
    }
}

/// Logs where a panic happened. Its message may quote keys and values, which must not be logged.
/// The backtrace, with RUST_BACKTRACE, has none.
fn tell(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let calls = Backtrace::capture();
    match calls.status() {
        BacktraceStatus::Captured => {
            tracing::error!(place, "a defect: the server panicked\n{calls}")
        }
        _ => tracing::error!(place, "a defect: the server panicked"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]
    use std::process::Command;

    use super::*;

    const CHILD: &str = "KEYLOOM_TEST_PANICS";

    /// A panic hook is global, so the panic happens in a process of its own.
    #[test]
    fn a_panic_is_told_by_its_place_and_not_by_its_words() {
        if std::env::var_os(CHILD).is_some() {
            let options = LogOptions { log: Some(Level::Error), log_format: Format::Text };
            options.prepare().unwrap().begin(false);
            let secret = "salary of ana";
            std::thread::spawn(move || panic!("cannot read {secret:?}")).join().unwrap_err();
            return;
        }
        for backtrace in ["0", "1"] {
            let name = "commands::log::tests::a_panic_is_told_by_its_place_and_not_by_its_words";
            let ran = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(CHILD, "1")
                .env("RUST_BACKTRACE", backtrace)
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{told}");
            assert!(told.contains("a defect: the server panicked"), "{told}");
            assert!(told.contains("commands/log/mod.rs:"), "{told}");
            assert!(!told.contains("salary") && !told.contains("cannot read"), "{told}");
        }
    }
}
