//! `keyloom demo`: five systems with realistic data, to look around in.

mod dice;
mod fill;
mod systems;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use self::fill::{Filled, fill};
use super::serve::{Announced, Listening, refuse_server};
use crate::cli::GlobalOptions;
use crate::exit::{FAILED, Failure, USAGE};
use crate::numbers;
use crate::output::{Screen, counted, grouped, line};
use crate::target::{open_store, runtime};

/// Make a store with five systems' data, and serve it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// About how many records to make
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = numbers::count_or_none)]
    records: u64,
    /// The same seed gives the same records
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::any)]
    seed: u64,
    /// Make the data and exit
    #[arg(long)]
    no_serve: bool,
    #[command(flatten)]
    listening: Listening,
}

const EXAMPLES: &str = "\
Examples:
  keyloom demo
  keyloom demo --records 100000 --store file:./demo-data
  keyloom demo --no-serve --store file:./demo-data

Without --store the data lies in a temporary folder, which is gone when the demo ends. Run twice
on one store, it adds nothing that is there already. Four systems share the space `main`; the
reputations live in the space `reputation`.";

impl Demo {
    pub(crate) fn run(self, place: &GlobalOptions) -> Result<(), Failure> {
        refuse_server(place)?;
        if self.no_serve && place.store.is_none() {
            return Err(Failure::new(
                USAGE,
                "without serving, a temporary store would be for nobody",
            )
            .with_hint("--store file:./demo-data keeps it"));
        }
        let mut prepared = self.listening.prepare()?;
        let screen = Screen::of(place);
        let temporary = match &place.store {
            Some(_) => None,
            None => Some(Temporary::new()?),
        };
        let address = match (&place.store, &temporary) {
            (Some(address), _) => address.clone(),
            (None, Some(folder)) => format!("file:{}", folder.0.display()),
            (None, None) => "memory:".to_owned(),
        };
        let runtime = runtime()?;
        let store = open_store(&runtime, &address, true)?;
        let begun = Instant::now();
        let filled = runtime.block_on(fill(&store, self.seed, self.records))?;
        let seconds = begun.elapsed().as_secs_f64();
        if self.no_serve {
            runtime.block_on(store.close())?;
            return match screen.is_for_people() {
                true => tell_filled(screen, &filled, seconds),
                false => screen.json(&json!({ "records": filled.total(), "store": address })),
            };
        }
        prepared.begin_log(screen);
        prepared.serve(&runtime, store, &["main", "reputation"], screen, |announced| {
            if screen.is_for_people() {
                tell_filled(screen, &filled, seconds)?;
                line("")?;
            }
            let kept = if temporary.is_some() { "a temporary store" } else { &address };
            announced.tell(kept)?;
            tell_tries(screen, &announced)
        })
    }
}

fn tell_filled(screen: Screen, filled: &Filled, seconds: f64) -> Result<(), Failure> {
    let total = counted(filled.total(), "record");
    line(&format!(
        "{} in {seconds:.1} s, each with every index entry in one commit",
        screen.bold(&total)
    ))?;
    line("")?;
    for system in &filled.systems {
        line(&format!("  {:<12} {:>7}  {}", system.name, grouped(system.records), system.what))?;
    }
    Ok(())
}

fn tell_tries(screen: Screen, announced: &Announced) -> Result<(), Failure> {
    if !screen.is_for_people() {
        return Ok(());
    }
    let url = &announced.url;
    line("")?;
    line("Try, in another terminal:")?;
    line(&format!("  export KEYLOOM_SERVER={url}"))?;
    line("  keyloom query approval requester_id=ana --order -created_at --limit 5")?;
    line("  keyloom near location 52.52 13.405 --radius 3km")?;
    line("  keyloom keys --tree")
}

/// A folder that is removed when the demo ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("keyloom-demo-{}", keyloom::Id::new()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Temporary(path)),
            Err(error) => {
                let message = format!("no temporary folder at {}: {error}", path.display());
                Err(Failure::new(FAILED, message).with_hint("--store file:PATH names another"))
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            crate::output::note(&format!("{} could not be removed: {error}", self.0.display()));
        }
    }
}
