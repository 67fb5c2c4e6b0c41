//! Keyloom against SQLite and against bare fjall. `--help` says how; docs/benchmarks.md what came
//! of it.

mod harness;
mod options;
mod report;
mod rivals;
mod samples;
mod system;
mod workload;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use mimalloc::MiMalloc;

use harness::{Contestant, LOAD_PART, Measured, Stage, Task};
use options::{Asked, Options};
use report::Row;
use rivals::{keyloom::Keyloom, raw_fjall::RawFjall, sqlite::Sqlite};
use workload::Spread;

/// The command's own, for all rivals.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How many times as many reads warm the caches as are measured, or as there are things to read,
/// whichever is more; of the latter at most so many. And what makes them others than the measured.
const WARMING: usize = 4;
const WARMING_ALL: u64 = 4;
const WARMING_ALL_MAX: u64 = 4_000_000;
const WARMING_ROUND: usize = 1_000;
const WARMING_PART: usize = 50_000;

/// Reads of a round on cold files: few, since every read warms them.
const READS_COLD: usize = 500;

/// What the process returns for a command line that it does not understand.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Help) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error:#}; --help tells what there is");
            return ExitCode::from(WRONG_USAGE);
        }
    };
    match run_all(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(options: &Options) -> Result<()> {
    let (folder, is_ours) = match &options.folder {
        Some(folder) => (folder.clone(), false),
        None => (std::env::temp_dir().join(format!("keyloom-bench-{}", std::process::id())), true),
    };
    let outcome = options.sizes.iter().try_for_each(|&size| run(options, &folder, size));
    if is_ours {
        std::fs::remove_dir_all(&folder)?;
    }
    outcome
}

fn run(options: &Options, folder: &Path, size: u64) -> Result<()> {
    let mut contestants = options
        .rivals
        .iter()
        .map(|name| contestant(name, folder, size, options))
        .collect::<Result<Vec<_>>>()?;
    if options.memory {
        return print_memory(options, size, &mut contestants);
    }
    let mut bench = Bench { options, size, contestants };
    let caches = options
        .rivals
        .iter()
        .map(|name| format!("{name} {} MiB", options.cache_bytes_of(name) >> 20));
    println!("\n## {size} records; caches: {}\n", caches.collect::<Vec<_>>().join(", "));
    report::head();
    bench.load()?;
    if options.wants("list") {
        for spread in [Spread::Zipf, Spread::Uniform] {
            bench.reads(&format!("list 20, warm, {}", spread.name()), spread, true)?;
        }
    }
    if options.wants("lookup") {
        for spread in [Spread::Zipf, Spread::Uniform] {
            bench.reads(&format!("look-up, warm, {}", spread.name()), spread, false)?;
        }
    }
    if options.wants("list") && options.wants("lookup") {
        // What one kind of reading takes of the caches, another lacks.
        for spread in [Spread::Zipf, Spread::Uniform] {
            bench.reads(
                &format!("list 20 after look-ups, warm, {}", spread.name()),
                spread,
                true,
            )?;
        }
    }
    if options.wants("cold") {
        bench.cold("list 20, cold, uniform", true)?;
        bench.cold("look-up, cold, uniform", false)?;
    }
    if options.wants("mixed") {
        bench.mixed()?;
    }
    if options.wants("insert") {
        for &writers in &options.writers {
            let task = Task::Insert { writers, time: options.time };
            bench.writes(&format!("insert, {writers} writers"), &task)?;
        }
    }
    if options.wants("update") {
        let task = Task::Approve { writers: 16, time: options.time };
        bench.writes("update a status, 16 writers", &task)?;
    }
    if options.wants("modify") {
        for &writers in &options.writers {
            let task = Task::Modify { writers, time: options.time };
            bench.writes(&format!("read and change one record, {writers} writers"), &task)?;
        }
    }
    if options.wants("increment") {
        let task = Task::Increment { writers: 16, time: options.time };
        bench.writes("increment one counter, 16 writers", &task)?;
    }
    if options.wants("sizes") {
        println!();
        bench.sizes(folder)?;
    }
    bench.contestants.iter_mut().try_for_each(|contestant| contestant.close())
}

fn contestant(
    name: &str,
    folder: &Path,
    size: u64,
    options: &Options,
) -> Result<Box<dyn Contestant>> {
    let cache_bytes = options.cache_bytes_of(name);
    Ok(match name {
        "keyloom" => Box::new(Stage::<Keyloom<false>>::new(folder, size, cache_bytes)?),
        "counted" => Box::new(Stage::<Keyloom<true>>::new(folder, size, cache_bytes)?),
        "sqlite" => Box::new(Stage::<Sqlite>::new(folder, size, cache_bytes)?),
        "fjall" => Box::new(Stage::<RawFjall>::new(folder, size, cache_bytes)?),
        _ => bail!("{name} is not a rival"),
    })
}

/// All rivals on stores of one size.
struct Bench<'o> {
    options: &'o Options,
    size: u64,
    contestants: Vec<Box<dyn Contestant>>,
}

