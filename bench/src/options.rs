//! The command line.

use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

pub const HELP: &str = "\
Keyloom against SQLite and bare fjall: the same work, in the same run, in turns.

  --n 10000,100000     how many records the stores hold          [100000]
  --only list,insert   which workloads                           [all]
                       load list lookup mixed insert update modify increment cold sizes
  --rivals keyloom,sqlite,fjall   the first is compared with the others   [these]
                       `counted` is Keyloom with two aggregates
  --rounds 5           how often the rivals take turns           [5]
  --reads 4000         reads of each round                       [4000]
  --seconds 2          how long writers write in each round      [2]
  --writers 1,16,64    how many writers write at once            [1,16,64]
  --cache-mib 256      memory for the caches of each rival       [256]
  --others-cache-mib 256   the same for all but the first, to give them as much memory
                       as the first takes in all                 [as --cache-mib]
  --folder PATH        where the stores are; they stay there and are used again
                       [a folder below the system's temporary one, removed at the end]
";

pub const WORKLOADS: [&str; 10] =
    ["load", "list", "lookup", "mixed", "insert", "update", "modify", "increment", "cold", "sizes"];

pub const RIVALS: [&str; 4] = ["keyloom", "counted", "sqlite", "fjall"];

const TAKE_VALUES: [&str; 10] = [
    "--n",
    "--only",
    "--rivals",
    "--rounds",
    "--reads",
    "--seconds",
    "--writers",
    "--cache-mib",
    "--others-cache-mib",
    "--folder",
];

pub struct Options {
    pub sizes: Vec<u64>,
    pub only: Vec<String>,
    pub rivals: Vec<String>,
    pub rounds: usize,
    pub reads: usize,
    pub time: Duration,
    pub writers: Vec<usize>,
    pub cache_bytes: u64,
    others_cache_bytes: Option<u64>,
    pub folder: Option<PathBuf>,
    /// Measures the memory of one rival in this process, prints it, and ends. The harness starts
    /// itself so.
    pub memory: bool,
}

/// What the command line asks for.
pub enum Asked {
    Help,
    Run(Options),
}

impl Options {
    /// Reads the command line. An error says in one line what is wrong with it.
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Asked> {
        let mut options = Options {
            sizes: vec![100_000],
            only: WORKLOADS.map(String::from).into(),
            rivals: ["keyloom", "sqlite", "fjall"].map(String::from).into(),
            rounds: 5,
            reads: 4_000,
            time: Duration::from_secs(2),
            writers: vec![1, 16, 64],
            cache_bytes: 256 << 20,
            others_cache_bytes: None,
            folder: None,
            memory: false,
        };
        while let Some(name) = arguments.next() {
            if name == "--memory" {
                options.memory = true;
                continue;
            }
            if name == "--help" || name == "-h" {
                return Ok(Asked::Help);
            }
            ensure!(TAKE_VALUES.contains(&name.as_str()), "{name} is not an option");
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            options.set(&name, &value).with_context(|| format!("{name} cannot be {value}"))?;
        }
        Ok(Asked::Run(options))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
        match name {
            "--n" => self.sizes = numbers(value)?,
            "--only" => self.only = known(list(), &WORKLOADS, "a workload")?,
            "--rivals" => self.rivals = known(list(), &RIVALS, "a rival")?,
            "--rounds" => self.rounds = value.parse()?,
            "--reads" => self.reads = value.parse()?,
            "--seconds" => self.time = Duration::try_from_secs_f64(value.parse()?)?,
            "--writers" => self.writers = numbers(value)?,
            "--cache-mib" => self.cache_bytes = mib(value)?,
            "--others-cache-mib" => self.others_cache_bytes = Some(mib(value)?),
            "--folder" => self.folder = Some(value.into()),
            _ => bail!("not an option"),
        }
        Ok(())
    }

    /// The memory for the caches of a rival.
    pub fn cache_bytes_of(&self, rival: &str) -> u64 {
        let is_first = self.rivals.first().is_some_and(|first| first == rival);
        self.others_cache_bytes.filter(|_| !is_first).unwrap_or(self.cache_bytes)
    }

    pub fn wants(&self, workload: &str) -> bool {
        self.only.iter().any(|name| name == workload)
    }
}

/// So many MiB, in bytes.
fn mib(value: &str) -> Result<u64> {
    value.parse::<u64>()?.checked_mul(1 << 20).context("more than there can be")
}

/// Numbers between commas; `1_000` is one of them.
fn numbers<N: FromStr<Err = ParseIntError>>(value: &str) -> Result<Vec<N>> {
    Ok(value.split(',').map(|number| number.replace('_', "").parse()).collect::<Result<_, _>>()?)
}

/// The names, if all are among those that there are.
fn known(names: Vec<String>, all: &[&str], what: &str) -> Result<Vec<String>> {
    match names.iter().find(|name| !all.contains(&name.as_str())) {
        Some(unknown) => bail!("{unknown} is not {what}; there are {}", all.join(", ")),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Asked> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let Ok(Asked::Run(options)) =
            read("--n 10_000,5 --only list --rivals sqlite --reads 7 --writers 2,4")
        else {
            panic!("it is in order")
        };
        assert_eq!((options.sizes, options.reads), (vec![10_000, 5], 7));
        assert_eq!(options.writers, [2, 4]);
        assert_eq!(options.cache_bytes_of("sqlite"), 256 << 20);
        assert_eq!((options.only, options.rivals), (vec!["list".into()], vec!["sqlite".into()]));
    }

    #[test]
    fn the_first_rival_has_its_own_memory() {
        let Ok(Asked::Run(options)) = read("--cache-mib 3 --others-cache-mib 5") else {
            panic!("it is in order")
        };
        assert_eq!(options.cache_bytes_of("keyloom"), 3 << 20);
        assert_eq!(options.cache_bytes_of("sqlite"), 5 << 20);
    }

    #[test]
    fn help_is_no_error() {
        for line in ["--help", "-h", "--n 5 --help"] {
            assert!(matches!(read(line), Ok(Asked::Help)), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (line, said) in [
            ("--fast", "--fast is not an option"),
            ("--n", "--n needs a value"),
            ("--n many", "--n cannot be many: invalid digit found in string"),
            (
                "--seconds -1",
                "--seconds cannot be -1: cannot convert float seconds to Duration: value is negative",
            ),
            (
                "--only sleep",
                "--only cannot be sleep: sleep is not a workload; there are load, list, lookup, mixed, insert, update, modify, increment, cold, sizes",
            ),
            (
                "--rivals rust",
                "--rivals cannot be rust: rust is not a rival; there are keyloom, counted, sqlite, fjall",
            ),
        ] {
            let error = read(line).err().expect(line);
            assert_eq!(format!("{error:#}"), said);
        }
    }
}
