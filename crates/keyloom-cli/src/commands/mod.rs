//! One file for each subcommand.

pub(crate) mod backup;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod count;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod entries;
pub(crate) mod exit_codes;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod groups;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod increment;
pub(crate) mod keys;
mod limits;
mod log;
pub(crate) mod near;
mod pace;
pub(crate) mod patch;
pub(crate) mod put;
pub(crate) mod query;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod token;
pub(crate) mod verify;
pub(crate) mod watch;
mod written;

use crate::cli::{Cli, Command};
use crate::exit::Failure;

/// Runs the subcommand.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let place = &cli.place;
    match cli.command {
        Command::Demo(command) => command.run(place),
        Command::Serve(command) => command.run(place),
        Command::Check(command) => command.run(place),
        Command::Schema(command) => command.run(place),
        Command::Get(command) => command.run(place),
        Command::Put(command) => command.run(place),
        Command::Patch(command) => command.run(place),
        Command::Delete(command) => command.run(place),
        Command::Increment(command) => command.run(place),
        Command::Query(command) => command.run(place),
        Command::Near(command) => command.run(place),
        Command::Count(command) => command.run(place),
        Command::Groups(command) => command.run(place),
        Command::Keys(command) => command.run(place),
        Command::Entries(command) => command.run(place),
        Command::History(command) => command.run(place),
        Command::Watch(command) => command.run(place),
        Command::Import(command) => command.run(place),
        Command::Export(command) => command.run(place),
        Command::Backup(command) => command.run(place),
        Command::Restore(command) => command.run(place),
        Command::Build(command) => command.run(place),
        Command::Verify(command) => command.run(place),
        Command::Repair(command) => command.run(place),
        Command::Stats(command) => command.run(place),
        Command::Token(command) => command.run(place),
        Command::Completions(command) => command.run(),
        Command::ExitCodes(command) => command.run(),
    }
}
