//! Selects what is logged: `--log LEVEL`, or the variable RUST_LOG.
//!
//! RUST_LOG is a list separated by commas. One item may be a level alone; every other item names
//! the target that its level applies to: `warn`, `info,hyper=off`, `keyloom::access=info`.

use std::ffi::OsStr;

use clap::ValueEnum;
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::exit::{Failure, USAGE};

/// How much is logged: events of this level and of more severe ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The default level.
const USUAL: Level = Level::Warn;

/// The filter from the option and the variable. The variable is used only without the option.
pub(super) fn filter(option: Option<Level>, variable: Option<&OsStr>) -> Result<Targets, Failure> {
    match (option, variable) {
        (Some(level), _) => Ok(all(level)),
        (None, Some(variable)) => of_variable(variable),
        (None, None) => Ok(all(USUAL)),
    }
}

fn all(level: Level) -> Targets {
    Targets::new().with_default(level.as_filter())
}

fn of_variable(variable: &OsStr) -> Result<Targets, Failure> {
    let text = variable.to_str().ok_or_else(|| unknown(&variable.to_string_lossy()))?;
    let mut targets = all(USUAL);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        targets = match part.split_once('=') {
            None => targets.with_default(level(part)?),
            Some((target, level_of_target)) if is_target(target) => {
                targets.with_target(target, level(level_of_target)?)
            }
            Some(_) => return Err(unknown(part)),
        };
    }
    Ok(targets)
}

fn level(text: &str) -> Result<LevelFilter, Failure> {
    let level = Level::from_str(text.trim(), true).map_err(|_| unknown(text))?;
    Ok(level.as_filter())
}

/// Whether this can be the name of a module.
fn is_target(text: &str) -> bool {
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':' | '-');
    !text.is_empty() && text.chars().all(is_part)
}

fn unknown(text: &str) -> Failure {
    Failure::new(USAGE, format!("RUST_LOG has {text:?}, which is no level of a log")).with_hint(
        "levels are off, error, warn, info, debug and trace, as in RUST_LOG=info or \
             RUST_LOG=warn,keyloom::access=info; with --log LEVEL the variable is not looked at",
    )
}

impl Level {
    fn as_filter(self) -> LevelFilter {
        match self {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
            Level::Trace => LevelFilter::TRACE,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]
    use super::*;

    /// The most verbose level for two modules.
    fn levels(option: Option<Level>, variable: Option<&str>) -> [LevelFilter; 2] {
        let targets = filter(option, variable.map(OsStr::new)).unwrap();
        ["keyloom::access", "hyper::proto"].map(|target| {
            use tracing::Level as L;
            let most = [L::TRACE, L::DEBUG, L::INFO, L::WARN, L::ERROR];
            let most = most.into_iter().find(|level| targets.would_enable(target, level));
            most.map_or(LevelFilter::OFF, LevelFilter::from_level)
        })
    }

    #[test]
    fn the_option_wins_and_the_variable_may_speak_of_modules() {
        use LevelFilter as F;
        assert_eq!(levels(None, None), [F::WARN; 2]);
        assert_eq!(levels(None, Some("")), [F::WARN; 2]);
        assert_eq!(levels(None, Some("info")), [F::INFO; 2]);
        assert_eq!(levels(None, Some(" Error ")), [F::ERROR; 2]);
        assert_eq!(levels(Some(Level::Debug), Some("off")), [F::DEBUG; 2]);
        assert_eq!(levels(Some(Level::Off), Some("nonsense")), [F::OFF; 2]);
        assert_eq!(levels(None, Some("info,hyper=off")), [F::INFO, F::OFF]);
        assert_eq!(levels(None, Some("keyloom::access=trace")), [F::TRACE, F::WARN]);
    }

    #[test]
    fn what_is_no_level_is_refused_by_name() {
        for (text, part) in [
            ("inof", "inof"),
            ("hyper", "hyper"),
            ("info,keyloom=loud", "loud"),
            ("info,a[span]=debug", "a[span]=debug"),
            ("=info", "=info"),
        ] {
            let failure = filter(None, Some(OsStr::new(text))).unwrap_err();
            assert_eq!(failure.code(), USAGE);
            assert!(failure.message().contains(&format!("{part:?}")), "{}", failure.message());
        }
    }
}
