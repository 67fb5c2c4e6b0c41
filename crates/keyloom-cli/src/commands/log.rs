//! The log of a server, on stderr: warnings and defects, without a word of what records hold.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook};

/// Begins the log of this process.
pub(super) fn begin(is_colored: bool) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::WARN)
        .with_ansi(is_colored)
        .init();
    set_hook(Box::new(tell));
}

/// Tells where a panic was. What it says may quote keys and values, which are not for a log; the
/// calls that led there, with RUST_BACKTRACE, have none.
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

    /// A hook is the whole process's, so that the panic has a process of its own.
    #[test]
    fn a_panic_is_told_by_its_place_and_not_by_its_words() {
        if std::env::var_os(CHILD).is_some() {
            begin(false);
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
            assert!(told.contains("commands/log.rs:"), "{told}");
            assert!(!told.contains("salary") && !told.contains("cannot read"), "{told}");
        }
    }
}
