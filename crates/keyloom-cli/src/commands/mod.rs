//! One file for each subcommand.

pub(crate) mod get;

use crate::cli::{Cli, Command};
use crate::exit::Failure;

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Get(get) => get.run(&cli.place),
    }
}
