//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub const HELP: &str = "\
Keyloom against SQLite and bare fjall: the same work, in the same run, in turns.

  --n 10000,100000     how many records the stores hold          [100000]
  --only list,insert   which workloads                           [all]
                       load list lookup mixed insert update increment cold sizes
  --rivals keyloom,sqlite,fjall   the first is compared with the others   [these]
                       `counted` is Keyloom with two aggregates
  --rounds 5           how often the rivals take turns           [5]
  --reads 4000         reads of each round                       [4000]
  --seconds 2          how long writers write in each round      [2]
  --cache-mib 256      memory for the caches of each rival       [256]
  --folder PATH        where the stores are; they stay there and are used again
                       [a folder below the system's temporary one, removed at the end]
";

pub const WORKLOADS: [&str; 9] =
    ["load", "list", "lookup", "mixed", "insert", "update", "increment", "cold", "sizes"];

pub struct Options {
    pub sizes: Vec<u64>,
    pub only: Vec<String>,
    pub rivals: Vec<String>,
    pub rounds: usize,
    pub reads: usize,
    pub time: Duration,
    pub cache_bytes: u64,
    pub folder: Option<PathBuf>,
    /// Measures the memory of one rival in this process, prints it, and ends. The harness starts
    /// itself so.
    pub memory: bool,
}

impl Options {
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Options {
            sizes: vec![100_000],
            only: WORKLOADS.map(String::from).into(),
            rivals: ["keyloom", "sqlite", "fjall"].map(String::from).into(),
            rounds: 5,
            reads: 4_000,
            time: Duration::from_secs(2),
            cache_bytes: 256 << 20,
            folder: None,
            memory: false,
        };
        while let Some(name) = arguments.next() {
            if name == "--memory" {
                options.memory = true;
                continue;
            }
            if name == "--help" {
                bail!("{HELP}");
            }
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
            match name.as_str() {
                "--n" => {
                    options.sizes = value
                        .split(',')
                        .map(|number| number.replace('_', "").parse())
                        .collect::<Result<_, _>>()?;
                }
                "--only" => options.only = list(),
                "--rivals" => options.rivals = list(),
                "--rounds" => options.rounds = value.parse()?,
                "--reads" => options.reads = value.parse()?,
                "--seconds" => options.time = Duration::from_secs_f64(value.parse()?),
                "--cache-mib" => options.cache_bytes = value.parse::<u64>()? << 20,
                "--folder" => options.folder = Some(value.into()),
                _ => bail!("{name} is not an option\n\n{HELP}"),
            }
        }
        if let Some(unknown) = options.only.iter().find(|name| !WORKLOADS.contains(&name.as_str()))
        {
            bail!("{unknown} is not a workload\n\n{HELP}");
        }
        Ok(options)
    }

    pub fn wants(&self, workload: &str) -> bool {
        self.only.iter().any(|name| name == workload)
    }
}