impl Bench<'_> {
    fn names(&self) -> Vec<&'static str> {
        self.contestants.iter().map(|contestant| contestant.name()).collect()
    }

    /// Fills the stores that are not full yet, and lets them come to rest.
    fn load(&mut self) -> Result<()> {
        let mut measured = Vec::new();
        for contestant in &mut self.contestants {
            contestant.open()?;
            measured.push(contestant.load()?);
            contestant.close()?;
            contestant.open()?;
            system::settle();
        }
        if self.options.wants("load") && measured.iter().all(|one| one.latencies.count() > 0) {
            let row = Row {
                workload: "bulk load".into(),
                records_per_sample: LOAD_PART.min(self.size),
                rounds: 1,
                names: self.names(),
                measured,
            };
            row.print();
        }
        Ok(())
    }

    /// What is read in a round.
    fn reading(&self, spread: Spread, is_list: bool, reads: usize, round: usize) -> Task {
        let seed = 1 + round as u64;
        if is_list {
            Task::List { users: spread.draw(workload::users_of(self.size), reads, seed) }
        } else {
            Task::LookUp { records: spread.draw(self.size, reads, seed) }
        }
    }

    /// The rivals take turns, and each round begins with another one.
    fn rounds(
        &mut self,
        mut task_of: impl FnMut(&Self, usize) -> Task,
        mut prepare: impl FnMut(&mut dyn Contestant) -> Result<()>,
    ) -> Result<Vec<Measured>> {
        let mut all: Vec<Measured> = self.contestants.iter().map(|_| Measured::default()).collect();
        for round in 0..self.options.rounds {
            let task = task_of(self, round);
            for turn in 0..self.contestants.len() {
                let place = (turn + round) % self.contestants.len();
                let contestant = &mut self.contestants[place];
                prepare(contestant.as_mut())?;
                let measured = contestant
                    .run(&task)
                    .with_context(|| format!("{} failed", contestant.name()))?;
                all[place].add(measured);
            }
        }
        Ok(all)
    }

    /// Lets the caches hold what they would hold after a day.
    fn warm(&mut self, spread: Spread, is_list: bool) -> Result<()> {
        let things = if is_list { workload::users_of(self.size) } else { self.size };
        let all = (things * WARMING_ALL).min(WARMING_ALL_MAX) as usize;
        let warming = all.max(self.options.reads * self.options.rounds * WARMING);
        // The list of questions takes memory that is not the rivals'. Short parts keep it small.
        for part in 0..warming.div_ceil(WARMING_PART) {
            let task = self.reading(spread, is_list, WARMING_PART, WARMING_ROUND + part);
            for contestant in &mut self.contestants {
                contestant.run(&task)?;
            }
        }
        Ok(())
    }

    fn reads(&mut self, workload: &str, spread: Spread, is_list: bool) -> Result<()> {
        let reads = self.options.reads;
        self.warm(spread, is_list)?;
        let measured =
            self.rounds(|bench, round| bench.reading(spread, is_list, reads, round), |_| Ok(()))?;
        self.print(workload, measured);
        Ok(())
    }

    fn cold(&mut self, workload: &str, is_list: bool) -> Result<()> {
        let task = |bench: &Self, round| bench.reading(Spread::Uniform, is_list, READS_COLD, round);
        let measured = self.rounds(task, |contestant| {
            contestant.close()?;
            system::evict(contestant.folder())?;
            contestant.open()
        })?;
        self.print(workload, measured);
        Ok(())
    }

    fn mixed(&mut self) -> Result<()> {
        let time = self.options.time;
        let users = workload::users_of(self.size);
        let task = |_: &Self, round| Task::ListWhileWriting {
            users: Spread::Zipf.draw(users, 100_000, round as u64),
            time,
        };
        let measured = self.rounds(task, after_a_rest)?;
        self.print("list 20, Zipf, beside a writer", measured);
        system::settle();
        Ok(())
    }

    fn writes(&mut self, workload: &str, task: &Task) -> Result<()> {
        let measured = self.rounds(|_, _| task.clone(), after_a_rest)?;
        self.print(workload, measured);
        system::settle();
        Ok(())
    }

    fn print(&self, workload: &str, measured: Vec<Measured>) {
        let (workload, names, rounds) = (workload.to_owned(), self.names(), self.options.rounds);
        Row { workload, records_per_sample: 1, rounds, names, measured }.print();
    }

    /// Each store's disk space, and the memory of a process that has read from it for a while.
    fn sizes(&mut self, folder: &Path) -> Result<()> {
        let mut rows = Vec::new();
        for (contestant, name) in self.contestants.iter_mut().zip(&self.options.rivals) {
            contestant.close()?;
            let memory_bytes = memory_in_process(self.options, folder, self.size, name)?;
            rows.push((
                contestant.name(),
                Some(memory_bytes),
                system::disk_bytes(contestant.folder())?,
            ));
        }
        report::sizes(&rows);
        Ok(())
    }
}

/// Measures a rival's memory in a process of its own.
fn memory_in_process(options: &Options, folder: &Path, size: u64, name: &str) -> Result<u64> {
    let program: PathBuf = std::env::current_exe()?;
    let output = Command::new(program)
        .args(["--memory", "--rivals", name, "--folder"])
        .arg(folder)
        .args(["--n", &size.to_string(), "--reads", &options.reads.to_string()])
        .args(["--cache-mib", &(options.cache_bytes_of(name) >> 20).to_string()])
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// A store still writes its tables when its turn is over; the next rival must not pay for that.
fn after_a_rest(_: &mut dyn Contestant) -> Result<()> {
    system::settle();
    Ok(())
}

/// Fills the caches, and prints the memory that the process then has.
fn print_memory(
    options: &Options,
    size: u64,
    contestants: &mut Vec<Box<dyn Contestant>>,
) -> Result<()> {
    let contestant = contestants.pop().context("no rival")?;
    let mut bench = Bench { options, size, contestants: vec![contestant] };
    bench.contestants[0].open()?;
    for is_list in [true, false] {
        bench.warm(Spread::Uniform, is_list)?;
    }
    println!("{}", system::memory_bytes()?);
    bench.contestants[0].close()
}
