//! `keyloom exit-codes`: the exit codes that scripts may rely on.

use clap::Args;

use crate::exit::{EXIT_CODES, Failure};
use crate::output::line;

/// Print what the exit codes mean
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ExitCodes {}

impl ExitCodes {
    pub(crate) fn run(self) -> Result<(), Failure> {
        line(EXIT_CODES)
    }
}
