//! What HTTP costs: the server against a bare handler that returns the same bytes, and against
//! the library without a server. Both sides take turns in the same run.
//!
//! `keyloom-http-bench [--n RECORDS] [--rounds N] [--seconds N] [--connections N] [--only CONTEST]
//! [--folder PATH]`

mod beside;
mod client;
mod contest;
#[path = "../../src/samples.rs"]
mod samples;
#[path = "../../src/system.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod system;
#[path = "../../src/workload.rs"]
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mimalloc::MiMalloc;

/// The command's own, for both sides.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What is measured, and for how long.
pub struct Options {
    /// Records that the store holds for the lists.
    pub records: u64,
    /// How often the two sides take turns.
    pub rounds: usize,
    /// How long each turn is.
    pub turn: Duration,
    /// Connections, and tasks of the library.
    pub connections: usize,
    /// One contest alone.
    pub only: Option<Contest>,
    /// Where the stores are made; they are removed at the end.
    pub folder: PathBuf,
}

/// What the sides compete in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contest {
    Lists,
    Inserts,
    Beside,
}

const HELP: &str = "\
What HTTP costs, beside a bare handler and beside the library.

  --n 100000          records of the store that is listed      [100000]
  --rounds 5          how often the two sides take turns        [5]
  --seconds 2         how long each turn is                     [2]
  --connections 64    connections, or tasks of the library      [64]
  --only lists        one contest alone: lists, inserts, or     [lists and inserts]
                      beside, small requests beside the largest
  --folder PATH       where the stores are made                 [a temporary folder]";

fn main() -> ExitCode {
    let options = match read(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("keyloom-http-bench: {error:#}");
            return ExitCode::from(2);
        }
    };
    let run = match options.only {
        Some(Contest::Beside) => beside::run,
        _ => contest::run,
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("keyloom-http-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options {
        records: 100_000,
        rounds: 5,
        turn: Duration::from_secs(2),
        connections: 64,
        only: None,
        folder: std::env::temp_dir().join(format!("keyloom-http-bench-{}", std::process::id())),
    };
    while let Some(name) = arguments.next() {
        if name == "--help" || name == "-h" {
            return Ok(None);
        }
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        let wrong = || format!("{name} {value} cannot be understood");
        match name.as_str() {
            "--n" => options.records = value.parse().with_context(wrong)?,
            "--rounds" => options.rounds = value.parse().with_context(wrong)?,
            "--seconds" => {
                options.turn = Duration::from_secs_f64(value.parse().with_context(wrong)?)
            }
            "--connections" => options.connections = value.parse().with_context(wrong)?,
            "--only" => {
                options.only = Some(match value.as_str() {
                    "lists" => Contest::Lists,
                    "inserts" => Contest::Inserts,
                    "beside" => Contest::Beside,
                    _ => bail!("{}", wrong()),
                })
            }
            "--folder" => options.folder = value.into(),
            _ => bail!("{name} is not known; --help lists what is"),
        }
    }
    Ok(Some(options))
}
